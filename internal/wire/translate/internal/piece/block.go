package piece

import (
	"fmt"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Part is a content block of messages without its form: a text (the contents of a JSON string), an
// image or a file. At most one of Text, Image, File and FileURL is set.
type Part struct {
	Text    []byte
	Image   []byte // its address, a JSON string
	File    []byte // a data address, a JSON string
	FileURL []byte // a web address, a JSON string
	Name    []byte // of the file, a JSON string
}

// textPart returns the part for a JSON string. It is empty for a blank text.
func textPart(raw []byte) Part {
	if IsBlank(raw) {
		return Part{}
	}
	return Part{Text: rawjson.Contents(raw)}
}

// Blocks reads the content blocks of a messages request.
type Blocks struct {
	// URLs is set if the line can fetch documents by address.
	URLs bool
}

// Parts returns the parts of a block of the user, or of a block inside a result.
func (o Blocks) Parts(b []byte, at string) ([]Part, error) {
	switch kind := rawjson.Unquote(rawjson.Field(b, "type")); kind {
	case "text":
		text := rawjson.Field(b, "text")
		if !rawjson.IsText(text) {
			return nil, Unsupported(at+".text", "`{param}` must be a string.")
		}
		return []Part{textPart(text)}, nil
	case "image":
		return imagePart(rawjson.Field(b, "source"), at+".source")
	case "document":
		return o.document(b, at, 0)
	case "search_result":
		return searchParts(b), nil
	case "tool_reference":
		return nil, nil
	default:
		return nil, Unsupported(at+".type", "`{param}`: this model takes text, images and documents, not `%s`.", form.Shorten([]byte(kind)))
	}
}

func imagePart(source []byte, at string) ([]Part, error) {
	address, ok := DataAddress(source)
	if !ok {
		address = rawjson.Field(source, "url")
		if rawjson.Unquote(rawjson.Field(source, "type")) != "url" || !HasScheme(address) {
			return nil, Unsupported(at, "`{param}` must be of type base64 or url.")
		}
	}
	return []Part{{Image: address}}, nil
}

// document returns the parts of a document: a PDF is a file, text is text.
func (o Blocks) document(b []byte, at string, depth int) ([]Part, error) {
	const deepest = 4 // a document of documents, and some more
	source, title := rawjson.Field(b, "source"), rawjson.Field(b, "title")
	parts := []Part{}
	if rawjson.IsText(title) {
		parts = append(parts, textPart(title))
	}
	if context := rawjson.Field(b, "context"); rawjson.IsText(context) {
		parts = append(parts, textPart(context))
	}
	name := title
	if !rawjson.IsText(title) || IsBlank(title) {
		name = []byte(`"document.pdf"`)
	}
	switch kind := rawjson.Unquote(rawjson.Field(source, "type")); kind {
	case "base64":
		address, ok := DataAddress(source)
		if !ok || rawjson.Unquote(rawjson.Field(source, "media_type")) != "application/pdf" {
			return nil, Unsupported(at+".source.media_type", "`{param}` must be application/pdf.")
		}
		return []Part{{File: address, Name: name}}, nil
	case "url":
		if address := rawjson.Field(source, "url"); o.URLs && HasScheme(address) {
			return []Part{{FileURL: address, Name: name}}, nil
		}
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
					return nil, Unsupported(at, "`{param}` nests too deep.")
				}
				more, err := o.document(inner, at, depth+1)
				if err != nil {
					return nil, err
				}
				parts = append(parts, more...)
				continue
			}
			more, err := o.Parts(inner, at)
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
		}
		return parts, nil
	}
	return nil, Unsupported(at+".source.type", "`{param}`: this model takes documents in the request, of type base64, text or content.")
}

// searchParts returns the results of a client's search as text.
func searchParts(b []byte) []Part {
	var parts []Part
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
