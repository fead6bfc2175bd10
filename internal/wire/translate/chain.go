package translate

import (
	"bytes"
	"errors"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// chain writes a stream by way of chat completions, where no translator leads
// from the line's form to the client's. Not for concurrent use.
type chain struct {
	first, second wire.Writer
	meter         wire.Meter // of what lies between the two
	between       []byte
}

// newChain makes a writer of two: first writes chat completions, always with
// the usage frame, and second makes of them what the client gets.
func newChain(first, second wire.Writer) *chain {
	return &chain{first: first, second: second, meter: completions.NewMeter(1)}
}

// Append implements Writer.
func (c *chain) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	c.between = c.first.Append(c.between[:0], e, f)
	return c.pass(dst, f.Finished)
}

// End implements Writer.
func (c *chain) End(dst []byte, u wire.Usage) []byte {
	c.between = c.first.End(c.between[:0], u)
	return c.second.End(c.pass(dst, true), u)
}

// Fail implements Writer.
func (c *chain) Fail(dst []byte, err *fault.Error) []byte { return c.second.Fail(dst, err) }

// pass hands what lies between to the second writer. finished tells that the
// line's stream has finished: from there on nothing goes out before the
// settlement, also what stands before the finish in between.
func (c *chain) pass(dst []byte, finished bool) []byte {
	for e := range sse.Each(c.between) {
		f, err := c.meter.Read(e)
		if err != nil {
			continue // the first writer writes JSON
		}
		f.Finished = f.Finished || finished
		dst = c.second.Append(dst, e, f)
	}
	return dst
}

// chained puts a request to a line by way of chat completions.
type chained struct {
	wire.Pair    // of the client's form on a line of chat completions
	client, form wire.Form
	id           wire.Identity
	second       wire.Pair // of chat completions on the line
}

// byChat is how a request meets a line of a form, given how it meets one of
// chat completions.
func byChat(first wire.Pair, client, line wire.Form, id wire.Identity) wire.Pair {
	if line == wire.FormChat {
		return first
	}
	// What answers need of the request between the two: it asks for one choice
	// and its usage.
	between := &completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: true}}}
	return chained{first, client, line, id, chatOn(between, line, id)}
}

// Body implements Pair.
func (s chained) Body(t wire.Translation) (rawjson.Pieces, error) {
	raw, err := s.Pair.Body(t)
	if err != nil {
		return nil, err
	}
	out, err := s.fromChat(raw.Bytes(), t)
	if err != nil {
		return nil, s.refused(err)
	}
	return out, nil
}

// fromChat puts a body of chat completions into the line's form.
func (s chained) fromChat(raw []byte, t wire.Translation) (rawjson.Pieces, error) {
	r, err := completions.Open(raw)
	if err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return chatOn(r, s.form, s.id).Body(t)
}

// refused returns the error of the intermediate body with the client's field as Param.
func (s chained) refused(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Param == "" {
		return err
	}
	field := f.Param
	if i := strings.IndexAny(field, ".["); i >= 0 {
		field = field[:i]
	}
	renamed := *f
	renamed.Param = s.fieldOf(field)
	return &renamed
}

// fieldOf is the client's name of a field of chat completions.
func (s chained) fieldOf(field string) string {
	switch {
	case field == "messages" && s.client == wire.FormResponses:
		return "input"
	case field == "response_format" && s.client == wire.FormResponses:
		return "text"
	case field == "response_format":
		return "output_config"
	case field == "reasoning_effort" && s.client == wire.FormResponses:
		return "reasoning"
	case field == "reasoning_effort":
		return "thinking"
	}
	return field
}

// Events implements Pair.
func (s chained) Events() (wire.Meter, wire.Writer) {
	m, first := s.second.Events()
	_, second := s.Pair.Events()
	return m, newChain(first, second)
}

// Read implements Pair.
func (s chained) Read(raw []byte) (wire.Answer, error) { return s.second.Read(raw) }

// Render implements Pair.
func (s chained) Render(a wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	pieces, err := s.second.Render(a, raw, u)
	if err != nil {
		return pieces, err
	}
	return s.Pair.Render(nil, bytes.Join(pieces[:], nil), u)
}
