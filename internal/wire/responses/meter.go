package responses

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the events of a responses stream as they pass. Deltas
// are looked at for what they add and nothing else; vendors' deviations (no
// event names, a closing `[DONE]`, answers without deltas) are tolerated. Not
// for concurrent use.
type meter struct {
	form.Meter
	reports form.Reports
	tier    string

	begun bool // a token came
	shown bool // the last item that was added has shown deltas
	ended bool // the terminal event of an answer came
}

// Read reads the next event. It returns ErrMalformed for data that is no JSON
// object; deltas after the first token are checked by their brackets alone.
// The terminal event is Finished and Done at once.
func (m *meter) Read(e sse.Event) (wire.Frame, error) {
	data := bytes.TrimSpace(e.Data)
	f := wire.Frame{}
	switch {
	case len(data) == 0:
	case string(data) == "[DONE]":
		f.Done = true
	case data[0] != '{' || data[len(data)-1] != '}':
		if e.Name != "error" {
			return wire.Frame{}, wire.ErrMalformed
		}
		f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
	default:
		kind, delta := readDelta(data)
		if delta != nil && m.begun {
			f.Token = m.readDelta(kind, delta)
			break
		}
		if !rawjson.IsValid(data) {
			return wire.Frame{}, wire.ErrMalformed
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
func (m *meter) readDelta(kind, delta []byte) (token bool) {
	if !m.Take(delta, 0) {
		return false
	}
	if bytes.HasPrefix(kind, []byte("response.reasoning")) {
		m.Reasoning = true
	} else {
		m.Content = true
	}
	m.shown = true
	return true
}

// readEvent reads an event that is no delta.
func (m *meter) readEvent(kind string, data []byte, f *wire.Frame) {
	switch kind {
	case "response.output_item.added":
		m.shown = false
		item := rawjson.Field(data, "item")
		if name := rawjson.Field(item, "name"); name != nil && isOwnCall(item) {
			m.Add(name)
			m.Content, f.Token = true, true
		}
	case "response.output_item.done":
		item := rawjson.Field(data, "item")
		if !m.shown {
			f.Token = noteItem(&m.Output, item)
		}
		noteHostedItem(&m.Output, item)
	case "response.image_generation_call.partial_image":
		m.Content, f.Token, m.shown = true, true, true
	case "response.created", "response.in_progress", "response.queued":
		m.reports.Take(form.ReadUsage(rawjson.Field(rawjson.Field(data, "response"), "usage")), false)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		m.readEnd(rawjson.Field(data, "response"), kind, f)
	case "error":
		f.Err = &wire.ProviderError{Body: errorBody(data)}
	default:
		if kind == "" && form.IsError(data, false) {
			f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
		}
	}
}

// readEnd reads the response of a terminal event. What it says about usage
// counts also where the answer failed.
func (m *meter) readEnd(response []byte, kind string, f *wire.Frame) {
	r := readResponse(response)
	m.reports.Take(r.usage, true)
	f.Usage = r.usage.CountedPrompt && r.usage.CountedCompletion
	m.tier = r.tier
	counted := m.Tools
	m.Tools = wire.Usage{}
	items := 0
	for _, item := range rawjson.Elements(r.output) {
		items++
		if !m.begun {
			f.Token = noteItem(&m.Output, item) || f.Token
		}
		noteHostedItem(&m.Output, item)
	}
	if items == 0 {
		m.Tools = counted
	}
	if r.status == "" {
		r.status = kind[len("response."):]
	}
	if f.Err = r.failed(); f.Err != nil {
		return
	}
	m.Finish(r.finish())
	f.Finish, f.Done = true, true
	m.ended = true
}

// Usage returns what the provider reported, with the tier and the hosted tools
// that the events showed; false until its last word, which comes with the
// terminal event. Before that, counts may be too low.
func (m *meter) Usage() (wire.Usage, bool) {
	return m.reports.With(m.tier, m.Tools.ToolCalls), m.reports.Known()
}

// Complete tells whether the answer's terminal event was seen.
func (m *meter) Complete() bool { return m.ended }

// NewMeter makes the meter of a stream.
func NewMeter() wire.Meter { return new(meter) }
