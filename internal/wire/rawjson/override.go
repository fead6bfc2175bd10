package rawjson

import (
	"maps"
	"slices"
	"strings"
)

// Override sets members of a valid JSON object and removes those named in omit. A member with a
// name in another case is removed too, because some servers fold case. Override returns text itself
// if nothing changes or text is not an object.
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
