package item

import (
	"fmt"
	"slices"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// maxNameLength is the limit on the name of a tool at most providers.
const maxNameLength = 64

// LineName returns the line's name of a tool, given as a JSON string: letters, digits, `_` and `-`,
// at most maxNameLength of them. It depends only on the name.
func LineName(raw []byte) []byte {
	name := rawjson.Unquote(raw)
	isOther := func(c byte) bool { return !isNameByte(c) }
	if len(name) <= maxNameLength && !slices.ContainsFunc([]byte(name), isOther) {
		return raw
	}
	const ending = 9
	clean := []byte(name)
	for i, c := range clean {
		if !isNameByte(c) {
			clean[i] = '_'
		}
	}
	return fmt.Appendf(nil, `"%s_%08x"`, clean[:min(len(clean), maxNameLength-ending)], piece.HashOf(name))
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Names maps the line's names of tools to the client's, as JSON strings, if they differ.
type Names map[string][]byte

// Declare adds the name of a tool.
func (n Names) Declare(raw []byte) {
	if line := LineName(raw); string(line) != string(raw) {
		n[rawjson.Unquote(line)] = raw
	}
}

// client returns the client's name of a tool named by the line, the contents of a JSON string.
func (n Names) client(raw []byte) []byte {
	if own, ok := n[rawjson.Unquote(raw)]; ok {
		return rawjson.Contents(own)
	}
	return piece.AppendContents(nil, raw)
}

// Tool is a function of the client. Its values are JSON, or nil.
type Tool struct {
	Name, Description, Schema []byte
	Strict                    bool
}

// AppendFunction appends a comma and a function. It always writes strict, because providers default
// to strict and then require every parameter.
func AppendFunction(dst []byte, t Tool) []byte {
	dst = rawjson.Put(dst, `,{"type":"function","name":`, LineName(t.Name), "")
	if rawjson.IsText(t.Description) {
		dst = rawjson.AppendMember(dst, "description", t.Description)
	}
	if t.Schema == nil {
		t.Schema = []byte(`{"type":"object","properties":{}}`)
	}
	dst = rawjson.AppendMember(dst, "parameters", piece.ObjectSchema(t.Schema))
	return fmt.Appendf(dst, `,"strict":%v}`, t.Strict)
}

// AppendChoice appends the choice of one tool, of type function or custom.
func AppendChoice(dst []byte, kind string, name []byte) []byte {
	dst = rawjson.Put(dst, `{"type":"`, kind, `","name":`)
	return rawjson.Put(dst, "", LineName(name), "}")
}
