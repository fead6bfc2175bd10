package messages

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the events of a stream of the messages form as they
// pass. Ordinary deltas are not decoded: their text is found by its place. Not
// for concurrent use.
type meter struct {
	form.Meter
	usage usageSum

	begun bool // a token came
	ended bool // a stop_reason or message_stop came

	head    []byte // an ordinary delta up to its text, with the opening quote
	thought bool   // what kind of text follows head
}

// Read reads the next event. It returns ErrMalformed for data that is no JSON
// object; events after the first token are checked by their brackets alone.
// Events that nobody knows mean nothing.
func (m *meter) Read(e sse.Event) (wire.Frame, error) {
	data := bytes.TrimSpace(e.Data)
	f := wire.Frame{}
	switch {
	case len(data) == 0:
	case e.Name == "error":
		f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
	case string(data) == "[DONE]": // of hosts that mix the forms
		f.Done = true
	case data[0] != '{' || data[len(data)-1] != '}':
		return wire.Frame{}, wire.ErrMalformed
	case m.readAlike(data):
		f.Token = true
	case !m.begun && !rawjson.IsValid(data):
		return wire.Frame{}, wire.ErrMalformed
	default:
		m.readEvent(data, &f)
	}
	m.begun = m.begun || f.Token
	f.Finished = m.ended
	return f, nil
}

// readAlike reads a delta that looks like the last one around its text.
func (m *meter) readAlike(data []byte) bool {
	if len(m.head) == 0 || !bytes.HasPrefix(data, m.head) {
		return false
	}
	quote := len(m.head) - 1
	end := rawjson.SkipText(data, quote)
	if end-quote <= 2 || !isTail(data[end:]) {
		return false
	}
	m.addText(data[quote:end], m.thought)
	return true
}

// isTail tells whether nothing but the ends of a delta and its event follow.
// Providers pad their events with spaces.
func isTail(rest []byte) bool {
	braces := 0
	for _, c := range rest {
		switch c {
		case '}':
			braces++
		case ' ', '\t', '\r', '\n':
		default:
			return false
		}
	}
	return braces == 2
}

// addText adds a text, given as a JSON string.
func (m *meter) addText(text []byte, thought bool) {
	m.Add(text)
	if thought {
		m.Reasoning = true
	} else {
		m.Content = true
	}
}

// readEvent reads any event.
func (m *meter) readEvent(data []byte, f *wire.Frame) {
	var kind, block, message, usage, failure []byte
	var delta rawjson.Member
	for v := range rawjson.Spans(data) {
		value := data[v.From:v.To]
		switch string(v.Name) {
		case "type":
			kind = rawjson.UnquoteBytes(value)
		case "delta":
			delta = v
		case "content_block":
			block = value
		case "message":
			message = value
		case "usage":
			usage = value
		case "error":
			failure = rawjson.NonNull(value)
		}
	}
	switch string(kind) {
	case "content_block_delta":
		f.Token = m.readDelta(data, delta)
	case "content_block_start":
		f.Token = noteBlock(&m.Output, block)
	case "message_start":
		m.usage.merge(rawjson.Field(message, "usage"), false)
		f.Usage = m.usage.hasInput
	case "message_delta":
		m.readEnd(data[delta.From:delta.To], f)
		f.Usage = m.usage.merge(usage, m.ended)
		if m.Filtered() && !m.begun && string(rawjson.Field(usage, "output_tokens")) == "0" {
			m.usage.output, m.usage.final = 0, true // the count with which a stream begins is none of a refusal's
		}
	case "message_stop":
		f.Done, m.ended = true, true
	default:
		if failure != nil || string(kind) == "error" {
			f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
		}
	}
}

// readDelta reads what a delta adds to its block and tells whether that is a
// token. Signatures are none.
func (m *meter) readDelta(data []byte, at rawjson.Member) (token bool) {
	delta := data[at.From:at.To]
	var kind []byte
	var text rawjson.Member
	alone := true // type and text are all there is
	for v := range rawjson.Spans(delta) {
		switch string(v.Name) {
		case "type":
			kind = rawjson.UnquoteBytes(delta[v.From:v.To])
		case "text", "thinking", "partial_json":
			text = v
		default:
			alone = false
		}
	}
	switch string(kind) {
	case "text_delta", "thinking_delta", "input_json_delta":
		value := delta[text.From:text.To]
		if !rawjson.IsText(value) || len(value) == 2 {
			return false
		}
		thought := string(kind) == "thinking_delta"
		m.addText(value, thought)
		if alone {
			m.learn(data, at.From+text.From, at.From+text.To, thought)
		}
		return true
	case "signature_delta":
		return false
	case "citations_delta": // what is cited was not produced
		return len(rawjson.Field(delta, "citation")) > 2
	}
	token = m.Take(delta, 0)
	m.Content = m.Content || token
	return token
}

// learn remembers what stands before the text of a delta: the next ones begin
// with the same bytes.
func (m *meter) learn(data []byte, from, to int, thought bool) {
	const longest = 1024
	m.head = m.head[:0]
	if from <= longest && isTail(data[to:]) {
		m.head, m.thought = append(m.head, data[:from+1]...), thought
	}
}

// readEnd reads how the answer ended.
func (m *meter) readEnd(delta []byte, f *wire.Frame) {
	reason := rawjson.Unquote(rawjson.Field(delta, "stop_reason"))
	switch kind := form.KindOfFinish(reason); kind {
	case form.FinishNone:
	case form.FinishFailed:
		f.Err = &wire.ProviderError{Reason: reason}
	default:
		f.Finish, m.ended = true, true
		m.Finish(kind)
	}
}

// Usage returns what the provider reported; false until it has counted the
// whole answer. The prompt's counts come with the first event; before the end
// the completion's may be too low.
func (m *meter) Usage() (wire.Usage, bool) {
	return m.usage.result(m.Tools.ToolCalls), m.usage.known()
}

// Complete tells whether the end of the answer was seen.
func (m *meter) Complete() bool { return m.ended }

// NewMeter makes the meter of a stream.
func NewMeter() wire.Meter { return new(meter) }
