package rawjson

import (
	"fmt"
	"strings"
	"testing"
)

// TestIndexIsField compares Index.Field with Field, also beyond maxIndexed.
func TestIndexIsField(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 3 * maxIndexed {
		fmt.Fprintf(&many, `"m%d":%d,`, i, i)
	}
	for _, object := range []string{``, `[]`, `7`, `{`, `{}`, `{"a":1}`, `{"a":null,"a":2}`, `{"a":1,"a":2}`, `{"\u0061":{"b":[1]},"b":"x"}`,
		`{"a":1,`, `{` + many.String() + `"a":1,"b":null}`} {
		var x Index
		x.Read([]byte(object))
		for _, name := range []string{"a", "b", "c", "", "m0", "m15", "m16", "m17", "m47", "m48"} {
			if got, want := x.Field(name), Field([]byte(object), name); string(got) != string(want) || (got == nil) != (want == nil) {
				t.Errorf("%s of %s: %q, want %q", name, object, got, want)
			}
		}
	}
}

// TestValuesDoNotGrowIntoTheRest checks that appending to a part of a text does not overwrite the text.
func TestValuesDoNotGrowIntoTheRest(t *testing.T) {
	t.Parallel()
	const text = `{"a":"","b":["",{}],"c":"x"}`
	for name, part := range map[string]func(raw []byte) []byte{
		"Field":        func(raw []byte) []byte { return Field(raw, "b") },
		"Contents":     func(raw []byte) []byte { return Contents(Field(raw, "a")) },
		"UnquoteBytes": func(raw []byte) []byte { return UnquoteBytes(Field(raw, "c")) },
		"Elements": func(raw []byte) (last []byte) {
			for _, last = range Elements(Field(raw, "b")) {
			}
			return last
		},
	} {
		raw := []byte(text)
		if _ = append(part(raw), "overwritten"...); string(raw) != text {
			t.Errorf("%s: the text is now %s", name, raw)
		}
	}
}
