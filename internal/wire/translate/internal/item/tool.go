package item

import (
	"fmt"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// longestName is how long the name of a tool may be at most providers.
const longestName = 64

// LineName returns what a tool, named by a JSON string, is called on the line:
// letters, digits, `_` and `-`, and no more than longestName of them. It depends
// on the name alone.
func LineName(raw []byte) []byte {
	name := rawjson.Unquote(raw)
	if len(name) <= longestName && isName(name) {
		return raw
	}
	const ending = 9
	clean := []byte(name)
	for i, c := range clean {
		if !isNameByte(c) {
			clean[i] = '_'
		}
	}
	return fmt.Appendf(nil, `"%s_%08x"`, clean[:min(len(clean), longestName-ending)], piece.HashOf(name))
}

func isName(name string) bool {
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Names are the client's names of the tools that the line knows by others, each a
// JSON string. The zero value holds none.
type Names map[string][]byte

// Declare notes the name of a tool.
func (n Names) Declare(raw []byte) {
	if line := LineName(raw); string(line) != string(raw) {
		n[rawjson.Unquote(line)] = raw
	}
}

// client returns the client's name of a tool that the line named, the inside of a
// JSON string.
func (n Names) client(raw []byte) []byte {
	if own, ok := n[rawjson.Unquote(raw)]; ok {
		return rawjson.Contents(own)
	}
	return piece.AppendInside(nil, raw)
}

// Tool is a function of the client's; its values are JSON, nil where absent.
type Tool struct {
	Name, Description, Schema []byte
	Strict                    bool
}

// AppendFunction appends a function behind a comma. strict is always written: a
// provider that is not told tries to be strict, and demands every parameter.
func AppendFunction(dst []byte, t Tool) []byte {
	dst = rawjson.Put(dst, `,{"type":"function","name":`, LineName(t.Name), "")
	if rawjson.IsText(t.Description) {
		dst = rawjson.AppendMember(dst, "description", t.Description)
	}
	if t.Schema == nil {
		t.Schema = []byte(`{"type":"object","properties":{}}`)
	}
	dst = rawjson.AppendMember(dst, "parameters", piece.OfObject(t.Schema))
	return fmt.Appendf(dst, `,"strict":%v}`, t.Strict)
}

// AppendChoice appends the choice of one tool, of type function or custom.
func AppendChoice(dst []byte, kind string, name []byte) []byte {
	dst = rawjson.Put(dst, `{"type":"`, kind, `","name":`)
	return rawjson.Put(dst, "", LineName(name), "}")
}
