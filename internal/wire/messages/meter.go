package messages

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the events of a messages stream. Ordinary deltas are not decoded; their text is found
// by its position. It is not safe for concurrent use.
type meter struct {
	form.Meter
	usage usageSum

	hasToken bool // an event with a token was read
	ended    bool // after a stop_reason or message_stop

	head    []byte // an ordinary delta up to its text, including the opening quote
	thought bool   // the text after head is reasoning
}

// Read implements wire.Meter. It ignores unknown events.
func (m *meter) Read(e sse.Event) (wire.Frame, error) {
	data := bytes.TrimSpace(e.Data)
	f := wire.Frame{}
	switch {
	case len(data) == 0:
	case e.Name == "error":
		f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
	case string(data) == "[DONE]": // from hosts that mix the forms
		f.Done = true
	case data[0] != '{' || data[len(data)-1] != '}':
		return wire.Frame{}, wire.ErrMalformed
	case m.readSimilar(data):
		f.Token = true
	case !m.hasToken && !rawjson.IsValid(data):
		return wire.Frame{}, wire.ErrMalformed
	default:
		m.readEvent(data, &f)
	}
	m.hasToken = m.hasToken || f.Token
	f.Finished = m.ended
	return f, nil
}

// readSimilar reads a delta that differs from the last one only in its text.
func (m *meter) readSimilar(data []byte) bool {
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

// isTail reports whether only the closing braces of a delta and its event follow. Providers pad
// their events with spaces.
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

// addText adds a text, a JSON string.
func (m *meter) addText(text []byte, thought bool) {
	m.Add(text)
	if thought {
		m.Reasoning = true
	} else {
		m.Content = true
	}
}

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
		f.Token = addBlock(&m.Output, block)
	case "message_start":
		m.usage.merge(rawjson.Field(message, "usage"), false)
		f.Usage = m.usage.hasInput
	case "message_delta":
		m.readEnd(data[delta.From:delta.To], f)
		f.Usage = m.usage.merge(usage, m.ended)
		if m.Filtered() && !m.hasToken && string(rawjson.Field(usage, "output_tokens")) == "0" {
			m.usage.output, m.usage.final = 0, true // the initial count is not output of a refusal
		}
	case "message_stop":
		f.Done, m.ended = true, true
	default:
		if failure != nil || string(kind) == "error" {
			f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
		}
	}
}

// readDelta reads a delta and reports whether it is a token. A signature is not.
func (m *meter) readDelta(data []byte, at rawjson.Member) (token bool) {
	delta := data[at.From:at.To]
	var kind []byte
	var text rawjson.Member
	alone := true // there are no members but type and text
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
	case "citations_delta": // cited text is not output
		return len(rawjson.Field(delta, "citation")) > 2
	}
	token = m.AddAll(delta, 0)
	m.Content = m.Content || token
	return token
}

// learn records the bytes before the text of a delta. The next deltas start with them.
func (m *meter) learn(data []byte, from, to int, thought bool) {
	const longest = 1024
	m.head = m.head[:0]
	if from <= longest && isTail(data[to:]) {
		m.head, m.thought = append(m.head, data[:from+1]...), thought
	}
}

// readEnd reads the stop_reason.
func (m *meter) readEnd(delta []byte, f *wire.Frame) {
	reason := rawjson.Unquote(rawjson.Field(delta, "stop_reason"))
	switch kind := form.FinishOf(reason); kind {
	case form.FinishNone:
	case form.FinishFailed:
		f.Err = &wire.ProviderError{Reason: reason}
	default:
		f.Finish, m.ended = true, true
		m.Finish(kind)
	}
}

// Usage implements wire.Meter. The counts of the prompt come with the first event.
func (m *meter) Usage() (wire.Usage, bool) {
	return m.usage.result(m.Tools), m.usage.known()
}

func (m *meter) Complete() bool { return m.ended }

// NewMeter returns the meter of a stream.
func NewMeter() wire.Meter { return new(meter) }
