package tree

import (
	"fmt"
	"slices"
	"strconv"
)

// Changes describes the differences between two lists of entries, each in one line. Entries are
// matched by ID. noun is the word for an entry.
func Changes(noun string, before, after []*Value) []string {
	var out []string
	entries, oldIDs := byID(before)
	_, newIDs := byID(after)
	for _, id := range oldIDs {
		if !slices.Contains(newIDs, id) {
			out = append(out, fmt.Sprintf("%s %s: removed", noun, id))
		}
	}
	for i, id := range newIDs {
		oldEntry, ok := entries[id]
		if !ok {
			out = append(out, fmt.Sprintf("%s %s: added", noun, id))
			continue
		}
		for _, c := range fieldChanges("", oldEntry, after[i]) {
			out = append(out, fmt.Sprintf("%s %s: %s", noun, id, c))
		}
	}
	common := func(ids, other []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(other, id) })
	}
	if !slices.Equal(common(oldIDs, newIDs), common(newIDs, oldIDs)) {
		out = append(out, noun+"s: order changed")
	}
	return out
}

// byID returns the entries by ID, and the IDs in order.
func byID(list []*Value) (entries map[string]*Value, ids []string) {
	entries, ids = make(map[string]*Value, len(list)), make([]string, len(list))
	for i, n := range list {
		ids[i] = n.Get("id").Text
		entries[ids[i]] = n
	}
	return entries, ids
}

// fieldChanges compares two mappings key by key.
func fieldChanges(path string, before, after *Value) []string {
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
		out = append(out, valueChanges(path+PathKey(name), before.Get(name), after.Get(name))...)
	}
	return out
}

// valueChanges compares two values. A nil value is the default.
func valueChanges(path string, before, after *Value) []string {
	switch {
	case before != nil && after != nil && before.Kind == TableKind && after.Kind == TableKind:
		return fieldChanges(path+".", before, after)
	case before != nil && after != nil && before.Kind == ListKind && after.Kind == ListKind && !before.Flow:
		var out []string
		for i := range max(len(before.Items), len(after.Items)) {
			var a, b *Value
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
	a, b := formatValue(before), formatValue(after)
	if a == b {
		return nil
	}
	return []string{fmt.Sprintf("%s %s -> %s", path, a, b)}
}

// formatValue formats a value for a change.
func formatValue(n *Value) string {
	if n == nil {
		return "(default)"
	}
	return Flow(n)
}
