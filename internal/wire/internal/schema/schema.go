// Package schema owns the adaptation of a client's JSON schema to a target that supports a part of
// the language. It rejects the rest.
//
// Invariants: every value that fits the adapted schema has a shape allowed by the client's;
// keywords unknown to the target are moved to the description, for the model to read; a schema
// within the target's part is unchanged; equal schemas give equal bytes.
package schema

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// Subset is the part of JSON schema supported by a target.
type Subset struct {
	keywords []string // keywords, besides those with schemas
	formats  []string // of strings; nil means any
	closed   bool     // objects must exclude other members
	complete bool     // all properties of an object are required
	acyclic  bool     // a schema must not refer to itself
	simple   bool     // an enum has no lists and objects; the only limit of arrays is not to be empty
	constant bool     // it has enum instead of const
}

// common returns the keywords of all targets, besides those with schemas.
func common(more ...string) []string {
	return append([]string{"type", "enum", "title", "required"}, more...)
}

// formats returns the known formats of strings.
func formats() []string {
	return []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
}

// Messages is the subset of the messages form, for answers and strict tools.
func Messages() *Subset {
	return &Subset{keywords: common("const", "default"), formats: formats(), closed: true, acyclic: true, simple: true}
}

// Strict is the subset of chat completions with `strict` true.
func Strict() *Subset {
	return &Subset{keywords: common("const", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"minItems", "maxItems"), formats: formats(), closed: true, complete: true}
}

// Gemini is the subset of the Gemini form, for answers.
func Gemini() *Subset {
	return &Subset{keywords: common("minItems", "maxItems", "minimum", "maximum", "propertyOrdering"), constant: true}
}

// For returns the schema at a path of the request for the target, unchanged if possible. The error
// is a 400 invalid_request with the path of the unsupported part.
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

// refusal returns the error for a path.
func refusal(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` "+format, args...)
}

// deepest is the nesting limit of a schema.
const deepest = 100

// writer writes an adapted schema.
type writer struct {
	*Subset
	renames bool // the root's definitions become $defs, as in newer drafts
	changed bool
}

// schema appends one schema. A value other than an object (`true`) is unchanged.
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
		name, keep := w.targetName(at, string(name), value)
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
	for _, member := range at.missing {
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(dst, member...)
	}
	return append(dst, '}'), nil
}

// facts are the properties of a schema found by read.
type facts struct {
	isObject, refers                         bool     // it is for objects, it has $ref
	hasDefs                                  bool     // it has $defs
	hasDescription, hasAnyOf, hasSingleAllOf bool     // it has a description, anyOf, an allOf of one entry
	notes                                    string   // for the description
	missing                                  []string // members to add
}

// read reads the keywords of a schema, and rejects those with no counterpart.
func (w *writer) read(node []byte, path string) (at facts, err error) {
	kind := rawjson.Field(node, "type")
	at.isObject = names(kind, "object") || kind == nil && rawjson.Field(node, "properties") != nil
	at.hasDefs = rawjson.Field(node, "$defs") != nil
	at.refers = rawjson.IsText(rawjson.Field(node, "$ref"))
	at.hasDescription, at.hasAnyOf = rawjson.IsText(rawjson.Field(node, "description")), rawjson.Field(node, "anyOf") != nil
	entries := 0
	for range rawjson.Elements(rawjson.Field(node, "allOf")) {
		entries++
	}
	at.hasSingleAllOf = entries == 1
	if err := w.check(node, &at, entries, path); err != nil {
		return at, err
	}
	if at.refers {
		return at, nil // no other member is allowed
	}
	var notes []string
	for name, value := range rawjson.Members(node) {
		if w.isNote(&at, string(name), value) {
			notes = append(notes, fmt.Sprintf("%s: %s", name, value))
		}
	}
	if at.notes = strings.Join(notes, ", "); at.notes != "" && !at.hasDescription {
		at.missing = append(at.missing, `"description":`+string(rawjson.Quote(at.notes)))
	}
	if w.closed && at.isObject && rawjson.Field(node, "additionalProperties") == nil {
		at.missing = append(at.missing, `"additionalProperties":false`)
	}
	w.changed = w.changed || len(at.missing) > 0 || at.notes != ""
	return at, nil
}

// check rejects a schema with another meaning at the target.
func (w *writer) check(node []byte, at *facts, entries int, path string) error {
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

// targetName returns a keyword's name at the target. It returns false for a keyword to be left out
// or moved to the description.
func (w *writer) targetName(at facts, name string, value []byte) (string, bool) {
	to, keep := name, true
	switch {
	case name == "definitions":
		if w.renames && !at.hasDefs {
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

// isAside reports whether a keyword has no effect on the values of a schema.
func isAside(name string) bool {
	return slices.Contains([]string{"$schema", "$id", "$anchor", "$comment", "examples", "deprecated", "readOnly", "writeOnly"}, name)
}

// isNote reports whether a keyword is moved to the description.
func (w *writer) isNote(at *facts, name string, value []byte) bool {
	switch name {
	case "description", "properties", "items", "anyOf", "additionalProperties", "$ref", "$defs", "definitions":
		return false
	case "oneOf":
		return w.closed && at.hasAnyOf
	case "allOf":
		return at.hasAnyOf || !at.hasSingleAllOf
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
	return !slices.Contains(w.keywords, name) && !isAside(name)
}

// value appends the value of a keyword.
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
		if at.notes != "" && at.hasDescription {
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

// each appends an object of schemas.
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

// names reports whether a value is a text, or a list with it.
func names(value []byte, text string) bool {
	if rawjson.IsText(value) {
		return rawjson.Unquote(value) == text
	}
	for _, element := range rawjson.Elements(value) {
		if rawjson.IsText(element) && rawjson.Unquote(element) == text {
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
