package embedding

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// The values of `encoding_format`.
const (
	formatFloat  = "float"
	formatBase64 = "base64"
)

// request is a body of POST /v1/embeddings.
type request struct {
	kind.JSONRequest

	inputs    []input
	maxTokens int64  // of an input; 0 without a limit
	format    string // of the vectors
}

// input is one input: a text, or a list of tokens.
type input struct {
	raw  []byte // JSON
	size int64  // bytes of the text, or number of tokens
}

// isText reports whether the input is a text.
func (in *input) isText() bool { return in.raw[0] == '"' }

// bound returns the highest possible number of tokens of the input. limit is the model's limit on the tokens
// of an input. Zero means no limit.
func (in *input) bound(limit int64) int64 {
	if n := in.size + slack; limit == 0 || n < limit {
		return n
	}
	return limit
}

func open(body []byte) (kind.Request, error) {
	doc, err := kind.OpenJSON(body)
	if err != nil {
		return nil, err
	}
	return &request{JSONRequest: doc}, nil
}

// Check implements kind.Request.
func (r *request) Check(l kind.ModelLimits) error {
	r.maxTokens, r.format = l.Number(maxInputTokens), formatFloat
	if err := r.CheckFields(fields); err != nil {
		return err
	}
	if err := r.readInput(l.Number(maxInputs)); err != nil {
		return err
	}
	if raw := r.JSON.Raw(dimensions); raw != nil {
		most := l.Number(dimensions)
		switch n, ok := rawjson.Integer(raw); {
		case ok && n >= 1 && (most == 0 || n <= most):
		case most == 0:
			return kind.Invalid(dimensions, "`{param}` must be an integer from 1.")
		default:
			return kind.Invalid(dimensions, "`{param}` must be an integer from 1 to %d for this model.", most)
		}
	}
	if raw := r.JSON.Raw("encoding_format"); raw != nil {
		if r.format = rawjson.Unquote(raw); r.format != formatFloat && r.format != formatBase64 {
			return kind.Invalid("encoding_format", "`{param}` must be float or base64.")
		}
	}
	return nil
}

// readInput reads `input`: a text, a list of at most limit texts, a list of tokens, or a list of at most
// limit lists of tokens.
func (r *request) readInput(limit int64) error {
	r.inputs = nil
	raw := r.JSON.Raw("input")
	switch {
	case raw == nil:
		return kind.Invalid("input", "`{param}` is required: a text, or an array of texts.")
	case raw[0] == '"':
		return r.addInput(raw, "input")
	case raw[0] != '[':
		return kind.Invalid("input", "`{param}` must be a text, an array of texts, an array of tokens, or an array of arrays of tokens.")
	}
	var first []byte
	for i, element := range rawjson.Elements(raw) {
		if i == 0 {
			if first = element; isNumber(first) {
				return r.addInput(raw, "input")
			}
		}
		param := kind.ElementOf("input", i)
		switch {
		case int64(i) >= limit:
			return kind.Invalid("input", "`{param}` must have at most %d elements for this model. Split it into several requests.", limit)
		case first[0] != '"' && first[0] != '[':
			return kind.Invalid(param, "`{param}` must be a text, or an array of tokens.")
		case element[0] != first[0]:
			return kind.Invalid(param, "`{param}` must be like the first element: `input` has either texts or arrays of tokens.")
		}
		if err := r.addInput(element, param); err != nil {
			return err
		}
	}
	if first == nil {
		return kind.Invalid("input", "`{param}` must not be empty.")
	}
	return nil
}

// addInput adds a text or a list of tokens.
func (r *request) addInput(raw []byte, param string) error {
	in := input{raw: raw}
	if in.isText() {
		if in.size = int64(len(rawjson.UnquoteBytes(raw))); in.size == 0 {
			return kind.Invalid(param, "`{param}` must not be an empty text.")
		}
		r.inputs = append(r.inputs, in)
		return nil
	}
	for i, token := range rawjson.Elements(raw) {
		if n, ok := rawjson.Integer(token); !ok || n < 0 {
			return kind.Invalid(kind.ElementOf(param, i), "`{param}` must be a token: an integer from 0.")
		}
		in.size++
	}
	switch {
	case in.size == 0:
		return kind.Invalid(param, "`{param}` must not be empty.")
	case r.maxTokens > 0 && in.size > r.maxTokens:
		return kind.Invalid(param, "`{param}` has %d tokens. This model reads at most %d.", in.size, r.maxTokens)
	}
	r.inputs = append(r.inputs, in)
	return nil
}

// isNumber reports whether value is a JSON number.
func isNumber(value []byte) bool { return value[0] == '-' || value[0] >= '0' && value[0] <= '9' }

// Parts implements kind.Request.
func (r *request) Parts(limit int64) (parts []kind.Part) {
	all := r.inputs
	if limit == 0 || int64(len(all)) <= limit {
		return []kind.Part{&part{request: r, inputs: all}}
	}
	for n := 0; n < len(all); n += int(limit) {
		parts = append(parts, &part{request: r, inputs: all[n:min(n+int(limit), len(all))], first: n, split: true})
	}
	return parts
}

// part is the part of a request that one call sends, and its answer.
type part struct {
	request *request
	inputs  []input
	first   int  // index of the first input
	split   bool // the request has further parts
	answer
}

// Body implements kind.Part.
func (p *part) Body(model string, omit []string) rawjson.Pieces {
	if !p.split {
		return p.request.Edited(model, omit, nil)
	}
	list := []byte{'['}
	for i := range p.inputs {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, p.inputs[i].raw...)
	}
	return p.request.Edited(model, omit, func(m *rawjson.Edits) { m.Set("input", append(list, ']')) })
}

// Bound implements kind.Part.
func (p *part) Bound() kind.Quantities {
	var n int64
	for i := range p.inputs {
		n = min(n+p.inputs[i].bound(p.request.maxTokens), rawjson.MaxCount)
	}
	return kind.Quantities{kind.Input: n}
}

// Count implements kind.Part.
func (p *part) Count(c *wire.Counter) kind.Quantities {
	var n int64
	for i := range p.inputs {
		tokens := p.inputs[i].size
		if p.inputs[i].isText() {
			tokens = c.Count(rawjson.UnquoteBytes(p.inputs[i].raw), tokens)
		}
		n = min(n+tokens, rawjson.MaxCount)
	}
	return kind.Quantities{kind.Input: n}
}
