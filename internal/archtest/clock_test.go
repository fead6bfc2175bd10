package archtest

import (
	"go/ast"
	"slices"
	"testing"
)

// clocks are the packages whose product code may read the machine's clock by
// itself, and what for. Everywhere else time comes from a field, so that tests
// own it; what a field is when nobody sets it (time.Now, not called) is no
// reading.
var clocks = map[string]string{
	"cmd/tollgate":               "two signals within a moment are one",
	"internal/app":               "how long a stop took, deadlines of connections, the Date of a refusal",
	"internal/egress":            "how long a look-up took",
	"internal/id":                "ids sort by time",
	"internal/loop":              "the rhythm of loops; tests run them in testing/synctest",
	"internal/media":             "deadlines of connections",
	"internal/store":             "the clocks that Options replace",
	"internal/upstream/exchange": "the Date of an answer that has none",
	"internal/upstream/sandbox":  "what the sandbox draws takes its time",
}

// TestTimeComesFromFields refuses readings of the machine's clock outside of
// clocks, and entries there that read none.
func TestTimeComesFromFields(t *testing.T) {
	t.Parallel()
	tree := source(t)
	read := map[string]bool{}
	for _, f := range tree.files {
		if f.test || testOnly(f.folder) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			from, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || named(from.X) != "time" || !slices.Contains([]string{"Now", "Since", "Until"}, from.Sel.Name) {
				return true
			}
			read[f.folder] = true
			if clocks[f.folder] == "" {
				t.Errorf("%s: reads the machine's clock; take the time from a field", tree.at(n))
			}
			return true
		})
	}
	for folder := range clocks {
		if !read[folder] {
			t.Errorf("clocks: %s reads no clock", folder)
		}
	}
}
