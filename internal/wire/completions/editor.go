package completions

import (
	"bytes"
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// frameEditor writes the events of a stream with the model's id that the
// client sent. The frames of a stream begin alike, so it looks for the place
// once and then compares. Not for concurrent use.
type frameEditor struct {
	model          []byte // as a JSON string
	prefix, edited []byte // a frame's bytes up to the end of its model, before and after
}

// newFrameEditor makes an editor that sets model.
func newFrameEditor(model string) *frameEditor { return &frameEditor{model: rawjson.Quote(model)} }

// Append appends the event to dst as it came, but for the model. Events
// without one stay as they are.
func (f *frameEditor) Append(dst []byte, e sse.Event) []byte {
	if e.Offset < 0 {
		return f.appendJoined(dst, e)
	}
	from, data := e.Offset, e.Data
	if f.prefix == nil || !bytes.HasPrefix(data, f.prefix) {
		if !f.find(data) {
			return append(dst, e.Raw...)
		}
	}
	dst = append(dst, e.Raw[:from]...)
	dst = append(dst, f.edited...)
	return append(dst, e.Raw[from+len(f.prefix):]...)
}

// find looks for the model in a frame and remembers its place.
func (f *frameEditor) find(data []byte) bool {
	at := rawjson.SkipSpace(data, 0)
	for m := range rawjson.Spans(data[at:]) {
		if string(m.Name) == "model" {
			f.prefix = append(f.prefix[:0], data[:at+m.To]...)
			f.edited = append(f.edited[:0], data[:at+m.From]...)
			f.edited = append(f.edited, f.model...)
			return true
		}
	}
	return false
}

// appendJoined writes an event whose data came in several lines, or has none.
func (f *frameEditor) appendJoined(dst []byte, e sse.Event) []byte {
	if e.Data == nil || !f.find(e.Data) {
		return append(dst, e.Raw...)
	}
	return sse.AppendLines(dst, e.Name, append(bytes.Clone(f.edited), e.Data[len(f.prefix):]...))
}

// editor writes a chat-completions stream for a client that speaks the form
// itself: frames as they came, but for the model and for usage that nobody
// asked for. Not for concurrent use.
type editor struct {
	frames       *frameEditor
	model        string
	includeUsage bool
	meter        *meter // that reads the same stream
}

// newEditor makes the editor of a stream that m reads; includeUsage says
// whether the client asked for the usage frame.
func newEditor(id wire.Identity, includeUsage bool, m *meter) *editor {
	return &editor{frames: newFrameEditor(id.Model), model: id.Model, includeUsage: includeUsage, meter: m}
}

// Append appends what the client gets of an event that the meter has read as f.
// The closing [DONE] is written anew, by End.
func (c *editor) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	if f.Done || f.UsageOnly && !c.includeUsage {
		return dst
	}
	return c.frames.Append(dst, e)
}

// End appends what completes the stream: the usage frame, if the client asked
// for it and has not seen one, and [DONE].
func (c *editor) End(dst []byte, u wire.Usage) []byte {
	if c.includeUsage && !c.meter.shown {
		dst = append(dst, c.usageEvent(u)...)
	}
	return append(dst, sse.Done...)
}

// Fail appends the event that reports an error; nothing follows it.
func (c *editor) Fail(dst []byte, err *fault.Error) []byte {
	return append(dst, ErrorEvent(err.Object())...)
}

// ErrorEvent is the event that reports an error in a chat-completions stream:
// object is the error object of the /v1 shape.
func ErrorEvent(object []byte) []byte {
	out := append([]byte(`data: {"error":`), object...)
	return append(out, "}\n\n"...)
}

// usageEvent is the usage frame of a stream that had none at a place where
// clients look, with the identity of the stream's other frames.
func (c *editor) usageEvent(u wire.Usage) []byte {
	id, created := c.meter.id, c.meter.created
	if id == nil {
		id = []byte(`""`)
	}
	if created == nil {
		created = []byte("0")
	}
	out := fmt.Appendf(nil,
		`data: {"id":%s,"object":"chat.completion.chunk","created":%s,"model":%s,"choices":[],"usage":`, id, created, rawjson.Quote(c.model))
	out = AppendUsage(out, u)
	return append(out, "}\n\n"...)
}

// AppendUsage writes a usage object of the chat-completions form. What images
// and sound count is told where there is any.
func AppendUsage(dst []byte, u wire.Usage) []byte {
	number := func(name string, n int64) {
		dst = rawjson.Put(dst, "", name, ":")
		dst = strconv.AppendInt(dst, n, 10)
	}
	number(`{"prompt_tokens"`, u.Prompt)
	number(`,"completion_tokens"`, u.Completion)
	number(`,"total_tokens"`, u.Prompt+u.Completion)
	some := func(name string, n int64) {
		if n > 0 {
			number(name, n)
		}
	}
	number(`,"prompt_tokens_details":{"cached_tokens"`, u.Cached)
	some(`,"image_tokens"`, u.PromptImage)
	some(`,"audio_tokens"`, u.PromptAudio)
	number(`},"completion_tokens_details":{"reasoning_tokens"`, u.Reasoning)
	some(`,"image_tokens"`, u.CompletionImage)
	some(`,"audio_tokens"`, u.CompletionAudio)
	return append(dst, "}}"...)
}
