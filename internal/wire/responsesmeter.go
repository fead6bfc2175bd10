package wire

import (
	"bytes"

	"tollgate/internal/wire/rawjson"
)

// ResponsesMeter reads the events of a responses stream as they pass. Deltas
// are looked at for what they add and nothing else; vendors' deviations (no
// event names, a closing `[DONE]`, answers without deltas) are tolerated. Not
// for concurrent use.
type ResponsesMeter struct {
	made     produced
	reports  reports
	tier     string
	filtered bool
	limited  bool

	begun bool // a token came
	shown bool // the last item that was added has shown deltas
	ended bool // the terminal event of an answer came
}

// newResponsesMeter makes the meter of a stream.
func newResponsesMeter() *ResponsesMeter { return &ResponsesMeter{} }

// Read reads the next event. It returns ErrMalformed for data that is no JSON
// object; deltas after the first token are checked by their brackets alone.
// The terminal event is Finished and Done at once.
func (m *ResponsesMeter) Read(e Event) (Frame, error) {
	data := bytes.TrimSpace(e.Data)
	f := Frame{}
	switch {
	case len(data) == 0:
	case string(data) == "[DONE]":
		f.Done = true
	case data[0] != '{' || data[len(data)-1] != '}':
		if e.Name != "error" {
			return Frame{}, ErrMalformed
		}
		f.Err = &ProviderError{Body: bytes.Clone(data)}
	default:
		kind, delta := readDelta(data)
		if delta != nil && m.begun {
			f.Token = m.readDelta(kind, delta)
			break
		}
		if !rawjson.IsValid(data) {
			return Frame{}, ErrMalformed
		}
		switch {
		case delta != nil:
			f.Token = m.readDelta(kind, delta)
		case kind == nil:
			m.readEvent(e.Name, data, &f)
		default:
			m.readEvent(string(kind), data, &f)
		}
	}
	m.begun = m.begun || f.Token
	f.Finished = m.ended
	return f, nil
}

// readDelta returns an event's type, and its delta when the type is that of
// one.
func readDelta(data []byte) (kind, delta []byte) {
	for name, value := range rawjson.Members(data) {
		switch string(name) {
		case "type":
			if !rawjson.IsText(value) {
				return nil, nil
			}
			if kind = value[1 : len(value)-1]; !bytes.HasSuffix(kind, []byte(".delta")) {
				return kind, nil
			}
		case "delta":
			delta = value
		}
		if kind != nil && delta != nil {
			return kind, delta
		}
	}
	return kind, nil
}

// readDelta reads a delta of any kind.
func (m *ResponsesMeter) readDelta(kind, delta []byte) (token bool) {
	if !m.made.take(delta, 0) {
		return false
	}
	if bytes.HasPrefix(kind, []byte("response.reasoning")) {
		m.made.reasoning = true
	} else {
		m.made.content = true
	}
	m.shown = true
	return true
}

// readEvent reads an event that is no delta.
func (m *ResponsesMeter) readEvent(kind string, data []byte, f *Frame) {
	switch kind {
	case "response.output_item.added":
		m.shown = false
		item := rawjson.Field(data, "item")
		if name := rawjson.Field(item, "name"); name != nil && isOwnCall(item) {
			m.made.add(name)
			m.made.content, f.Token = true, true
		}
	case "response.output_item.done":
		item := rawjson.Field(data, "item")
		if !m.shown {
			f.Token = noteItem(&m.made, item)
		}
		noteHostedItem(&m.made, item)
	case "response.image_generation_call.partial_image":
		m.made.content, f.Token, m.shown = true, true, true
	case "response.created", "response.in_progress", "response.queued":
		m.reports.take(readResponsesUsage(rawjson.Field(rawjson.Field(data, "response"), "usage")), false)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		m.readEnd(rawjson.Field(data, "response"), kind, f)
	case "error":
		f.Err = &ProviderError{Body: errorBody(data)}
	default:
		if kind == "" && isError(data, false) {
			f.Err = &ProviderError{Body: bytes.Clone(data)}
		}
	}
}

// readEnd reads the response of a terminal event. What it says about usage
// counts also where the answer failed.
func (m *ResponsesMeter) readEnd(response []byte, kind string, f *Frame) {
	r := readResponse(response)
	m.reports.take(r.usage, true)
	f.Usage = r.usage.prompt && r.usage.completion
	m.tier = r.tier
	counted := m.made.tools
	m.made.tools = Usage{}
	items := 0
	for _, item := range rawjson.Elements(r.output) {
		items++
		if !m.begun {
			f.Token = noteItem(&m.made, item) || f.Token
		}
		noteHostedItem(&m.made, item)
	}
	if items == 0 {
		m.made.tools = counted
	}
	if r.status == "" {
		r.status = kind[len("response."):]
	}
	if f.Err = r.failed(); f.Err != nil {
		return
	}
	m.limited, m.filtered = r.limited(), r.filtered()
	f.Finish, f.Done = true, true
	m.ended = true
}

// Usage returns what the provider reported, with the tier and the hosted tools
// that the events showed; false until its last word, which comes with the
// terminal event. Before that, counts may be too low.
func (m *ResponsesMeter) Usage() (Usage, bool) {
	return m.reports.with(m.tier, m.made.tools.ToolCalls), m.reports.known()
}

// Complete tells whether the answer's terminal event was seen.
func (m *ResponsesMeter) Complete() bool { return m.ended }

// Filtered tells whether the answer was ended by the provider's content filter.
func (m *ResponsesMeter) Filtered() bool { return m.filtered }

// Limited tells whether the answer was ended by the limit of tokens.
func (m *ResponsesMeter) Limited() bool { return m.limited }

// Text returns what was produced so far (text, reasoning, tool calls), as far
// as it is kept. It is valid until the next Read.
func (m *ResponsesMeter) Text() []byte { return m.made.text }

// Completion returns our own count of the tokens produced so far.
func (m *ResponsesMeter) Completion(c *Counter) int64 { return c.Count(m.made.text, m.made.bytes) }

// Estimate is a rough count of the tokens produced so far, without looking
// into the text.
func (m *ResponsesMeter) Estimate() int64 {
	return m.made.estimate()
}

// NewResponsesMeter makes the meter of a stream.
func NewResponsesMeter() Meter { return newResponsesMeter() }
