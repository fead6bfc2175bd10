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

// chain translates a stream twice, with chat completions in between, if the line's form and the
// client's have no translator of their own. It is not safe for concurrent use.
type chain struct {
	first, second wire.Writer
	meter         wire.Meter // of the chat completions in between
	buffer        []byte
}

func (c *chain) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	c.buffer = c.first.Append(c.buffer[:0], e, f)
	return c.pass(dst, f.Finished)
}

func (c *chain) End(dst []byte, u wire.Usage) []byte {
	c.buffer = c.first.End(c.buffer[:0], u)
	return c.second.End(c.pass(dst, true), u)
}

func (c *chain) Fail(dst []byte, err *fault.Error) []byte { return c.second.Fail(dst, err) }

// pass passes the buffer to the second writer. finished is set once the line's stream has finished:
// from then on nothing is sent before the settlement, not even events before the finish in the
// buffer.
func (c *chain) pass(dst []byte, finished bool) []byte {
	for e := range sse.Each(c.buffer) {
		f, err := c.meter.Read(e)
		if err != nil {
			continue // the first writer writes JSON
		}
		f.Finished = f.Finished || finished
		dst = c.second.Append(dst, e, f)
	}
	return dst
}

// chainPair translates a request twice, with chat completions in between.
type chainPair struct {
	wire.Pair    // for the client's form and a chat line
	client, form wire.Form
	id           wire.Identity
	second       wire.Pair // for chat completions and the line
}

// viaChat returns the pair for a line, given the pair for a chat line.
func viaChat(first wire.Pair, client, line wire.Form, id wire.Identity) wire.Pair {
	if line == wire.FormChat {
		return first
	}
	// Answers need only this much of the request in between: one choice with usage.
	between := &completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: true}}}
	return chainPair{first, client, line, id, chatOn(between, line, id)}
}

func (s chainPair) Body(t wire.Translation) (rawjson.Pieces, error) {
	raw, err := s.Pair.Body(t)
	if err != nil {
		return nil, err
	}
	out, err := s.fromChat(raw.Bytes(), t)
	if err != nil {
		return nil, s.renameParam(err)
	}
	return out, nil
}

// fromChat translates a body of chat completions for the line.
func (s chainPair) fromChat(raw []byte, t wire.Translation) (rawjson.Pieces, error) {
	r, err := completions.Open(raw)
	if err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return chatOn(r, s.form, s.id).Body(t)
}

// renameParam returns an error of the body in between with the client's field as Param.
func (s chainPair) renameParam(err error) error {
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

// fieldOf returns the client's name of a field of chat completions.
func (s chainPair) fieldOf(field string) string {
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

func (s chainPair) Events() (wire.Meter, wire.Writer) {
	m, first := s.second.Events()
	_, second := s.Pair.Events()
	return m, &chain{first: first, second: second, meter: completions.NewMeter(1)}
}

func (s chainPair) Read(raw []byte) (wire.Answer, error) { return s.second.Read(raw) }

func (s chainPair) Render(a wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	pieces, err := s.second.Render(a, raw, u)
	if err != nil {
		return pieces, err
	}
	return s.Pair.Render(nil, bytes.Join(pieces[:], nil), u)
}
