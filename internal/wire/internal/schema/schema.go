// Package schema owns what becomes of a client's JSON schema where a target
// takes a part of the language only, and refuses the rest.
//
// Invariants: whatever fits the adapted schema has a shape that the client's
// allows; what the target has no keyword for stands in the description, where
// the model reads it; a schema that the target takes goes as it came; equal
// schemas give equal bytes.
package schema

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// Subset is what a target takes of JSON schema.
type Subset struct {
	keeps    []string // keywords, besides those that hold schemas
	formats  []string // of strings; nil: any
	closed   bool     // objects have to say that nothing else stands in them
	complete bool     // all properties of an object are required
	acyclic  bool     // no schema may refer to itself
	simple   bool     // an enum holds no lists and objects; arrays have no bound but not to be empty
	constant bool     // it knows enum, and not const
}

// keywords that all targets take, besides those that hold schemas.
func common(more ...string) []string {
	return append([]string{"type", "enum", "title", "required"}, more...)
}

// formats are the formats of strings that are known where only some are.
func formats() []string {
	return []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
}

// Messages is the subset of the messages form, for answers and strict tools.
func Messages() *Subset {
	return &Subset{keeps: common("const", "default"), formats: formats(), closed: true, acyclic: true, simple: true}
}

// Strict is the subset of chat completions where `strict` is true.
func Strict() *Subset {
	return &Subset{keeps: common("const", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"minItems", "maxItems"), formats: formats(), closed: true, complete: true}
}

// Gemini is the subset of that form's answers.
func Gemini() *Subset {
	return &Subset{keeps: common("minItems", "maxItems", "minimum", "maximum", "propertyOrdering"), constant: true}
}

// For returns the schema at a path of the request, which is JSON, as the target
// takes it: itself where it does. The error is a 400 invalid_request with the
// path of what the target cannot take.
func (d *Subset) For(schema []byte, param string) ([]byte, error) {
	w := writer{Subset: d, renames: rawjson.Field(schema, "definitions") != nil && rawjson.Field(schema, "$defs") == nil}
	if d.acyclic {
		if name := cycle(schema); name != "" {
			return nil, refusal(param, "must not refer to itself (%s) for this model.", name)
		}
	}
	out, err := w.schema(make([]byte, 0, len(schema)+len(schema)/4), schema, param, 0)
	if err != nil {
		return nil, err
	}
	if !w.changed {
		return schema, nil
	}
	return out, nil
}

// refusal refuses what stands at a path.
func refusal(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` "+format, args...)
}

// deepest is how deep a schema may nest.
const deepest = 100

// writer writes a schema anew.
type writer struct {
	*Subset
	renames bool // the root's definitions become $defs, as newer drafts have it
	changed bool
}

// schema appends one schema. What is no object (`true`) goes as it is.
func (w *writer) schema(dst, node []byte, path string, depth int) ([]byte, error) {
	if len(node) == 0 || node[0] != '{' {
		return append(dst, node...), nil
	}
	if depth > deepest {
		return nil, refusal(path, "nests too deep.")
	}
	at, err := w.read(node, path)
	if err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	begin := len(dst)
	for name, value := range rawjson.Members(node) {
		name, keep := w.place(at, string(name), value)
		if !keep {
			continue
		}
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(append(dst, rawjson.Quote(name)...), ':')
		if dst, err = w.value(dst, at, name, value, path+"."+name, depth); err != nil {
			return nil, err
		}
	}
	for _, member := range at.added {
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(dst, member...)
	}
	return append(dst, '}'), nil
}

// facts is what stands in a schema beside its keywords.
type facts struct {
	isObject, refers       bool
	defines                bool     // it has $defs
	described, any, single bool     // it has a description, anyOf, an allOf of one entry
	notes                  string   // what goes into the description
	added                  []string // members that it has not
}

// read looks at the keywords of a schema, and refuses what has no counterpart.
func (w *writer) read(node []byte, path string) (at facts, err error) {
	kind := rawjson.Field(node, "type")
	at.isObject = names(kind, "object") || kind == nil && rawjson.Field(node, "properties") != nil
	at.defines = rawjson.Field(node, "$defs") != nil
	at.refers = rawjson.IsText(rawjson.Field(node, "$ref"))
	at.described, at.any = rawjson.IsText(rawjson.Field(node, "description")), rawjson.Field(node, "anyOf") != nil
	entries := 0
	for range rawjson.Elements(rawjson.Field(node, "allOf")) {
		entries++
	}
	at.single = entries == 1
	if err := w.refuse(node, &at, entries, path); err != nil {
		return at, err
	}
	if at.refers {
		return at, nil // nothing may stand beside it
	}
	var notes []string
	for name, value := range rawjson.Members(node) {
		if w.isNote(&at, string(name), value) {
			notes = append(notes, fmt.Sprintf("%s: %s", name, value))
		}
	}
	if at.notes = strings.Join(notes, ", "); at.notes != "" && !at.described {
		at.added = append(at.added, `"description":`+string(rawjson.Quote(at.notes)))
	}
	if w.closed && at.isObject && rawjson.Field(node, "additionalProperties") == nil {
		at.added = append(at.added, `"additionalProperties":false`)
	}
	w.changed = w.changed || len(at.added) > 0 || at.notes != ""
	return at, nil
}

// refuse refuses a schema that would be another one at the target.
func (w *writer) refuse(node []byte, at *facts, entries int, path string) error {
	if ref := rawjson.Unquote(rawjson.Field(node, "$ref")); at.refers && !strings.HasPrefix(ref, "#") {
		return refusal(path+".$ref", "must point into the schema itself for this model.")
	}
	if w.closed && !at.refers {
		more := rawjson.Field(node, "additionalProperties")
		switch {
		case rawjson.Field(node, "patternProperties") != nil:
			return refusal(path+".patternProperties", "is not offered for this model: name the properties.")
		case len(more) > 0 && more[0] == '{' && !isEmpty(more):
			return refusal(path+".additionalProperties", "must be false for this model: name the properties.")
		case entries > 1:
			return refusal(path+".allOf", "must have one entry for this model: put its entries together.")
		}
	}
	if w.simple {
		for _, value := range rawjson.Elements(rawjson.Field(node, "enum")) {
			if value[0] == '{' || value[0] == '[' {
				return refusal(path+".enum", "must hold no objects and arrays for this model.")
			}
		}
	}
	if w.complete && at.isObject {
		required := rawjson.Field(node, "required")
		for name := range rawjson.Members(rawjson.Field(node, "properties")) {
			if !names(required, string(name)) {
				return refusal(path+".required", "must name every property for this model.")
			}
		}
	}
	return nil
}

// place returns the name under which a keyword stands at the target; false: it
// stands there not at all, or in the description.
func (w *writer) place(at facts, name string, value []byte) (string, bool) {
	to, keep := name, true
	switch {
	case name == "definitions":
		if w.renames && !at.defines {
			to = "$defs"
		}
	case at.refers:
		keep = name == "$ref" || name == "$defs"
	case w.isNote(&at, name, value) || isAside(name):
		keep = false
	case name == "allOf" || name == "oneOf" && w.closed:
		to = "anyOf"
	case name == "const" && w.constant:
		to = "enum"
	}
	w.changed = w.changed || !keep || to != name
	return to, keep
}

// isAside tells whether a keyword says nothing about what fits a schema.
func isAside(name string) bool {
	return slices.Contains([]string{"$schema", "$id", "$anchor", "$comment", "examples", "deprecated", "readOnly", "writeOnly"}, name)
}

// isNote tells whether the target has no keyword for this one, so that the model
// is told in words.
func (w *writer) isNote(at *facts, name string, value []byte) bool {
	switch name {
	case "description", "properties", "items", "anyOf", "additionalProperties", "$ref", "$defs", "definitions":
		return false
	case "oneOf":
		return w.closed && at.any
	case "allOf":
		return at.any || !at.single
	case "prefixItems":
		return w.closed
	case "format":
		return w.formats != nil && !slices.Contains(w.formats, rawjson.Unquote(value))
	case "minItems":
		if w.simple {
			return string(value) != "0" && string(value) != "1"
		}
	case "const":
		if w.constant {
			return !rawjson.IsText(value) && (value[0] < '0' || value[0] > '9') && value[0] != '-'
		}
	}
	return !slices.Contains(w.keeps, name) && !isAside(name)
}

// value appends the value of a keyword that stands at the target.
func (w *writer) value(dst []byte, at facts, name string, value []byte, path string, depth int) (out []byte, err error) {
	switch name {
	case "properties", "$defs", "definitions":
		return w.each(dst, value, path, depth)
	case "items":
		return w.schema(dst, value, path, depth+1)
	case "additionalProperties":
		if w.closed && string(value) != "false" {
			w.changed = true
			return append(dst, "false"...), nil
		}
		return w.schema(dst, value, path, depth+1)
	case "anyOf", "oneOf", "prefixItems":
		sep := byte('[')
		for i, entry := range rawjson.Elements(value) {
			if dst, err = w.schema(append(dst, sep), entry, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
				return nil, err
			}
			sep = ','
		}
		if sep == '[' {
			dst = append(dst, sep)
		}
		return append(dst, ']'), nil
	case "description":
		if at.notes != "" && at.described {
			return append(dst, rawjson.Quote(rawjson.Unquote(value)+" ("+at.notes+")")...), nil
		}
	case "enum":
		if w.constant && value[0] != '[' {
			return rawjson.Put(dst, "[", value, "]"), nil
		}
	case "$ref":
		if rest, older := strings.CutPrefix(rawjson.Unquote(value), "#/definitions/"); older && w.renames {
			return append(dst, rawjson.Quote("#/$defs/"+rest)...), nil
		}
	}
	return append(dst, value...), nil
}

// each appends an object whose members are schemas.
func (w *writer) each(dst, object []byte, path string, depth int) (out []byte, err error) {
	if len(object) == 0 || object[0] != '{' {
		return append(dst, object...), nil
	}
	dst = append(dst, '{')
	begin := len(dst)
	for name, value := range rawjson.Members(object) {
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(append(dst, rawjson.Quote(string(name))...), ':')
		if dst, err = w.schema(dst, value, path+"."+string(name), depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// names tells whether a value is a text, or a list that has it.
func names(value []byte, text string) bool {
	if rawjson.IsText(value) {
		return rawjson.Unquote(value) == text
	}
	for _, one := range rawjson.Elements(value) {
		if rawjson.IsText(one) && rawjson.Unquote(one) == text {
			return true
		}
	}
	return false
}

func isEmpty(object []byte) bool {
	for range rawjson.Members(object) {
		return false
	}
	return true
}
