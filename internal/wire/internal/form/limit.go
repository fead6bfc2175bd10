package form

import (
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// limitFields are the names by which vendors take the limit on output tokens.
// Each obeys some of them and ignores the others, or lets one win, so all that a
// client sends are read, and the line gets the smallest in one field.
var limitFields = [...]string{
	"max_tokens", "max_completion_tokens", "max_output_tokens",
	"max_new_tokens", "max_tokens_to_sample", "n_predict", "num_predict",
}

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
			return fault.At(fault.InvalidMaxTokens, name, "`%s` must be a positive integer.", name)
		}
		if r.Limit == 0 || limit < r.Limit {
			r.Limit, r.LimitParam = limit, name
		}
	}
	return nil
}

// SetLimit leaves one limit in the body: limit, in the given field. 0 leaves
// none.
func (r *Request) SetLimit(m *rawjson.Edits, field string, limit int64) {
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

// LimitFields returns the names by which vendors take the limit on output tokens.
func LimitFields() [len(limitFields)]string { return limitFields }
