package form

import (
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/rawjson"
)

// specialField is a field of a request in need of a check after CheckNames.
type specialField struct {
	field *field.FieldRule
	name  string
	value []byte // JSON, not null
}

// text returns the text of a string, or the JSON of any other value.
func (m *specialField) text() string { return textOf(m.value) }

// textOf returns the text of a string, or the beginning of any other value.
func textOf(value []byte) string {
	if rawjson.IsText(value) {
		return rawjson.Unquote(value)
	}
	return Shorten(value)
}

// hasEffect reports whether the value asks for more than the model's price covers.
func (m *specialField) hasEffect() bool { return !slices.ContainsFunc(m.field.FreeValues, m.equals) }

// equals reports whether the value is the free value of a rule. A string is not false, whatever its
// text.
func (m *specialField) equals(free string) bool {
	member, text, nested := strings.Cut(free, "=")
	switch {
	case nested:
		return rawjson.Unquote(rawjson.Field(m.value, member)) == text
	case free == "false":
		return string(m.value) == free
	}
	return m.text() == free
}

// CheckNames looks up every top-level field in the table of the form. It rejects a field known only
// in another case, since a server may ignore case. Fields not documented by the form are added to
// Extra.
func (r *Request) CheckNames(t *field.Table) error {
	r.special, r.Extra = nil, nil
	for i := range r.Doc.Members {
		m := &r.Doc.Members[i]
		known := t.Find(m.Name)
		if known == nil {
			name := string(m.Name)
			if spelling := t.Spelling(name); spelling != "" {
				return OtherCase(name, spelling)
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
			r.addSpecial(known, value)
		}
	}
	return CheckSimilarKeys(r.Doc)
}

// CheckSimilarKeys rejects a key equal to another key, or to a name read by a check, except for case.
func CheckSimilarKeys(d *rawjson.RequestBody) error {
	similar := d.SimilarKey()
	if similar == nil {
		return nil
	}
	return OtherCase(d.PathTo(similar.At), similar.Spelling)
}

// addSpecial records a field and the fields inside it for the following checks.
func (r *Request) addSpecial(known *field.FieldRule, value []byte) {
	if known.Class > field.Owned {
		r.special = append(r.special, specialField{known, known.Name, value})
	}
	for _, inner := range known.Inner {
		if at := rawjson.Field(value, inner.Name[len(known.Name)+1:]); at != nil {
			r.special = append(r.special, specialField{inner, inner.Name, at})
		}
	}
}

// OtherCase rejects a name known in another case.
func OtherCase(param, spelling string) error {
	return fault.At(fault.InvalidRequest, param,
		"`{param}` differs from the name `%s` only in capital and small letters. Write it like this, or leave it out.", spelling)
}

// CheckStored rejects fields that refer to objects stored at the provider, or would store the
// answer there.
func (r *Request) CheckStored() error {
	for i := range r.special {
		switch m := &r.special[i]; {
		case m.field.Class == field.Stored:
			return StoredError(m.name)
		case m.field.Class == field.Later && m.hasEffect():
			return fault.At(fault.InvalidRequest, m.name,
				"`{param}` is not offered: the answer would be stored at the provider. Leave it out.")
		}
	}
	return nil
}

// readOptions collects the fields with values of a different price.
func (r *Request) readOptions() {
	r.Optional, r.Routing = nil, nil
	for i := range r.special {
		m := &r.special[i]
		switch {
		case !m.hasEffect():
		case m.field.Class == field.Option:
			r.LongCache = r.LongCache || m.name == cacheOption
			r.Options = append(r.Options, wire.PricedField{Param: m.name, Name: m.text()})
		case m.field.Class == field.Effort, m.field.Class == field.Costs:
			r.Optional = append(r.Optional, wire.PricedField{Param: m.name, Name: m.text()})
			if m.field.Class == field.Costs {
				r.Routing = append(r.Routing, m.name)
			}
		}
	}
	for _, ttl := range r.cacheTimes {
		same := func(o wire.PricedField) bool { return o.PriceKey() == ttl.Option && o.Name == ttl.Name }
		if !slices.ContainsFunc(r.Options, same) { // the price factor of an option applies once
			r.Options = append(r.Options, ttl)
		}
	}
}

// CheckVendorTools collects hosted tools requested by a field of their own, most of them at
// compatible vendors.
func (r *Request) CheckVendorTools() {
	for i := range r.special {
		if m := &r.special[i]; m.field.Class == field.Tool && m.hasEffect() {
			r.AddHosted(wire.PricedField{Param: m.name, Name: m.field.Tool, Options: ToolOptions(m.value, m.name)})
		}
	}
	r.readPlugins()
}
