package chatmessages

import (
	"fmt"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// chatParts makes parts of a block of the user, or of one inside a result.
func chatParts(b []byte, at string) ([]chatPart, error) {
	switch kind := rawjson.Unquote(rawjson.Field(b, "type")); kind {
	case "text":
		text := rawjson.Field(b, "text")
		if !rawjson.IsText(text) {
			return nil, cannot(at+".text", "`%s.text` must be a string.", at)
		}
		return []chatPart{textPart(text)}, nil
	case "image":
		return imagePart(rawjson.Field(b, "source"), at+".source")
	case "document":
		return documentParts(b, at, 0)
	case "search_result":
		return searchParts(b), nil
	case "tool_reference":
		return nil, nil
	default:
		return nil, cannot(at+".type", "`%s.type`: this model takes text, images and documents, not `%s`.", at, form.Shortened([]byte(kind)))
	}
}

// dataAddress returns what the source of a file holds as a data address.
func dataAddress(source []byte) (address []byte, ok bool) {
	media, data := rawjson.Field(source, "media_type"), rawjson.Field(source, "data")
	if rawjson.Unquote(rawjson.Field(source, "type")) != "base64" || !rawjson.IsText(media) || !rawjson.IsText(data) {
		return nil, false
	}
	address = make([]byte, 0, len(media)+len(data)+16)
	address = rawjson.Put(address, `"data:`, rawjson.Inside(media), "")
	return rawjson.Put(address, ";base64,", rawjson.Inside(data), `"`), true
}

// imagePart makes a part of an image.
func imagePart(source []byte, at string) ([]chatPart, error) {
	address, ok := dataAddress(source)
	if !ok {
		address = rawjson.Field(source, "url")
		if rawjson.Unquote(rawjson.Field(source, "type")) != "url" || !hasScheme(address) {
			return nil, cannot(at, "`%s` must be of type base64 or url.", at)
		}
	}
	json := rawjson.Put(nil, `{"type":"image_url","image_url":{"url":`, address, "}}")
	return []chatPart{{json: json}}, nil
}

// documentParts makes parts of a document: a PDF is a file, text is text.
func documentParts(b []byte, at string, depth int) ([]chatPart, error) {
	const deepest = 4 // a document of documents, and room for more
	source, title := rawjson.Field(b, "source"), rawjson.Field(b, "title")
	parts := []chatPart{}
	if rawjson.IsText(title) {
		parts = append(parts, textPart(title))
	}
	if context := rawjson.Field(b, "context"); rawjson.IsText(context) {
		parts = append(parts, textPart(context))
	}
	switch kind := rawjson.Unquote(rawjson.Field(source, "type")); kind {
	case "base64":
		address, ok := dataAddress(source)
		if !ok || rawjson.Unquote(rawjson.Field(source, "media_type")) != "application/pdf" {
			return nil, cannot(at+".source.media_type", "`%s.source.media_type` must be application/pdf.", at)
		}
		name := title
		if !rawjson.IsText(title) || isBlank(title) {
			name = []byte(`"document.pdf"`)
		}
		json := rawjson.Put(nil, `{"type":"file","file":{"filename":`, name, `,"file_data":`)
		return []chatPart{{json: rawjson.Put(json, "", address, "}}")}}, nil
	case "text":
		return append(parts, textPart(rawjson.Field(source, "data"))), nil
	case "content":
		content := rawjson.Field(source, "content")
		if rawjson.IsText(content) {
			return append(parts, textPart(content)), nil
		}
		for i, inner := range rawjson.Elements(content) {
			at := fmt.Sprintf("%s.source.content[%d]", at, i)
			if rawjson.Unquote(rawjson.Field(inner, "type")) == "document" {
				if depth >= deepest {
					return nil, cannot(at, "`%s` nests too deep.", at)
				}
				more, err := documentParts(inner, at, depth+1)
				if err != nil {
					return nil, err
				}
				parts = append(parts, more...)
				continue
			}
			more, err := chatParts(inner, at)
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
		}
		return parts, nil
	}
	return nil, cannot(at+".source.type", "`%s.source.type`: this model takes documents in the request, of type base64, text or content.", at)
}

// searchParts makes text of what a search of the client found.
func searchParts(b []byte) []chatPart {
	var parts []chatPart
	for _, name := range []string{"title", "source"} {
		if text := rawjson.Field(b, name); rawjson.IsText(text) {
			parts = append(parts, textPart(text))
		}
	}
	for _, inner := range rawjson.Elements(rawjson.Field(b, "content")) {
		if text := rawjson.Field(inner, "text"); rawjson.IsText(text) {
			parts = append(parts, textPart(text))
		}
	}
	return parts
}
