package messages

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// writer writes an answer of a line of another form. Its output is well formed: blocks are numbered
// from 0, one is open at a time, and message_stop follows only the end of the answer.
type writer struct {
	id   wire.Identity
	head []byte // of a message, up to its content

	queue        []*outBlock  // the first is being written, the others wait for its end
	blocks       [2]*outBlock // memory of the usual queue
	first        outBlock     // memory of the first block
	index        int          // of the first block of queue
	pendingBytes int
	started      bool
	ended        bool // after End or Fail

	ids      map[string]bool // of calls
	hidden   hiddenThinking
	hasCalls bool
	hasText  bool
	refused  bool
	finished bool
	finish   form.FinishKind
	sequence []byte // the stop sequence of the Finish event
}

// outBlock is a content block.
type outBlock struct {
	output  *conversation.Output
	pending []byte // text not yet written
	started bool
	hasText bool
	done    bool // no more text follows
}

const (
	// maxPending bounds the output waiting for the end of a block in bytes. No model's answer comes
	// near.
	maxPending = 8 << 20
	// maxQueue bounds the blocks in the same way.
	maxQueue = 4096
)

// Writer returns the writer of the answer to a request from a line of another form.
func (r *Request) Writer(id wire.Identity, line wire.Form) conversation.Writer {
	w := &writer{id: id, hidden: newHidden(r, line)}
	w.queue = w.blocks[:0]
	w.head = append(make([]byte, 0, 160), `{"id":"msg_`...)
	w.head = conversation.AppendEscaped(w.head, []byte(conversation.IDSuffix(id)))
	w.head = conversation.AppendQuoted(append(w.head, `","type":"message","role":"assistant","model":`...), []byte(id.Model))
	w.head = append(w.head, `,"content":[`...)
	return w
}

// Write implements conversation.Writer.
func (w *writer) Write(dst []byte, e conversation.Event) []byte {
	switch {
	case e.Kind == conversation.Idle:
		return append(dst, sse.KeepAlive...)
	case w.ended || w.finished || e.Choice > 0: // messages have a single choice
		return dst
	case w.hidden.has(e.Output):
		return w.hide(dst, e)
	}
	switch e.Kind {
	case conversation.Begin:
		return w.begin(dst)
	case conversation.Start:
		if e.Output.Kind == conversation.ToolCall || len(e.Text) > 0 {
			return w.grow(dst, e.Output, e.Text)
		}
	case conversation.Delta:
		return w.grow(dst, e.Output, e.Text)
	case conversation.End:
		return w.end(dst, e.Output)
	case conversation.Finish:
		w.finished, w.finish, w.sequence = true, e.Finish, e.Stop
		for _, b := range w.queue {
			b.done = true
		}
		return w.advance(dst)
	}
	return dst
}

// hide collects the state of hidden thinking, and writes keep-alives instead.
func (w *writer) hide(dst []byte, e conversation.Event) []byte {
	if w.hidden.state.Add(e.Text); e.Kind == conversation.End {
		w.hidden.state.End(w.sealOf(e.Output))
		return dst
	}
	return append(w.begin(dst), sse.KeepAlive...)
}

// begin appends message_start, once. The provider's count of the prompt is not known yet;
// message_delta corrects it.
func (w *writer) begin(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	const room = 512 // for the first events
	dst = append(slices.Grow(dst, room), "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = append(append(dst, w.head...), `],"stop_reason":null,"stop_sequence":null,"usage":`...)
	return append(appendUsage(dst, wire.Usage{Prompt: w.id.Prompt}), "}}\n\n"...)
}

// grow adds text to a part. The text is written if the part's block has started. Otherwise it waits in
// pending.
func (w *writer) grow(dst []byte, o *conversation.Output, text []byte) []byte {
	switch o.Kind {
	case conversation.Text:
		w.hasText = true
	case conversation.Refusal:
		w.refused = w.refused || !w.hasText
	case conversation.ToolCall:
		w.hasCalls = true
	case conversation.Image:
		return dst // the form has no images in answers
	}
	var b *outBlock
	for i := len(w.queue) - 1; i >= 0 && b == nil; i-- {
		if w.queue[i].output == o && !w.queue[i].done {
			b = w.queue[i]
		}
	}
	if b == nil {
		if len(w.queue) >= maxQueue {
			return w.failTooLarge(dst)
		}
		if b = &w.first; b.output != nil {
			b = new(outBlock)
		}
		b.output = o
		w.queue = append(w.queue, b)
		dst = w.advance(dst)
	}
	switch {
	case len(text) == 0:
		return dst
	case b.started:
		b.hasText = true
		return rawjson.Put(w.delta(dst, o.Kind), "", text, "\"}}\n\n")
	}
	b.hasText, b.pending = true, append(b.pending, text...)
	if w.pendingBytes += len(text); w.pendingBytes > maxPending {
		return w.failTooLarge(dst)
	}
	return dst
}

// end ends a part. Reasoning without text becomes a block of its signature.
func (w *writer) end(dst []byte, o *conversation.Output) []byte {
	i := slices.IndexFunc(w.queue, func(b *outBlock) bool { return b.output == o && !b.done })
	if i < 0 {
		if o.Kind != conversation.Thinking || w.sealOf(o) == nil {
			return dst
		}
		w.queue = append(w.queue, &outBlock{output: o})
		i = len(w.queue) - 1
	}
	w.queue[i].done = true
	return w.advance(dst)
}

// advance starts the first block of the queue and stops blocks that have ended. A text block also
// stops when another block waits.
func (w *writer) advance(dst []byte) []byte {
	for len(w.queue) > 0 {
		b := w.queue[0]
		if !b.started {
			dst = w.start(dst, b)
		}
		if !b.done && (b.output.Kind == conversation.ToolCall || b.output.Kind == conversation.Thinking || len(w.queue) == 1) {
			return dst
		}
		dst = w.stop(dst, b)
	}
	return dst
}

// eventHead appends the start of an event of the first block.
func (w *writer) eventHead(dst []byte, event string) []byte {
	dst = rawjson.Put(dst, "event: ", event, "\ndata: {\"type\":\"")
	dst = rawjson.Put(dst, "", event, `","index":`)
	return strconv.AppendInt(dst, int64(w.index), 10)
}

// start appends the start of a block and its pending text. The signature of a call is a block before
// it, or part of its id if the client asked for no thinking.
func (w *writer) start(dst []byte, b *outBlock) []byte {
	b.started = true
	o := b.output
	dst = w.begin(dst)
	if seal := w.sealOf(o); seal != nil && o.Kind == conversation.ToolCall && !w.hidden.hides {
		dst = append(w.blockStart(dst), appendSealBlock(nil, seal)...)
		dst = append(w.eventHead(append(dst, "}\n\n"...), "content_block_stop"), "}\n\n"...)
		w.index++
	}
	dst = w.blockStart(dst)
	switch {
	case o.Kind == conversation.ToolCall:
		dst = append(w.appendCallHead(dst, o), `{}}`...)
	case b.isRedacted():
		dst = appendSealBlock(dst, w.sealOf(o))
	case o.Kind == conversation.Thinking:
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	default:
		dst = append(dst, `{"type":"text","text":""}`...)
	}
	dst = append(dst, "}\n\n"...)
	if len(b.pending) > 0 {
		dst = rawjson.Put(w.delta(dst, o.Kind), "", b.pending, "\"}}\n\n")
		w.pendingBytes -= len(b.pending)
		b.pending = nil
	}
	return dst
}

// isRedacted reports whether a block is reasoning without text.
func (b *outBlock) isRedacted() bool {
	return b.output.Kind == conversation.Thinking && !b.hasText && b.done
}

func (w *writer) blockStart(dst []byte) []byte {
	return append(w.eventHead(dst, "content_block_start"), `,"content_block":`...)
}

// sealOf returns the sealed signature of a part, or nil.
func (w *writer) sealOf(o *conversation.Output) []byte {
	return conversation.Seal(w.id, o.Signature.Data)
}

// appendSealBlock appends a block with a sealed signature.
func appendSealBlock(dst, seal []byte) []byte {
	return rawjson.Put(dst, `{"type":"redacted_thinking","data":"`, seal, `"}`)
}

// appendCallHead appends the start of a call, up to its input.
func (w *writer) appendCallHead(dst []byte, o *conversation.Output) []byte {
	dst = rawjson.Put(dst, `{"type":"tool_use","id":`, rawjson.Quote(w.callID(o)), `,"name":"`)
	return rawjson.Put(dst, "", o.Name, `","input":`)
}

// callID returns the client's id of a call, in the form's alphabet, since the client may return it to
// a strict line. It differs from the ids of all previous calls.
func (w *writer) callID(o *conversation.Output) string {
	id := conversation.ToolID(string(rawjson.AppendUnquoted(nil, o.ID)))
	if id == "" || w.ids[id] {
		id = conversation.NewCallID(w.id, o.Number)
	}
	if w.ids == nil {
		w.ids = map[string]bool{}
	}
	w.ids[id] = true
	return w.hidden.idOf(id, w.sealOf(o))
}

// delta appends the start of a delta, up to its text.
func (w *writer) delta(dst []byte, kind conversation.PartKind) []byte {
	dst = w.eventHead(dst, "content_block_delta")
	switch kind {
	case conversation.Thinking:
		return append(dst, `,"delta":{"type":"thinking_delta","thinking":"`...)
	case conversation.ToolCall:
		return append(dst, `,"delta":{"type":"input_json_delta","partial_json":"`...)
	}
	return append(dst, `,"delta":{"type":"text_delta","text":"`...)
}

// stop appends the end of the first block and removes it from the queue. Thinking ends with its
// signature, which may be empty.
func (w *writer) stop(dst []byte, b *outBlock) []byte {
	b.done = true
	if b.output.Kind == conversation.Thinking && b.hasText {
		dst = append(w.eventHead(dst, "content_block_delta"), `,"delta":{"type":"signature_delta","signature":"`...)
		dst = rawjson.Put(dst, "", w.sealOf(b.output), "\"}}\n\n")
	}
	dst = append(w.eventHead(dst, "content_block_stop"), "}\n\n"...)
	w.queue = w.queue[1:]
	w.index++
	return dst
}

// failTooLarge ends the stream of an answer larger than any model's with an error.
func (w *writer) failTooLarge(dst []byte) []byte {
	return w.Fail(dst, fault.New(fault.UpstreamError,
		"The model's answer holds more tool calls at once than can be passed on. Please try again."))
}

// appendStop appends the stop_reason and the stop_sequence of a message with or without calls.
func (w *writer) appendStop(dst []byte, kind form.FinishKind, stop []byte, calls bool) []byte {
	reason, sequence := "end_turn", []byte("null")
	switch {
	case kind == form.FinishLimit:
		reason = "max_tokens"
	case kind == form.FinishFiltered:
		reason = "refusal"
	case calls:
		reason = "tool_use"
	case stop != nil:
		reason, sequence = "stop_sequence", stop
	case w.refused:
		reason = "refusal"
	}
	return rawjson.Put(append(append(dst, `"stop_reason":"`...), reason...), `","stop_sequence":`, sequence, "")
}

// End implements conversation.Writer. It appends nothing to an unfinished or ended stream.
func (w *writer) End(dst []byte, u wire.Usage) []byte {
	if w.ended || !w.finished {
		return dst
	}
	w.ended = true
	dst = append(w.begin(dst), "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	dst = append(w.appendStop(dst, w.finish, w.sequence, w.hasCalls), `},"usage":`...)
	dst = append(appendUsage(dst, u), "}\n\n"...)
	return append(dst, sse.MessageStop...)
}

// Fail implements conversation.Writer.
func (w *writer) Fail(dst []byte, err *fault.Error) []byte {
	w.ended = true
	w.queue, w.pendingBytes = nil, 0
	return rawjson.Put(dst, "event: error\ndata: ", err.NativeBody(), "\n\n")
}

// Whole implements conversation.Writer. In a truncated answer, a call with truncated arguments is
// left out.
func (w *writer) Whole(a *conversation.Answer, u wire.Usage) []byte {
	var choice conversation.OutputChoice
	if len(a.Choices) > 0 {
		choice = a.Choices[0]
	}
	out := append([]byte(nil), w.head...)
	for _, o := range choice.Outputs {
		out = w.appendBlock(out, o, choice.Finish == form.FinishLimit)
	}
	out = bytes.TrimSuffix(out, []byte(","))
	out = append(w.appendStop(append(out, "],"...), choice.Finish, choice.Stop, choice.Calls()), `,"usage":`...)
	return append(appendUsage(out, u), '}')
}

// appendBlock appends a part of a whole answer and a comma.
func (w *writer) appendBlock(dst []byte, o *conversation.Output, limited bool) []byte {
	if w.hidden.has(o) {
		w.hidden.state.Add(o.Text)
		w.hidden.state.End(w.sealOf(o))
		return dst
	}
	switch o.Kind {
	case conversation.Text, conversation.Refusal:
		if len(o.Text) == 0 {
			return dst
		}
		w.refused = w.refused || o.Kind == conversation.Refusal && !w.hasText
		w.hasText = w.hasText || o.Kind == conversation.Text
		return rawjson.Put(dst, `{"type":"text","text":"`, o.Text, `"},`)
	case conversation.Thinking:
		seal := w.sealOf(o)
		switch {
		case len(o.Text) > 0:
			dst = rawjson.Put(dst, `{"type":"thinking","thinking":"`, o.Text, `","signature":"`)
			return rawjson.Put(dst, "", seal, `"},`)
		case seal != nil:
			return append(appendSealBlock(dst, seal), ',')
		}
	case conversation.ToolCall:
		text := rawjson.AppendUnquoted(nil, o.Text)
		if limited && len(text) > 0 && !rawjson.IsValid(text) {
			return dst
		}
		if seal := w.sealOf(o); seal != nil && !w.hidden.hides {
			dst = append(appendSealBlock(dst, seal), ',')
		}
		return append(conversation.AppendObject(w.appendCallHead(dst, o), conversation.Quoted(o.Text)), "},"...)
	}
	return dst
}

// appendUsage appends a usage object. Its input tokens exclude tokens read from or written to a
// cache.
func appendUsage(dst []byte, u wire.Usage) []byte {
	written := u.CacheWrite + u.CacheWrite1h
	dst = fmt.Appendf(dst, `{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d`,
		max(u.Prompt-u.Cached-written, 0), written, u.Cached, u.Completion)
	if u.Reasoning > 0 {
		dst = fmt.Appendf(dst, `,"output_tokens_details":{"thinking_tokens":%d}`, u.Reasoning)
	}
	return append(dst, '}')
}
