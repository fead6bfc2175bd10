package catalog

import (
	"bytes"
	"cmp"

	"tollgate/internal/catalog/tree"
)

// Equal reports whether two documents say the same.
func Equal(a, b *Document) bool { return bytes.Equal(a.canonical(), b.canonical()) }

// Changes lists the changes from one document to another as lines for people: `model swift-1:
// price.input 0.25 -> 0.3`, `line main: added`. A nil before is the empty catalog. Without changes
// the list is empty, never nil.
func Changes(before, after *Document) []string {
	out := []string{}
	a, b := cmp.Or(before, &Document{}).tree(), after.tree()
	for i, what := range []string{"model", "line"} {
		out = append(out, tree.Changes(what, a.Fields[i].Value.Items, b.Fields[i].Value.Items)...)
	}
	return out
}
