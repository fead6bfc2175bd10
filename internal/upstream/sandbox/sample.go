package sandbox

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/tidwall/gjson"
)

// Bounds of a sample: the depth of references and objects, the number of values, and
// the length of strings and arrays. Without them, a recursive schema would not end.
const (
	maxDepth  = 16
	maxValues = 500
	maxString = 1000
	maxItems  = 50
)

// sample makes a value that fits a JSON schema: the required members only, the
// first of each choice. Without a schema it is an empty object.
func sample(schema gjson.Result) []byte {
	if !schema.IsObject() {
		return []byte("{}")
	}
	s := sampler{root: schema, left: maxValues}
	out, err := json.Marshal(s.value(schema, 0))
	if err != nil { // a value of the schema's own that Go cannot write
		return []byte("{}")
	}
	return out
}

// sampler creates one value. It resolves references in root and may create at most left further
// values.
type sampler struct {
	root gjson.Result
	left int
}

// value returns a value of one schema, or null at a bound.
func (p *sampler) value(s gjson.Result, depth int) any {
	if depth > maxDepth || p.left <= 0 {
		return nil
	}
	p.left--
	for _, path := range []string{"const", "default", "enum.0", "examples.0"} {
		if v := s.Get(path); v.Exists() {
			return json.RawMessage(v.Raw)
		}
	}
	if ref := s.Get(`$ref`); ref.Exists() {
		return p.value(resolve(p.root, ref.Str), depth+1)
	}
	for _, choice := range []string{"anyOf.0", "oneOf.0", "allOf.0"} {
		if v := s.Get(choice); v.Exists() {
			return p.value(v, depth+1)
		}
	}
	kind := s.Get("type")
	if kind.IsArray() {
		kind = kind.Get("0")
	}
	switch {
	case kind.Str == "string":
		return sampleString(s)
	case kind.Str == "integer", kind.Str == "number":
		return sampleNumber(s)
	case kind.Str == "boolean":
		return true
	case kind.Str == "null":
		return nil
	case kind.Str == "array":
		items := []any{}
		for range min(max(0, s.Get("minItems").Int()), maxItems) {
			items = append(items, p.value(s.Get("items"), depth+1))
		}
		return items
	default:
		members := map[string]any{}
		properties := s.Get("properties")
		for _, name := range s.Get("required").Array() {
			if name.Type == gjson.String {
				members[name.Str] = p.value(member(properties, name.Str), depth+1)
			}
		}
		return members
	}
}

// resolve follows a reference inside the document (`#/$defs/point`).
func resolve(root gjson.Result, ref string) gjson.Result {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return gjson.Result{}
	}
	at := root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if step != "" {
			at = member(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	return at
}

// member returns an object's member by its literal name, whatever characters
// it has.
func member(object gjson.Result, name string) (found gjson.Result) {
	object.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
			return false
		}
		return true
	})
	return found
}

// sampleString makes a string of the format and length that a schema asks for.
func sampleString(s gjson.Result) string {
	switch s.Get("format").Str {
	case "date-time":
		return "2026-01-01T00:00:00Z"
	case "date":
		return "2026-01-01"
	case "time":
		return "00:00:00Z"
	case "email":
		return "somebody@example.com"
	case "uri":
		return "https://example.com/"
	case "uuid":
		return "00000000-0000-4000-8000-000000000000"
	}
	text := "example"
	least := int(min(max(0, s.Get("minLength").Int()), maxString))
	for len(text) < least {
		text += " example"
	}
	if limit := s.Get("maxLength"); limit.Exists() {
		text = text[:min(len(text), int(max(0, limit.Int())))]
	}
	return text
}

// sampleNumber makes the number nearest to 1 that a schema's bounds allow.
func sampleNumber(s gjson.Result) float64 {
	value := 1.0
	step := 1.0
	if m := s.Get("multipleOf").Num; m > 0 {
		value, step = m, m
	}
	if least := s.Get("minimum"); least.Exists() && value < least.Num {
		value = math.Ceil(least.Num/step) * step
	}
	if above := s.Get("exclusiveMinimum"); above.Type == gjson.Number && value <= above.Num {
		value = (math.Floor(above.Num/step) + 1) * step
	}
	if limit := s.Get("maximum"); limit.Exists() && value > limit.Num {
		value = math.Floor(limit.Num/step) * step
	}
	if below := s.Get("exclusiveMaximum"); below.Type == gjson.Number && value >= below.Num {
		value = (math.Ceil(below.Num/step) - 1) * step
	}
	return value
}
