package form

import (
	"slices"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// limitFields caches the result of wire.LimitFields.
var limitFields = wire.LimitFields()

// ReadLimit reads the smallest of the client's limits, and the output that none of them bounds.
func (r *Request) ReadLimit() error {
	r.Limit, r.LimitParam = 0, ""
	r.readBeyondLimit()
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

// readBeyondLimit adds the budget of thinking, which the limit of Qwen's models does not bound, and
// the size of predicted text, which OpenAI bills as output if the answer does not use it.
func (r *Request) readBeyondLimit() {
	r.BeyondLimit = 0
	if raw := r.Doc.Raw("thinking_budget"); raw != nil {
		budget, ok := rawjson.Integer(raw)
		if !ok || budget < 0 {
			budget = rawjson.MaxCount
		}
		r.BeyondLimit = min(budget, rawjson.MaxCount)
	}
	r.BeyondLimit += int64(len(r.Doc.Raw("prediction")))
}

// minFields are the vendors' names for a minimum of output tokens. None is sent, because vendors
// compare the minimum with the limit, and the gateway may set another limit.
var minFields = []string{"min_tokens", "min_completion_tokens"}

var allLimitFields = slices.Concat(limitFields, minFields)

// SetLimit leaves one limit in the body, in the given field, or none if limit is 0.
func (r *Request) SetLimit(m *rawjson.Edits, field string, limit int64) {
	for _, name := range minFields {
		if m.Doc.Find(name) != nil {
			m.Drop(name)
		}
	}
	for _, name := range limitFields {
		found := m.Doc.Find(name)
		switch {
		case name != field && found != nil:
			m.Drop(name)
		case name == field && limit > 0:
			if found != nil {
				if current, _ := rawjson.Integer(m.Doc.Body[found.From:found.To]); current == limit {
					continue
				}
			}
			m.Set(name, strconv.AppendInt(nil, limit, 10))
		}
	}
}

// LimitFields returns the fields for a limit or a minimum of output tokens. Callers must not change
// the slice.
func LimitFields() []string { return allLimitFields }
