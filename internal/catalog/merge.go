package catalog

import (
	"slices"
	"strings"

	"tollgate/internal/catalog/tree"
)

// conflictError reports entries that a scheduled change and another apply have both changed.
type conflictError struct {
	Entries []string // such as "model swift-1" and "line main"
}

// Error names the entries.
func (e *conflictError) Error() string {
	if len(e.Entries) == 1 {
		return e.Entries[0] + " was changed after this change was scheduled"
	}
	return strings.Join(e.Entries, ", ") + " were changed after this change was scheduled"
}

// Merge applies the difference between base and next to current. Models and lines that are equal in
// base and next stay as they are in current, and new ones are added at the end. The error is a
// *conflictError if current differs from base in one of the other models and lines. The result is not
// validated: pass its text to Parse.
func Merge(base, next, current *Document) (*Document, error) {
	if Equal(base, current) {
		return next, nil
	}
	before, now, changed := base.entries(), current.entries(), map[string]bool{}
	var conflicts []string
	for _, name := range differing(base, next) {
		changed[name] = true
		if before[name] != now[name] {
			conflicts = append(conflicts, name)
		}
	}
	if len(conflicts) > 0 {
		return nil, &conflictError{conflicts}
	}
	return &Document{
		Models: merged(current.Models, next.Models, func(m Model) string { return modelEntry(m.ID) }, changed),
		Lines:  merged(current.Lines, next.Lines, func(l LineSpec) string { return lineEntry(l.ID) }, changed),
	}, nil
}

// merged returns the entries of current, with the changed ones as they are in next.
func merged[E any](current, next []E, name func(E) string, changed map[string]bool) (all []E) {
	added := map[string]bool{}
	for _, e := range current {
		i := slices.IndexFunc(next, func(n E) bool { return name(n) == name(e) })
		switch {
		case !changed[name(e)]:
			all = append(all, e)
		case i >= 0:
			all = append(all, next[i])
		}
		added[name(e)] = true
	}
	for _, e := range next {
		if changed[name(e)] && !added[name(e)] {
			all = append(all, e)
		}
	}
	return all
}

func modelEntry(id string) string { return "model " + id }
func lineEntry(id string) string  { return "line " + id }

// entries returns the text of each model and line by its name.
func (d *Document) entries() map[string]string {
	all := map[string]string{}
	root := d.tree()
	for i, name := range []func(string) string{modelEntry, lineEntry} {
		for _, e := range root.Fields[i].Value.Items {
			all[name(e.Get("id").Text)] = string(tree.JSON(e, ""))
		}
	}
	return all
}

// differing returns the sorted names of the models and lines that differ between two documents.
func differing(a, b *Document) (names []string) {
	before, after := a.entries(), b.entries()
	for name, text := range before {
		if after[name] != text {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
