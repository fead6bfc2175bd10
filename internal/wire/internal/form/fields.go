package form

import (
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/rawjson"
)

// marked is a field of a request that needs more than to be forwarded.
type marked struct {
	field *field.FieldRule
	name  string
	value []byte // JSON, not null
}

// text returns the text of a string, or the JSON of any other value.
func (m *marked) text() string { return textOf(m.value) }

// textOf returns the text of a string, or the beginning of any other value.
func textOf(value []byte) string {
	if rawjson.IsText(value) {
		return rawjson.Unquote(value)
	}
	return Shortened(value)
}

// asks reports whether the value asks for more than the model's price covers.
func (m *marked) asks() bool { return !m.field.IsFree(m.text()) }

// CheckNames looks up every top-level field in the table of the form. It refuses
// a field that is known only in another case, since a server that ignores case
// would obey it. Fields that the form does not document go into Extra.
func (r *Request) CheckNames(t *field.Table) error {
	r.marked, r.Extra = nil, nil
	for i := range r.Doc.Members {
		m := &r.Doc.Members[i]
		known := t.Find(m.Name)
		if known == nil {
			name := string(m.Name)
			if spelling := t.Spelling(name); spelling != "" {
				return otherCase(name, spelling)
			}
			r.Extra = append(r.Extra, name)
			continue
		}
		if !known.Documented {
			r.Extra = append(r.Extra, known.Name)
		}
		if known.Class <= field.Owned && known.Inner == nil {
			continue
		}
		if value := rawjson.NonNull(r.Doc.Body[m.From:m.To]); value != nil {
			r.mark(known, value)
		}
	}
	return CheckSimilarKeys(r.Doc)
}

// CheckSimilarKeys refuses a key that equals another key, or a name that a check reads, only without
// regard to case.
func CheckSimilarKeys(d *rawjson.RequestBody) error {
	similar := d.SimilarKey()
	if similar == nil {
		return nil
	}
	return fault.At(fault.InvalidRequest, d.PathTo(similar.At),
		"`{param}` differs from the name `%s` only in capital and small letters. Write it like this, or leave it out.", similar.Spelling)
}

// mark notes a field for the checks that follow, and the fields inside it.
func (r *Request) mark(known *field.FieldRule, value []byte) {
	if known.Class > field.Owned {
		r.marked = append(r.marked, marked{known, known.Name, value})
	}
	for _, inner := range known.Inner {
		if at := rawjson.Field(value, inner.Name[len(known.Name)+1:]); at != nil {
			r.marked = append(r.marked, marked{inner, inner.Name, at})
		}
	}
}

// otherCase refuses a field that is known in another case.
func otherCase(name, spelling string) error {
	return fault.At(fault.InvalidRequest, name, "`{param}` is the field `%s` in another case. Write it like this, or leave it out.", spelling)
}

// CheckStored refuses fields that refer to objects stored at the provider, and
// those that would store the answer there.
func (r *Request) CheckStored() error {
	for i := range r.marked {
		switch m := &r.marked[i]; {
		case m.field.Class == field.Stored:
			return Stored(m.name)
		case m.field.Class == field.Later && m.asks():
			return fault.At(fault.InvalidRequest, m.name,
				"`{param}` is not offered: the answer would be stored at the provider. Leave it out.")
		}
	}
	return nil
}

// ReadOptions reports the fields whose values change what the provider charges.
func (r *Request) ReadOptions() {
	r.Optional = nil
	for i := range r.marked {
		m := &r.marked[i]
		switch {
		case !m.asks():
		case m.field.Class == field.Option:
			r.LongCache = r.LongCache || m.name == cacheOption
			r.Options = append(r.Options, wire.PricedField{Param: m.name, Name: m.text()})
		case m.field.Class == field.Effort, m.field.Class == field.Costs:
			r.Optional = append(r.Optional, wire.PricedField{Param: m.name, Name: m.text()})
		}
	}
	for _, ttl := range r.cacheTimes {
		same := func(o wire.PricedField) bool { return o.PriceKey() == ttl.Option && o.Name == ttl.Name }
		if !slices.ContainsFunc(r.Options, same) { // a factor applies once
			r.Options = append(r.Options, ttl)
		}
	}
}

// ReadRouting notes the fields that only lines get which pass them.
func (r *Request) ReadRouting() error {
	r.Routing = nil
	for i := range r.marked {
		if m := &r.marked[i]; m.field.Class == field.Costs && m.asks() {
			r.Routing = append(r.Routing, m.name)
		}
	}
	return nil
}

// CheckVendorTools reports hosted tools that are asked for by a field of their
// own, most of them at compatible vendors.
func (r *Request) CheckVendorTools() {
	for i := range r.marked {
		if m := &r.marked[i]; m.field.Class == field.Tool && m.asks() && !isSwitchedOff(m.value) {
			r.Host(wire.PricedField{Param: m.name, Name: m.field.Tool, Options: ToolOptions(m.value, m.name)})
		}
	}
	r.readPlugins()
}

// isSwitchedOff reports whether the options of a hosted tool say that the tool
// is not to be used.
func isSwitchedOff(options []byte) bool {
	if len(options) == 0 || options[0] != '{' {
		return false
	}
	return rawjson.Unquote(rawjson.Field(options, "mode")) == "off" ||
		string(rawjson.Field(options, "enable")) == "false" || string(rawjson.Field(options, "enabled")) == "false"
}
