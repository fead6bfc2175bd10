package rawjson

import (
	"maps"
	"slices"
	"strings"
)

// Override gives members of a valid JSON object fixed values, where they stand or
// else behind the others, and leaves out those named in omit. A name of another
// case counts as the same, as it does at servers that fold it. The result is the text
// itself where nothing changes, and where it is no object.
func Override[V ~[]byte](text Pieces, set map[string]V, omit []string) Pieces {
	if len(set) == 0 && len(omit) == 0 {
		return text
	}
	body := text.Bytes()
	from := SkipSpace(body, 0)
	if from >= len(body) || body[from] != '{' {
		return text
	}
	doc := &RequestBody{Body: body, from: from}
	edits := Edits{Doc: doc}
	for m := range Spans(body[from:]) {
		m.From, m.To = m.From+from, m.To+from
		doc.Members = append(doc.Members, m)
	}
	names := slices.Sorted(maps.Keys(set))
	for _, m := range doc.Members {
		named := func(name string) bool { return strings.EqualFold(name, string(m.Name)) }
		if _, fixed := set[string(m.Name)]; !fixed && (slices.ContainsFunc(omit, named) || slices.ContainsFunc(names, named)) {
			edits.Drop(string(m.Name))
		}
	}
	for _, name := range names {
		edits.Set(name, set[name])
	}
	return edits.Body()
}
