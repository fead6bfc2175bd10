package schema

import (
	"slices"
	"strings"

	"tollgate/internal/wire/rawjson"
)

// cycle returns a reference through which a schema refers to itself, or "".
func cycle(schema []byte) string {
	refersTo := map[string][]string{"#": refs(nil, schema, true, 0)}
	for _, list := range []string{"$defs", "definitions"} {
		for name, definition := range rawjson.Members(rawjson.Field(schema, list)) {
			refersTo["#/"+list+"/"+string(name)] = refs(nil, definition, false, 0)
		}
	}
	done := map[string]bool{}
	// visit returns a schema on a cycle of references below at, or "". path leads from the first schema to
	// at.
	var visit func(at string, path []string) string
	visit = func(at string, path []string) string {
		switch {
		case slices.Contains(path, at):
			return at
		case done[at]:
			return ""
		}
		path = append(path, at)
		for _, next := range refersTo[at] {
			if found := visit(next, path); found != "" {
				return found
			}
		}
		done[at] = true
		return ""
	}
	// In the order of the text, so that the error is the same for equal schemas.
	if found := visit("#", nil); found != "" {
		return found
	}
	for _, list := range []string{"$defs", "definitions"} {
		for name := range rawjson.Members(rawjson.Field(schema, list)) {
			if found := visit("#/"+list+"/"+string(name), nil); found != "" {
				return found
			}
		}
	}
	return ""
}

// refs appends the references in a schema. root excludes those in the definitions.
func refs(to []string, value []byte, root bool, depth int) []string {
	if depth > deepest || len(value) == 0 {
		return to
	}
	switch value[0] {
	case '{':
		for name, inner := range rawjson.Members(value) {
			switch {
			case string(name) == "$ref" && rawjson.IsText(inner):
				ref := rawjson.Unquote(inner)
				if parts := strings.SplitN(ref, "/", 4); len(parts) == 4 {
					ref = strings.Join(parts[:3], "/")
				}
				to = append(to, ref)
			case root && (string(name) == "$defs" || string(name) == "definitions"):
			default:
				to = refs(to, inner, false, depth+1)
			}
		}
	case '[':
		for _, inner := range rawjson.Elements(value) {
			to = refs(to, inner, false, depth+1)
		}
	}
	return to
}
