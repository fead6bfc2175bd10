package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// DoneEvent ends a chat-completions stream.
const DoneEvent = "data: [DONE]\n\n"

// FrameEditor writes the events of a stream with the model's id that the
// client sent. The frames of a stream begin alike, so it looks for the place
// once and then compares. Not for concurrent use.
type FrameEditor struct {
	model          []byte // as a JSON string
	prefix, edited []byte // a frame's bytes up to the end of its model, before and after
}

// NewFrameEditor makes an editor that sets model.
func NewFrameEditor(model string) *FrameEditor { return &FrameEditor{model: quote(model)} }

// Append appends the event to dst as it came, but for the model. Events
// without one stay as they are.
func (f *FrameEditor) Append(dst []byte, e Event) []byte {
	if e.at < 0 {
		return f.appendJoined(dst, e)
	}
	from, data := e.at, e.Data
	if f.prefix == nil || !bytes.HasPrefix(data, f.prefix) {
		if !f.find(data) {
			return append(dst, e.Raw...)
		}
	}
	dst = append(append(dst, e.Raw[:from]...), f.edited...)
	return append(dst, e.Raw[from+len(f.prefix):]...)
}

// find looks for the model in a frame and remembers its place.
func (f *FrameEditor) find(data []byte) bool {
	at := skipSpace(data, 0)
	for m := range memberSpans(data[at:]) {
		if string(m.name) == "model" {
			f.prefix = append(f.prefix[:0], data[:at+m.to]...)
			f.edited = append(append(f.edited[:0], data[:at+m.from]...), f.model...)
			return true
		}
	}
	return false
}

// appendJoined writes an event whose data came in several lines, or has none.
func (f *FrameEditor) appendJoined(dst []byte, e Event) []byte {
	if e.Data == nil || !f.find(e.Data) {
		return append(dst, e.Raw...)
	}
	if e.Name != "" {
		dst = append(append(append(dst, "event: "...), e.Name...), '\n')
	}
	edited := append(bytes.Clone(f.edited), e.Data[len(f.prefix):]...)
	for line := range bytes.SplitSeq(edited, []byte("\n")) {
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}

// ErrorEvent is the event that reports an error in a chat-completions stream:
// object is the error object of the /v1 shape.
func ErrorEvent(object []byte) []byte {
	out := append([]byte(`data: {"error":`), object...)
	return append(out, "}\n\n"...)
}

// UsageEvent is the usage frame of a stream that had none at a place where
// clients look, with the identity of the stream's other frames.
func (m *ChatMeter) UsageEvent(model string, u Usage) []byte {
	id, created := m.id, m.created
	if id == nil {
		id = []byte(`""`)
	}
	if created == nil {
		created = []byte("0")
	}
	out := fmt.Appendf(nil, `data: {"id":%s,"object":"chat.completion.chunk","created":%s,"model":%s,"choices":[],"usage":`, id, created, quote(model))
	out = appendUsage(out, u)
	return append(out, "}\n\n"...)
}

// appendUsage writes a usage object of the chat-completions form.
func appendUsage(dst []byte, u Usage) []byte {
	number := func(name string, n int64) {
		dst = append(append(dst, name...), ':')
		dst = strconv.AppendInt(dst, n, 10)
	}
	number(`{"prompt_tokens"`, u.Prompt)
	number(`,"completion_tokens"`, u.Completion)
	number(`,"total_tokens"`, u.Prompt+u.Completion)
	number(`,"prompt_tokens_details":{"cached_tokens"`, u.Cached)
	number(`},"completion_tokens_details":{"reasoning_tokens"`, u.Reasoning)
	return append(dst, "}}"...)
}
