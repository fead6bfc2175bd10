package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// TestDocumentShowsTheMetrics: every metric stands in the table of
// docs/operator.md with its labels, and each that is named there exists.
func TestDocumentShowsTheMetrics(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^tollgate_[a-z_]+$`)
	exist := map[string]string{} // the metric: where it is
	tree := source(t)
	for _, f := range tree.files {
		if f.test || testOnly(f.folder) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && name.MatchString(text) {
					exist[text] = tree.at(l)
				}
			}
			return true
		})
	}
	if len(exist) < 20 {
		t.Fatalf("only %d metrics found: is the search right?", len(exist))
	}
	shown := map[string]bool{}
	document := read(t, "docs/operator.md")
	for _, m := range regexp.MustCompile("(?m)^\\| `(tollgate_[a-z_]+)` \\|").FindAllStringSubmatch(document, -1) {
		shown[m[1]] = true
	}
	for metric, at := range exist {
		if !shown[metric] {
			t.Errorf("docs/operator.md: the table of metrics lacks %s (%s)", metric, at)
		}
	}
	for _, m := range regexp.MustCompile("`(tollgate_[a-z_]+)`").FindAllStringSubmatch(document, -1) {
		if exist[m[1]] == "" {
			t.Errorf("docs/operator.md: there is no metric %s", m[1])
		}
	}
}
