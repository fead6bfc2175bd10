package messagesresponses

import (
	"bytes"
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// stream writes a responses stream as one of messages. Whatever the provider sends, its output is
// well formed: blocks are numbered from 0, one is open at a time, and message_stop follows only the
// end of the answer. It is not safe for concurrent use.
type stream struct {
	output  output
	started bool
	ended   bool // after End or Fail

	index        int      // of the first block of queue
	queue        []*block // the first is being written, the others wait for its end
	pendingBytes int      // size of pending output
}

const (
	// maxPending bounds the output waiting for the end of a block in bytes, maxQueue the blocks; no
	// model's answer comes near.
	maxPending = 8 << 20
	maxQueue   = 4096
)

func newStream(id wire.Identity, names item.Names) *stream {
	return &stream{output: newOutput(id, names)}
}

// Append implements wire.Writer.
func (w *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return append(dst, sse.KeepAlive...)
	case data[0] != '{' || f.Err != nil:
		return dst
	}
	w.output.reader.Event(e.Name, data, func(s item.AnswerStep) { dst = w.step(dst, s) })
	return dst
}

// step appends one step of the answer.
func (w *stream) step(dst []byte, s item.AnswerStep) []byte {
	if w.ended {
		return dst
	}
	b, begins := w.output.blockOf(s)
	if b == nil {
		return dst
	}
	if begins {
		if len(w.queue) >= maxQueue {
			return w.failTooLarge(dst)
		}
		w.queue = append(w.queue, b)
	}
	if len(s.Text) > 0 && s.Kind != item.ReasoningEnd {
		dst = w.grow(dst, b, s.Text)
	}
	return w.advance(dst)
}

// grow adds text to a block. The text is written if the block is started, or else waits.
func (w *stream) grow(dst []byte, b *block, text []byte) []byte {
	if b.started {
		return rawjson.Put(w.delta(dst, b), "", text, "\"}}\n\n")
	}
	b.pending = append(b.pending, text...)
	if w.pendingBytes += len(text); w.pendingBytes > maxPending {
		return w.failTooLarge(dst)
	}
	return dst
}

// advance starts the first block of the queue and stops blocks that have ended. A text block also
// stops when another block waits.
func (w *stream) advance(dst []byte) []byte {
	for len(w.queue) > 0 && !w.ended {
		b := w.queue[0]
		if !b.started {
			dst = w.start(dst, b)
		}
		if !b.ended && (b.kind != textBlock || len(w.queue) == 1) {
			return dst
		}
		b.ended = true
		dst = w.stop(dst, b)
		w.queue = w.queue[1:]
		w.index++
	}
	return dst
}

// begin appends message_start, once. The prompt's count is not known yet; message_delta corrects
// it.
func (w *stream) begin(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = fmt.Appendf(dst,
		`{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`,
		rawjson.Quote(piece.MessageID(w.output.id)), rawjson.Quote(w.output.id.Model))
	return append(piece.AppendMessagesUsage(dst, wire.Usage{}), "}}\n\n"...)
}

// head appends the start of an event of the first block.
func (w *stream) head(dst []byte, event string) []byte {
	dst = rawjson.Put(dst, "event: ", event, "\ndata: {\"type\":\"")
	dst = rawjson.Put(dst, "", event, `","index":`)
	return strconv.AppendInt(dst, int64(w.index), 10)
}

// start appends the start of a block and its pending output.
func (w *stream) start(dst []byte, b *block) []byte {
	b.started = true
	dst = append(w.head(w.begin(dst), "content_block_start"), `,"content_block":`...)
	switch b.kind {
	case textBlock:
		dst = append(dst, `{"type":"text","text":""}`...)
	case thinkingBlock:
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case redactedBlock:
		dst = rawjson.Put(dst, `{"type":"redacted_thinking","data":"`, b.seal, `"}`)
	case callBlock:
		dst = append(w.output.appendCall(dst, b.call), `,"input":{}}`...)
	}
	dst = append(dst, "}\n\n"...)
	if len(b.pending) > 0 {
		dst = rawjson.Put(w.delta(dst, b), "", b.pending, "\"}}\n\n")
		w.pendingBytes -= len(b.pending)
		b.pending = nil
	}
	return dst
}

// delta appends the start of a delta of a block, up to its text.
func (w *stream) delta(dst []byte, b *block) []byte {
	dst = w.head(dst, "content_block_delta")
	switch b.kind {
	case thinkingBlock:
		return append(dst, `,"delta":{"type":"thinking_delta","thinking":"`...)
	case callBlock:
		return append(dst, `,"delta":{"type":"input_json_delta","partial_json":"`...)
	}
	return append(dst, `,"delta":{"type":"text_delta","text":"`...)
}

// stop appends the end of a block. Thinking ends with its seal, which may be empty.
func (w *stream) stop(dst []byte, b *block) []byte {
	switch {
	case b.kind == thinkingBlock:
		dst = append(w.head(dst, "content_block_delta"), `,"delta":{"type":"signature_delta","signature":"`...)
		dst = rawjson.Put(dst, "", b.seal, "\"}}\n\n")
	case b.kind == callBlock && !b.call.HasArguments:
		dst = append(w.delta(dst, b), "{}\"}}\n\n"...)
	}
	return append(w.head(dst, "content_block_stop"), "}\n\n"...)
}

// failTooLarge ends the stream of an answer larger than any model's with an error.
func (w *stream) failTooLarge(dst []byte) []byte {
	return w.Fail(dst, fault.New(fault.UpstreamError,
		"The model's answer holds more tool calls at once than can be passed on. Please try again."))
}

// End implements wire.Writer.
func (w *stream) End(dst []byte, u wire.Usage) []byte {
	if w.ended {
		return dst
	}
	w.ended = true
	dst = append(w.begin(dst), "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""...)
	dst = rawjson.Put(dst, "", w.output.stopReason(), `","stop_sequence":null},"usage":`)
	dst = append(piece.AppendMessagesUsage(dst, u), "}\n\n"...)
	return append(dst, sse.MessageStop...)
}

// Fail implements wire.Writer.
func (w *stream) Fail(dst []byte, err *fault.Error) []byte {
	w.ended = true
	w.queue, w.pendingBytes = nil, 0
	return rawjson.Put(dst, "event: error\ndata: ", err.NativeBody(), "\n\n")
}

// blockKind is a kind of content block.
type blockKind int

const (
	textBlock blockKind = iota
	thinkingBlock
	redactedBlock // reasoning without text
	callBlock
)

// block is a content block of the answer.
type block struct {
	kind    blockKind
	item    int
	part    int
	call    *item.ToolCall
	seal    []byte // the contents of a JSON string
	pending []byte // unwritten text, the contents of a JSON string
	ended   bool

	started bool // in a stream
}

// output converts the steps of an answer into blocks.
type output struct {
	id      wire.Identity
	reader  *item.Reader
	open    []*block
	ids     map[string]bool
	refused bool
}

func newOutput(id wire.Identity, names item.Names) output {
	return output{id: id, reader: item.NewReader(id, names), ids: map[string]bool{}}
}

// blockOf returns the block of a step, and whether the step starts it. It returns nil for a step
// without output.
func (o *output) blockOf(s item.AnswerStep) (b *block, begins bool) {
	kind := textBlock
	switch s.Kind {
	case item.ReasoningText:
		kind = thinkingBlock
	case item.ReasoningEnd:
		if b = o.find(thinkingBlock, s); b != nil {
			b.seal = bytes.Clone(s.Text)
			return o.end(b), false
		}
		if len(s.Text) == 0 {
			return nil, false
		}
		return &block{kind: redactedBlock, seal: bytes.Clone(s.Text), ended: true}, true
	case item.Call, item.Arguments, item.CallEnd:
		kind = callBlock
	case item.Refusal:
		o.refused = true
	}
	b = o.find(kind, s)
	switch {
	case s.Kind == item.TextEnd || s.Kind == item.CallEnd:
		return o.end(b), false
	case b != nil:
		return b, false
	}
	b = &block{kind: kind, item: s.Item, part: s.Part, call: s.Call}
	o.open = append(o.open, b)
	return b, true
}

// find returns the open block of a step, or nil.
func (o *output) find(kind blockKind, s item.AnswerStep) *block {
	for i := len(o.open) - 1; i >= 0; i-- {
		if b := o.open[i]; b.kind == kind && b.item == s.Item && b.part == s.Part && !b.ended {
			return b
		}
	}
	return nil
}

// end ends a block, which may be nil.
func (o *output) end(b *block) *block {
	for i, open := range o.open {
		if open == b {
			b.ended = true
			o.open = append(o.open[:i], o.open[i+1:]...)
			break
		}
	}
	return b
}

// appendCall appends a tool_use block up to its input.
func (o *output) appendCall(dst []byte, c *item.ToolCall) []byte {
	id := piece.ToolID(rawjson.Unquote(c.ID))
	if id == "" || o.ids[id] {
		id = piece.NewCallID(o.id, c.Number)
	}
	o.ids[id] = true
	dst = rawjson.Put(dst, `{"type":"tool_use","id":`, rawjson.Quote(id), `,"name":"`)
	return rawjson.Put(dst, "", c.Name, `"`)
}

// stopReason returns the stop_reason.
func (o *output) stopReason() string {
	switch o.reader.Finish() {
	case form.FinishLimit:
		return "max_tokens"
	case form.FinishFiltered:
		return "refusal"
	}
	switch {
	case o.reader.HasCalls():
		return "tool_use"
	case o.refused:
		return "refusal"
	}
	return "end_turn"
}
