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

// frameEditor replaces the model id in the events of a stream by the client's. The frames of a
// stream start with the same bytes, so it finds the model once and then compares. It is not safe
// for concurrent use.
type frameEditor struct {
	model          []byte // as a JSON string
	prefix, edited []byte // a frame up to the end of its model, before and after the edit
}

func newFrameEditor(model string) *frameEditor { return &frameEditor{model: rawjson.Quote(model)} }

// Append appends the event with the client's model. An event without a model is unchanged.
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

// find finds the model in a frame and sets prefix and edited.
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

// appendJoined appends an event with several data lines, or with none.
func (f *frameEditor) appendJoined(dst []byte, e sse.Event) []byte {
	if e.Data == nil || !f.find(e.Data) {
		return append(dst, e.Raw...)
	}
	return sse.AppendLines(dst, e.Name, append(bytes.Clone(f.edited), e.Data[len(f.prefix):]...))
}

// editor writes a chat-completions stream for a client of the same form: the frames with the
// client's model, without usage unless the client asked for it. It is not safe for concurrent use.
type editor struct {
	frames       *frameEditor
	model        string
	includeUsage bool
	meter        *meter // of the same stream
}

func newEditor(id wire.Identity, includeUsage bool, m *meter) *editor {
	return &editor{frames: newFrameEditor(id.Model), model: id.Model, includeUsage: includeUsage, meter: m}
}

// Append appends the client's part of an event read by the meter as f. End writes the closing
// [DONE].
func (c *editor) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	if f.Done || f.UsageOnly && !c.includeUsage {
		return dst
	}
	return c.frames.Append(dst, e)
}

// End appends the usage frame, if the client asked for it and has not received one, and [DONE].
func (c *editor) End(dst []byte, u wire.Usage) []byte {
	if c.includeUsage && !c.meter.usageShown {
		dst = append(dst, c.usageEvent(u)...)
	}
	return append(dst, sse.Done...)
}

// Fail appends the event for an error. Nothing follows it.
func (c *editor) Fail(dst []byte, err *fault.Error) []byte {
	return append(dst, ErrorEvent(err.Object())...)
}

// Err implements wire.Writer. Every stream of the form can be written.
func (*editor) Err() error { return nil }

// ErrorEvent returns the event for an error in a chat-completions stream. object is the error
// object of the /v1 form.
func ErrorEvent(object []byte) []byte {
	out := append([]byte(`data: {"error":`), object...)
	return append(out, "}\n\n"...)
}

// usageEvent returns a usage frame with the identity of the stream's other frames.
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

// AppendUsage appends a usage object of the chat-completions form. Counts of images and audio are
// included if above zero.
func AppendUsage(dst []byte, u wire.Usage) []byte { return appendUsage(dst, u, false) }

// appendUsage is AppendUsage with the tokens written to the provider's cache if writes is set.
func appendUsage(dst []byte, u wire.Usage, writes bool) []byte {
	number := func(name string, n int64) {
		dst = rawjson.Put(dst, "", name, ":")
		dst = strconv.AppendInt(dst, n, 10)
	}
	number(`{"prompt_tokens"`, u.Prompt)
	number(`,"completion_tokens"`, u.Completion)
	number(`,"total_tokens"`, u.Prompt+u.Completion)
	positive := func(name string, n int64) {
		if n > 0 {
			number(name, n)
		}
	}
	number(`,"prompt_tokens_details":{"cached_tokens"`, u.Cached)
	if writes {
		number(`,"cache_write_tokens"`, u.CacheWrite+u.CacheWrite1h)
	}
	positive(`,"image_tokens"`, u.PromptImage)
	positive(`,"audio_tokens"`, u.PromptAudio)
	number(`},"completion_tokens_details":{"reasoning_tokens"`, u.Reasoning)
	positive(`,"image_tokens"`, u.CompletionImage)
	positive(`,"audio_tokens"`, u.CompletionAudio)
	return append(dst, "}}"...)
}
