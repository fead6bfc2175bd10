// Package customtools owns how chat completions with custom tools, which take free
// text, meet lines that have functions alone: a function with one string stands
// for each, and its calls become the tool's again in the answer.
//
// Invariants: a call of a tool that is no custom one passes as it is; of a
// stream the input of a custom tool goes out whole, before the choice that calls
// it has finished.
package customtools

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/rawjson"
)

// Has tells whether a request brings custom tools.
func Has(r *completions.Request) bool {
	tools := r.Doc.Raw("tools")
	return bytes.Contains(tools, []byte(`"custom"`)) && len(namesIn(tools)) > 0
}

// namesIn returns the names of the custom tools of a list.
func namesIn(tools []byte) map[string]bool {
	names := map[string]bool{}
	for _, tool := range rawjson.Elements(tools) {
		if name := rawjson.Unquote(rawjson.Field(customOf(tool), "name")); name != "" {
			names[name] = true
		}
	}
	return names
}

// customOf returns what a tool, a call or a choice says of a custom tool; nil where
// it is another one.
func customOf(of []byte) []byte {
	if rawjson.Unquote(rawjson.Field(of, "type")) != "custom" {
		return nil
	}
	return rawjson.Field(of, "custom")
}

// New is how a request with custom tools meets a line, given how one meets it
// without. native tells that the line's form has them, though not all of its hosts.
func New(r *completions.Request, on func(*completions.Request) wire.Pair, native bool) wire.Pair {
	c := customTools{Pair: on(r)}
	if native {
		c.native = c.Pair
	}
	functions, err := completions.Open(withFunctions(r))
	if err == nil {
		err = functions.Check()
	}
	if c.err = err; err == nil {
		c.Pair, c.names = on(functions), namesIn(r.Doc.Raw("tools"))
	}
	return c
}

// customTools puts functions in the place of custom tools.
type customTools struct {
	wire.Pair           // of the request with functions
	err       error     // why there is no such request
	native    wire.Pair // of the request as it is; nil: the line's form has no custom tools
	names     map[string]bool
}

// Body implements Pair. OpenAI's hosts have custom tools.
func (c customTools) Body(t wire.Translation) (rawjson.Pieces, error) {
	switch {
	case c.native != nil && t.OpenAI:
		return c.native.Body(t)
	case c.err != nil:
		return nil, c.err
	}
	return c.Pair.Body(t)
}

// Events implements Pair.
func (c customTools) Events() (wire.Meter, wire.Writer) {
	m, w := c.Pair.Events()
	return m, &stream{first: w, names: c.names}
}

// Render implements Pair.
func (c customTools) Render(a wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	pieces, err := c.Pair.Render(a, raw, u)
	if err != nil {
		return pieces, err
	}
	return [3][]byte{withCustomCalls(bytes.Join(pieces[:], nil), c.names)}, nil
}
