package gemini

import (
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// maxPending bounds the arguments of calls that have not ended, in bytes. No model's answer comes near.
const maxPending = 8 << 20

// writer writes an answer of a line of another form. Its output is well formed: a call is one part with
// all of its arguments, and the last object has the finish reasons and the usage.
type writer struct {
	id     wire.Identity
	stream streamWriter
	show   bool   // the client asked for thoughts
	chat   bool   // the line needs the text of its reasoning before a call
	tail   []byte // of every object, after its candidates

	choices []writtenChoice
	first   [1]writtenChoice // memory for the usual single choice
	calls   []pendingCall
	pending int // bytes of arguments in calls
	ended   bool
}

// writtenChoice is the state of a candidate.
type writtenChoice struct {
	finish  form.FinishKind
	refused bool
	state   conversation.CallState
}

// pendingCall is a call that has not ended.
type pendingCall struct {
	output    *conversation.Output
	arguments []byte
}

// Writer returns the writer of the answer to a request from a line of another form.
func (r *Request) Writer(id wire.Identity, line wire.Form) conversation.Writer {
	w := &writer{id: id, stream: newStreamWriter(id, r.ArrayStream()), chat: line == wire.FormChat}
	if r.Doc != nil {
		w.show = string(rawjson.Field(r.config("thinkingConfig"), "includeThoughts")) == "true"
	}
	w.choices = w.first[:0]
	w.tail = rawjson.Put(w.tail, `,"modelVersion":`, w.stream.model, `,"responseId":"`)
	w.tail = append(conversation.AppendEscaped(w.tail, []byte(conversation.IDSuffix(id))), `"}`...)
	return w
}

// choice returns the state of a candidate.
func (w *writer) choice(index int) *writtenChoice {
	for len(w.choices) <= index {
		w.choices = append(w.choices, w.newChoice(form.FinishNone))
	}
	return &w.choices[index]
}

// newChoice returns the initial state of a candidate.
func (w *writer) newChoice(finish form.FinishKind) writtenChoice {
	return writtenChoice{finish: finish, state: conversation.CallState{KeepsText: w.chat}}
}

// Write implements conversation.Writer.
func (w *writer) Write(dst []byte, e conversation.Event) []byte {
	if e.Kind == conversation.Idle {
		return w.stream.idle(dst)
	}
	if w.ended || e.Choice >= form.MaxChoices {
		return dst
	}
	c := w.choice(e.Choice)
	if c.finish != form.FinishNone {
		return dst
	}
	switch e.Kind {
	case conversation.Start:
		switch e.Output.Kind {
		case conversation.ToolCall:
			w.calls = append(w.calls, pendingCall{output: e.Output})
			return w.grow(dst, e)
		case conversation.Image:
			return w.part(dst, e.Choice, appendImage(nil, e.Output))
		}
		return w.text(dst, c, e)
	case conversation.Delta:
		if e.Output.Kind == conversation.ToolCall {
			return w.grow(dst, e)
		}
		return w.text(dst, c, e)
	case conversation.End:
		return w.end(dst, c, e.Output)
	case conversation.Finish:
		c.finish = e.Finish
	}
	return dst
}

// text writes a piece of a text or a thought.
func (w *writer) text(dst []byte, c *writtenChoice, e conversation.Event) []byte {
	kind := e.Output.Kind
	if len(e.Text) == 0 || kind == conversation.Image {
		return dst
	}
	if kind == conversation.Thinking {
		c.state.Add(e.Text)
		if !w.show {
			return w.stream.idle(dst)
		}
	}
	c.refused = c.refused || kind == conversation.Refusal
	dst = rawjson.Put(w.open(dst, e.Choice), `{"text":"`, e.Text, `"`)
	if kind == conversation.Thinking {
		dst = append(dst, `,"thought":true`...)
	}
	return w.close(append(dst, '}'))
}

// grow adds a piece of the arguments of a call.
func (w *writer) grow(dst []byte, e conversation.Event) []byte {
	for i := range w.calls {
		if w.calls[i].output == e.Output {
			w.calls[i].arguments = append(w.calls[i].arguments, e.Text...)
		}
	}
	if w.pending += len(e.Text); w.pending > maxPending {
		return w.failTooLarge(dst)
	}
	return dst
}

// end writes a call, and keeps the state of reasoning.
func (w *writer) end(dst []byte, c *writtenChoice, o *conversation.Output) []byte {
	switch o.Kind {
	case conversation.Thinking:
		c.state.End(conversation.Seal(w.id, o.Signature.Data))
	case conversation.ToolCall:
		for i := range w.calls {
			if call := w.calls[i]; call.output == o {
				w.calls = append(w.calls[:i], w.calls[i+1:]...)
				w.pending -= len(call.arguments)
				if part := w.appendCall(nil, c, o, call.arguments); part != nil {
					return w.part(dst, o.Choice, part)
				}
				return dst
			}
		}
	}
	return dst
}

// appendCall appends the part of a call. It returns nil if the arguments were cut off.
func (w *writer) appendCall(dst []byte, c *writtenChoice, o *conversation.Output, arguments []byte) []byte {
	text := rawjson.AppendUnquoted(nil, arguments)
	if len(text) > 0 && !o.Complete && !rawjson.IsValid(text) {
		return nil
	}
	id := o.ID
	if len(id) == 0 {
		id = rawjson.Contents(rawjson.Quote(conversation.NewCallID(w.id, o.Number)))
	}
	dst = rawjson.Put(dst, `{"functionCall":{"id":"`, id, `","name":"`)
	dst = rawjson.Put(dst, "", o.Name, `","args":`)
	dst = append(conversation.AppendObject(dst, conversation.Quoted(arguments)), '}')
	if signature := sealState(c.state.Take()); signature != nil {
		dst = rawjson.Put(dst, `,"thoughtSignature":"`, signature, `"`)
	}
	return append(dst, '}')
}

func appendImage(dst []byte, o *conversation.Output) []byte {
	dst = rawjson.Put(dst, `{"inlineData":{"mimeType":"`, o.Media, `","data":"`)
	return rawjson.Put(dst, "", o.Data, `"}}`)
}

// open appends the start of an object with one candidate, up to its parts.
func (w *writer) open(dst []byte, choice int) []byte {
	dst = append(w.stream.open(dst), `{"candidates":[{"index":`...)
	return append(strconv.AppendInt(dst, int64(choice), 10), `,"content":{"role":"model","parts":[`...)
}

// close appends the end of an object with one part.
func (w *writer) close(dst []byte) []byte {
	return w.stream.close(append(append(dst, "]}}]"...), w.tail...))
}

// part writes an object with one part.
func (w *writer) part(dst []byte, choice int, part []byte) []byte {
	return w.close(append(w.open(dst, choice), part...))
}

// failTooLarge ends the stream of an answer larger than any model's with an error.
func (w *writer) failTooLarge(dst []byte) []byte {
	return w.Fail(dst, fault.New(fault.UpstreamError,
		"The model's answer holds more tool calls at once than can be passed on. Please try again."))
}

// finishReason returns the finishReason of a candidate.
func (c *writtenChoice) finishReason() string {
	switch {
	case c.finish == form.FinishLimit:
		return "MAX_TOKENS"
	case c.finish == form.FinishFiltered, c.refused:
		return "SAFETY"
	case c.finish == form.FinishFailed:
		return "OTHER"
	}
	return "STOP"
}

// End implements conversation.Writer. It appends nothing to an unfinished or ended stream.
func (w *writer) End(dst []byte, u wire.Usage) []byte {
	finished := false
	for i := range w.choices {
		finished = finished || w.choices[i].finish != form.FinishNone
	}
	if w.ended || !finished {
		return dst
	}
	w.ended = true
	dst = append(w.stream.open(dst), `{"candidates":[`...)
	separator := ""
	for i := range w.choices {
		if w.choices[i].finish == form.FinishNone {
			continue
		}
		dst = append(append(dst, separator...), `{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"`...)
		dst = rawjson.Put(dst, "", w.choices[i].finishReason(), `","index":`)
		dst = append(strconv.AppendInt(dst, int64(i), 10), '}')
		separator = ","
	}
	dst = append(appendUsage(append(dst, `],"usageMetadata":`...), u), w.tail...)
	return w.stream.end(w.stream.close(dst))
}

// Fail implements conversation.Writer.
func (w *writer) Fail(dst []byte, err *fault.Error) []byte {
	w.ended, w.calls = true, nil
	return w.stream.fail(dst, err)
}

// Whole implements conversation.Writer.
func (w *writer) Whole(a *conversation.Answer, u wire.Usage) []byte {
	out := []byte(`{"candidates":[`)
	for i := range a.Choices {
		if i > 0 {
			out = append(out, ',')
		}
		out = w.appendCandidate(out, i, &a.Choices[i])
	}
	return append(appendUsage(append(out, `],"usageMetadata":`...), u), w.tail...)
}

// appendCandidate appends a candidate of a whole answer.
func (w *writer) appendCandidate(dst []byte, index int, choice *conversation.OutputChoice) []byte {
	state := w.newChoice(choice.Finish)
	c := &state
	var parts []byte
	add := func(part []byte) {
		if part != nil {
			parts = append(append(parts, ','), part...)
		}
	}
	for _, o := range choice.Outputs {
		switch o.Kind {
		case conversation.Thinking:
			c.state.Add(o.Text)
			c.state.End(conversation.Seal(w.id, o.Signature.Data))
			if w.show && len(o.Text) > 0 {
				add(rawjson.Put(nil, `{"text":"`, o.Text, `","thought":true}`))
			}
		case conversation.ToolCall:
			add(w.appendCall(nil, c, o, o.Text))
		case conversation.Image:
			add(appendImage(nil, o))
		default:
			c.refused = c.refused || o.Kind == conversation.Refusal
			if len(o.Text) > 0 {
				add(rawjson.Put(nil, `{"text":"`, o.Text, `"}`))
			}
		}
	}
	if parts == nil {
		add([]byte(`{"text":""}`))
	}
	dst = rawjson.Put(dst, `{"content":{"parts":`, conversation.List(parts), `,"role":"model"},"finishReason":"`)
	dst = rawjson.Put(dst, "", c.finishReason(), `","index":`)
	return append(strconv.AppendInt(dst, int64(index), 10), '}')
}

// appendUsage appends a usageMetadata. Its candidates exclude the thoughts.
func appendUsage(dst []byte, u wire.Usage) []byte {
	dst = fmt.Appendf(dst, `{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d`,
		u.Prompt, u.Completion-u.Reasoning, u.Prompt+u.Completion)
	if u.Cached > 0 {
		dst = fmt.Appendf(dst, `,"cachedContentTokenCount":%d`, u.Cached)
	}
	if u.Reasoning > 0 {
		dst = fmt.Appendf(dst, `,"thoughtsTokenCount":%d`, u.Reasoning)
	}
	return append(dst, '}')
}
