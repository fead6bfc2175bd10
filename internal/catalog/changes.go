package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"tollgate/internal/catalog/tree"
)

// Equal reports whether two documents say the same.
func Equal(a, b *Document) bool { return bytes.Equal(a.canonical(), b.canonical()) }

// Changes lists what leads from one document to another as lines for people:
// `model swift-1: price.input 0.25 -> 0.3`, `line main: added`. A nil before
// is the empty catalog. No changes: an empty list, never nil.
func Changes(before, after *Document) []string {
	if before == nil {
		before = &Document{}
	}
	out := []string{}
	a, b := before.tree(), after.tree()
	for i, what := range []string{"model", "line"} {
		out = append(out, entryChanges(what, a.Fields[i].Value.Items, b.Fields[i].Value.Items)...)
	}
	return out
}

// entryChanges compares two lists of models or lines by their ids.
func entryChanges(what string, before, after []*tree.Value) []string {
	var out []string
	old, oldIDs := byID(before)
	_, newIDs := byID(after)
	for _, id := range oldIDs {
		if !slices.Contains(newIDs, id) {
			out = append(out, fmt.Sprintf("%s %s: removed", what, id))
		}
	}
	for i, id := range newIDs {
		was, ok := old[id]
		if !ok {
			out = append(out, fmt.Sprintf("%s %s: added", what, id))
			continue
		}
		for _, c := range fieldChanges("", was, after[i]) {
			out = append(out, fmt.Sprintf("%s %s: %s", what, id, c))
		}
	}
	kept := func(ids, other []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(other, id) })
	}
	if !slices.Equal(kept(oldIDs, newIDs), kept(newIDs, oldIDs)) {
		out = append(out, what+"s: order changed")
	}
	return out
}

func byID(entries []*tree.Value) (map[string]*tree.Value, []string) {
	found, ids := make(map[string]*tree.Value, len(entries)), make([]string, len(entries))
	for i, n := range entries {
		ids[i] = n.Get("id").Text
		found[ids[i]] = n
	}
	return found, ids
}

// fieldChanges compares two mappings key by key.
func fieldChanges(path string, before, after *tree.Value) []string {
	var out []string
	names := make([]string, 0, len(after.Fields))
	for _, f := range after.Fields {
		names = append(names, f.Name)
	}
	for _, f := range before.Fields {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	for _, name := range names {
		out = append(out, valueChanges(path+pathKey(name), before.Get(name), after.Get(name))...)
	}
	return out
}

// valueChanges compares two values; nil is a value left to its default.
func valueChanges(path string, before, after *tree.Value) []string {
	switch {
	case before != nil && after != nil && before.Kind == tree.TableKind && after.Kind == tree.TableKind:
		return fieldChanges(path+".", before, after)
	case before != nil && after != nil && before.Kind == tree.ListKind && after.Kind == tree.ListKind && !before.Flow:
		var out []string
		for i := range max(len(before.Items), len(after.Items)) {
			var a, b *tree.Value
			if i < len(before.Items) {
				a = before.Items[i]
			}
			if i < len(after.Items) {
				b = after.Items[i]
			}
			out = append(out, valueChanges(path+"["+strconv.Itoa(i)+"]", a, b)...)
		}
		return out
	}
	a, b := inWords(before), inWords(after)
	if a == b {
		return nil
	}
	return []string{fmt.Sprintf("%s %s -> %s", path, a, b)}
}

// inWords shows a value in a change.
func inWords(n *tree.Value) string {
	if n == nil {
		return "(default)"
	}
	return tree.Flow(n)
}
