package responses

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the events of a responses stream. It looks only at the output in deltas, and
// tolerates vendors' deviations (no event names, a closing `[DONE]`, answers without deltas). It is
// not safe for concurrent use.
type meter struct {
	form.Meter
	reports form.Reports
	tier    string

	hasToken    bool // an event with a token was read
	deltasShown bool // the last added item had deltas
	ended       bool // after the terminal event of an answer
}

// Read implements wire.Meter. The terminal event is both Finished and Done.
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
		if delta != nil && m.hasToken {
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
	m.hasToken = m.hasToken || f.Token
	f.Finished = m.ended
	return f, nil
}

// readDelta returns an event's type, and its delta if the event is one.
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

// readDelta reads a delta of an event's type and reports whether it is a token.
func (m *meter) readDelta(kind, delta []byte) (token bool) {
	if !m.AddAll(delta, 0) {
		return false
	}
	if bytes.HasPrefix(kind, []byte("response.reasoning")) {
		m.Reasoning = true
	} else {
		m.Content = true
	}
	m.deltasShown = true
	return true
}

// readEvent reads an event other than a delta.
func (m *meter) readEvent(kind string, data []byte, f *wire.Frame) {
	switch kind {
	case "response.output_item.added":
		m.deltasShown = false
		item := rawjson.Field(data, "item")
		if name := rawjson.Field(item, "name"); name != nil && isClientCall(item) {
			m.Add(name)
			m.Content, f.Token = true, true
		}
	case "response.output_item.done":
		item := rawjson.Field(data, "item")
		if !m.deltasShown {
			f.Token = addOutputItem(&m.Output, item)
		}
		addHostedCall(&m.Output, item)
	case "response.image_generation_call.partial_image":
		m.Content, f.Token, m.deltasShown = true, true, true
	case "response.created", "response.in_progress", "response.queued":
		m.reports.Add(form.ReadUsage(rawjson.Field(rawjson.Field(data, "response"), "usage")), false)
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

// readEnd reads the response of a terminal event. Its usage counts even if the answer failed.
func (m *meter) readEnd(response []byte, kind string, f *wire.Frame) {
	r := readResponse(response)
	m.reports.Add(r.usage, true)
	f.Usage = r.usage.CountedPrompt && r.usage.CountedCompletion
	m.tier = r.tier
	streamed := m.Tools
	m.Tools = nil
	items := 0
	for _, item := range rawjson.Elements(r.output) {
		items++
		if !m.hasToken {
			f.Token = addOutputItem(&m.Output, item) || f.Token
		}
		addHostedCall(&m.Output, item)
	}
	if items == 0 {
		m.Tools = streamed
	}
	if kind = kind[len("response."):]; r.status == "" || form.FinishOf(kind) == form.FinishFailed {
		r.status = kind
	}
	if f.Err = r.failed(); f.Err != nil {
		return
	}
	m.Finish(r.finish())
	f.Finish, f.Done = true, true
	m.ended = true
}

// Usage implements wire.Meter. The final usage comes with the terminal event.
func (m *meter) Usage() (wire.Usage, bool) {
	return m.reports.Complete(m.tier, m.Tools), m.reports.IsFinal()
}

func (m *meter) Complete() bool { return m.ended }

// NewMeter returns the meter of a stream.
func NewMeter() wire.Meter { return new(meter) }
