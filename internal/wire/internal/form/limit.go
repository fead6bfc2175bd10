package form

import (
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// limitFields are wire.LimitFields, made once.
var limitFields = wire.LimitFields()

// ReadLimit reads the client's limit, the smallest of those that it names.
func (r *Request) ReadLimit() error {
	r.Limit, r.LimitParam = 0, ""
	for _, name := range limitFields {
		raw := r.Doc.Raw(name)
		if raw == nil {
			continue
		}
		limit, ok := rawjson.Integer(raw)
		if !ok || limit < 1 {
			return fault.At(fault.InvalidMaxTokens, name, "`{param}` must be a positive integer.")
		}
		if r.Limit == 0 || limit < r.Limit {
			r.Limit, r.LimitParam = limit, name
		}
	}
	return nil
}

// leastField asks for an answer of at least so many tokens. Vendors that know it
// set it against the limit, so it goes to none.
const leastField = "min_tokens"

// SetLimit leaves one limit in the body: limit, in the given field. 0 leaves
// none.
func (r *Request) SetLimit(m *rawjson.Edits, field string, limit int64) {
	if m.Doc.Find(leastField) != nil {
		m.Drop(leastField)
	}
	for _, name := range limitFields {
		found := m.Doc.Find(name)
		switch {
		case name != field && found != nil:
			m.Drop(name)
		case name == field && limit > 0:
			if found != nil {
				if sent, _ := rawjson.Integer(m.Doc.Body[found.From:found.To]); sent == limit {
					continue
				}
			}
			m.Set(name, strconv.AppendInt(nil, limit, 10))
		}
	}
}

// LimitFields returns wire.LimitFields. Callers must not change the slice.
func LimitFields() []string { return limitFields }
