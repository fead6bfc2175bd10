// Package customtools owns the translation of chat completions with custom tools, which take free
// text, for lines of the form with functions only: a function with one string replaces each custom tool, and
// its calls become calls of the tool again in the answer.
//
// Invariants: a call of another tool is unchanged; in a stream the input of a custom tool is sent
// as a whole, before the finish of its choice.
package customtools

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/rawjson"
)

// Has reports whether a request has custom tools.
func Has(r *completions.Request) bool {
	tools := r.Doc.Raw("tools")
	return bytes.Contains(tools, []byte(`"custom"`)) && len(namesIn(tools)) > 0
}

// namesIn returns the names of the custom tools in a list.
func namesIn(tools []byte) map[string]bool {
	names := map[string]bool{}
	for _, tool := range rawjson.Elements(tools) {
		if name := rawjson.Unquote(rawjson.Field(customOf(tool), "name")); name != "" {
			names[name] = true
		}
	}
	return names
}

// customOf returns the member `custom` of a tool, a call or a choice of type custom, or nil.
func customOf(payload []byte) []byte {
	if rawjson.Unquote(rawjson.Field(payload, "type")) != "custom" {
		return nil
	}
	return rawjson.Field(payload, "custom")
}

// New returns the pair for a request with custom tools and a line of the same form. OpenAI's hosts
// have custom tools, others get functions.
func New(r *completions.Request, id wire.Identity) wire.Pair {
	c := customTools{Pair: r.Direct(id), native: r.Direct(id)}
	functions, err := completions.Open(withFunctions(r))
	if err == nil {
		err = functions.Check()
	}
	if c.err = err; err == nil {
		c.Pair, c.names = functions.Direct(id), namesIn(r.Doc.Raw("tools"))
	}
	return c
}

// customTools replaces custom tools by functions.
type customTools struct {
	wire.Pair           // of the request with functions
	err       error     // the request with functions is invalid
	native    wire.Pair // of the unchanged request
	names     map[string]bool
}

// Body implements wire.Pair.
func (c customTools) Body(t wire.Translation) (rawjson.Pieces, error) {
	switch {
	case t.OpenAI:
		return c.native.Body(t)
	case c.err != nil:
		return nil, c.err
	}
	return c.Pair.Body(t)
}

func (c customTools) Events() (wire.Meter, wire.Writer) {
	m, w := c.Pair.Events()
	return m, &stream{first: w, names: c.names}
}

func (c customTools) Render(a wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	pieces, err := c.Pair.Render(a, raw, u)
	if err != nil {
		return pieces, err
	}
	return [3][]byte{withCustomCalls(bytes.Join(pieces[:], nil), c.names)}, nil
}
