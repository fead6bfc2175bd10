package piece

import (
	"strings"

	"tollgate/internal/wire/rawjson"
)

// DataAddress returns the base64 source of a file as a data address.
func DataAddress(source []byte) (address []byte, ok bool) {
	media, data := rawjson.Field(source, "media_type"), rawjson.Field(source, "data")
	if rawjson.Unquote(rawjson.Field(source, "type")) != "base64" || !rawjson.IsText(media) || !rawjson.IsText(data) {
		return nil, false
	}
	address = make([]byte, 0, len(media)+len(data)+16)
	address = rawjson.Put(address, `"data:`, rawjson.Contents(media), "")
	return rawjson.Put(address, ";base64,", rawjson.Contents(data), `"`), true
}

// HasScheme reports whether a JSON string is a web address.
func HasScheme(address []byte) bool {
	const longest = 32 // of a scheme, with any escapes of its slashes
	start := strings.ToLower(strings.ReplaceAll(string(rawjson.Contents(address)[:min(len(rawjson.Contents(address)), longest)]), `\/`, `/`))
	return strings.HasPrefix(start, "https://") || strings.HasPrefix(start, "http://")
}

// ObjectSchema returns a schema with the type object at its root.
func ObjectSchema(schema []byte) []byte {
	for m := range rawjson.Spans(schema) {
		if string(m.Name) == "type" {
			if rawjson.Unquote(schema[m.From:m.To]) == "object" {
				return schema
			}
			return rawjson.Replace(schema, []rawjson.Splice{{From: m.From, To: m.To, Text: []byte(`"object"`)}})
		}
	}
	text := []byte(`"type":"object"`)
	if at := rawjson.SkipSpace(schema, 1); at < len(schema) && schema[at] != '}' {
		text = append(text, ',')
	}
	return rawjson.Replace(schema, []rawjson.Splice{{From: 1, To: 1, Text: text}})
}
