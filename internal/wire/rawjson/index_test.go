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
