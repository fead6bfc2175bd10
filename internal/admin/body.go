package admin

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/money"
)

// Limits of a request body.
const (
	maxBody    = 1 << 20
	maxCatalog = 4 << 20
)

// read returns the request's body of at most limit bytes. For an interrupted body the code is
// invalid_request and not invalid_json, because the body may be a catalog in YAML.
func (c *call) read(limit int64) ([]byte, error) {
	body, err := c.Body(limit)
	if httpapi.IsInterrupted(err) {
		f := fault.Of(err)
		f.Code = fault.InvalidRequest
		return nil, f
	}
	return body, err
}

// readObject reads the request's body as a JSON object.
func (c *call) readObject() (object, error) {
	body, err := c.read(maxBody)
	if err != nil {
		return object{}, err
	}
	return parseObject(body)
}

// decodeBody reads the request's body as a JSON object and sets fields from its members.
func (c *call) decodeBody(fields ...field) (object, error) {
	body, err := c.readObject()
	if err == nil {
		err = body.decode(fields...)
	}
	return body, err
}

// noQuery returns a handler for a path without query parameters.
func noQuery(handle func(*call) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if _, err := c.query(); err != nil {
			return nil, err
		}
		return handle(c)
	}
}

// noBody returns a handler for a path without query parameters and with an empty body or {}.
func noBody(handle func(*call) (any, error)) func(*call) (any, error) {
	return noQuery(func(c *call) (any, error) {
		if err := c.readEmpty(); err != nil {
			return nil, err
		}
		return handle(c)
	})
}

// readEmpty returns an error unless the body is empty or an empty object.
func (c *call) readEmpty() error {
	body, err := c.read(maxBody)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	o, err := parseObject(body)
	if err != nil {
		return err
	}
	return o.decode()
}

// object is a JSON object with unique keys.
type object struct {
	raw     []byte
	members map[string]json.RawMessage
	names   []string // in the order of the body
}

// parseObject parses a body as an object. It returns an error unless the body is UTF-8 and a valid
// JSON object with unique keys.
func parseObject(body []byte) (object, error) {
	if !utf8.Valid(body) {
		return object{}, fault.New(fault.InvalidEncoding, "The request body is not UTF-8.")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return object{}, fault.New(fault.InvalidJSON, "The request body is empty. Send a JSON object, for example {}.")
	}
	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil {
		return object{}, fault.New(fault.InvalidJSON, "The request body is not valid JSON: %v.", err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return object{}, fault.New(fault.InvalidRequest, "The request body must be a JSON object.")
	}
	o := object{raw: body, members: make(map[string]json.RawMessage)}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil { // cannot happen: the text is valid
			return object{}, fault.New(fault.InvalidJSON, "The request body is not valid JSON.")
		}
		if _, duplicate := o.members[name]; duplicate {
			name = fault.Excerpt(name)
			return object{}, fault.At(fault.InvalidJSON, name, "The field %q is in the request twice. Send it once.", name)
		}
		o.members[name] = value
		o.names = append(o.names, name)
	}
	return o, nil
}

// field is an allowed member of a body.
type field struct {
	name string
	must string                     // completes "name must be …"
	set  func(json.RawMessage) bool // sets the value; false if its type is wrong
	null func()                     // handles null; if nil, null means absent
}

// decode sets fields from the object's members. An unknown member is an error, so that a misspelt
// limit never means no limit.
func (o object) decode(fields ...field) error {
	for _, name := range o.names {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return fault.At(fault.InvalidRequest, fault.Excerpt(name), "There is no field %q here. %s", fault.Excerpt(name), fieldNames(fields))
		}
	}
	for _, f := range fields {
		raw, ok := o.members[f.name]
		switch {
		case !ok:
		case string(raw) == "null":
			if f.null != nil {
				f.null()
			}
		case !f.set(raw):
			return fault.At(fault.InvalidRequest, f.name, "%s must be %s.", f.name, f.must)
		}
	}
	return nil
}

func fieldNames(fields []field) string {
	if len(fields) == 0 {
		return "Send no body, or {}."
	}
	return "The fields are " + strings.Join(names(fields, func(f field) string { return f.name }), ", ") + "."
}

// setter returns a function for field.set. It decodes a value of type T and calls assign.
func setter[T any](assign func(T)) func(json.RawMessage) bool {
	return func(raw json.RawMessage) bool {
		var v T
		if json.Unmarshal(raw, &v) != nil {
			return false
		}
		assign(v)
		return true
	}
}

// setNull returns a function for field.null. It clears an optional value.
func setNull[T any](dst **T) func() { return func() { *dst = nil } }

func textField(name string, dst *string) field {
	return field{name: name, must: "a text", set: setter(func(v string) { *dst = v })}
}

func optionalTextField(name string, dst **string) field {
	return field{name: name, must: "a text", set: setter(func(v string) { *dst = &v })}
}

func flagField(name string, dst **bool) field {
	return field{name: name, must: "true or false", set: setter(func(v bool) { *dst = &v })}
}

func switchField(name string, dst *bool) field {
	return field{name: name, must: "true or false", set: setter(func(v bool) { *dst = v })}
}

func countField(name string, dst **int64) field {
	return field{name: name, must: "a whole number", set: setter(func(v int64) { *dst = &v }), null: setNull(dst)}
}

func moneyField(name string, dst **money.Amount) field {
	return field{name: name, must: "a decimal number of US dollars, with at most 9 decimals and below 1000000000",
		set: func(raw json.RawMessage) bool {
			if raw[0] == '"' && bytes.ContainsAny(raw, "eE") { // only JSON numbers may have an exponent
				return false
			}
			return setter(func(v money.Amount) { *dst = &v })(raw)
		}, null: setNull(dst)}
}

// factorRange is the range of price factors in error messages.
const factorRange = "above 0 and at most 1000, with at most 6 decimals"

func factorField(name string, dst **money.Factor) field {
	return field{name: name, must: "a decimal number " + factorRange, set: setter(func(v money.Factor) { *dst = &v })}
}

// factorsField is a field for an object of factors by model id.
func factorsField(name string, assign func(map[string]money.Factor)) field {
	return field{name: name, must: "an object of decimal numbers by model id, each " + factorRange, set: func(raw json.RawMessage) bool {
		o, err := parseObject(raw)
		if err != nil {
			return false
		}
		factors := make(map[string]money.Factor, len(o.members))
		for model, text := range o.members {
			var factor money.Factor
			if json.Unmarshal(text, &factor) != nil || string(text) == "null" {
				return false
			}
			factors[model] = factor
		}
		assign(factors)
		return true
	}}
}

// textsField is a field for a list of texts. A null in the list becomes an empty text; the checks of each
// list reject empty texts.
func textsField(name string, dst *[]string) field {
	return field{name: name, must: "a list of texts", null: func() { *dst = nil }, set: setter(func(list []*string) {
		*dst = make([]string, len(list))
		for i, text := range list {
			if text != nil {
				(*dst)[i] = *text
			}
		}
	})}
}
