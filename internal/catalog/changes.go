package catalog

import (
	"bytes"
	"cmp"

	"tollgate/internal/catalog/tree"
)

// Equal reports whether two documents print the same text.
func Equal(a, b *Document) bool { return bytes.Equal(a.canonical(), b.canonical()) }

// Changes describes the changes from one document to another, each in one line: `model swift-1:
// price.input 0.25 -> 0.3`, `line main: added`. If before is nil, everything in after is new. The
// result is never nil.
func Changes(before, after *Document) []string {
	out := []string{}
	a, b := cmp.Or(before, &Document{}).tree(), after.tree()
	for i, noun := range []string{"model", "line"} {
		out = append(out, tree.Changes(noun, a.Fields[i].Value.Items, b.Fields[i].Value.Items)...)
	}
	return out
}
