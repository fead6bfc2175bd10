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

// stream writes a stream of responses as one of messages. Whatever the provider
// sends, what it writes is well formed: blocks are numbered from 0, one at a time
// is open, and message_stop comes only behind the answer's end. Not for concurrent
// use.
type stream struct {
	said  said
	begun bool
	over  bool // an error ended it

	index int      // of the first block of queue
	queue []*block // the first is being written, the others wait for its end
	held  int      // bytes that wait
}

const (
	// maxHeld bounds the bytes that wait for the end of a block, maxQueue the
	// blocks; no model's answer comes near.
	maxHeld  = 8 << 20
	maxQueue = 4096
)

// newStream makes the writer of a stream.
func newStream(id wire.Identity, names item.Names) *stream {
	return &stream{said: newSaid(id, names)}
}

// Append appends the events for one of the line's that the meter has read.
func (w *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return append(dst, sse.KeepAlive...)
	case data[0] != '{' || f.Err != nil:
		return dst
	}
	w.said.reader.Event(e.Name, data, func(s item.AnswerStep) { dst = w.step(dst, s) })
	return dst
}

// step writes one step of the answer.
func (w *stream) step(dst []byte, s item.AnswerStep) []byte {
	if w.over {
		return dst
	}
	b, begins := w.said.take(s)
	if b == nil {
		return dst
	}
	if begins {
		if len(w.queue) >= maxQueue {
			return w.give(dst)
		}
		w.queue = append(w.queue, b)
	}
	if len(s.Text) > 0 && s.Kind != item.Thinking {
		dst = w.grow(dst, b, s.Text)
	}
	return w.advance(dst)
}

// grow adds text to a block: it is written if the block is open, else it waits.
func (w *stream) grow(dst []byte, b *block, text []byte) []byte {
	if b.started {
		return rawjson.Put(w.delta(dst, b), "", text, "\"}}\n\n")
	}
	b.held = append(b.held, text...)
	if w.held += len(text); w.held > maxHeld {
		return w.give(dst)
	}
	return dst
}

// advance starts the first block that is not written and ends those that have
// ended: a text also when another block waits.
func (w *stream) advance(dst []byte) []byte {
	for len(w.queue) > 0 && !w.over {
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

// begin writes message_start, once. What the prompt holds is known later: it is
// corrected in message_delta.
func (w *stream) begin(dst []byte) []byte {
	if w.begun {
		return dst
	}
	w.begun = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = fmt.Appendf(dst,
		`{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`,
		rawjson.Quote(piece.MessageID(w.said.id)), rawjson.Quote(w.said.id.Model))
	return append(piece.AppendMessagesUsage(dst, wire.Usage{}), "}}\n\n"...)
}

// head writes the beginning of an event of the first block.
func (w *stream) head(dst []byte, event string) []byte {
	dst = rawjson.Put(dst, "event: ", event, "\ndata: {\"type\":\"")
	dst = rawjson.Put(dst, "", event, `","index":`)
	return strconv.AppendInt(dst, int64(w.index), 10)
}

// start writes the beginning of a block, and what waited.
func (w *stream) start(dst []byte, b *block) []byte {
	b.started = true
	dst = append(w.head(w.begin(dst), "content_block_start"), `,"content_block":`...)
	switch b.kind {
	case textBlock:
		dst = append(dst, `{"type":"text","text":""}`...)
	case thoughtBlock:
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case sealedBlock:
		dst = rawjson.Put(dst, `{"type":"redacted_thinking","data":"`, b.seal, `"}`)
	case callBlock:
		dst = append(w.said.appendCall(dst, b.call), `,"input":{}}`...)
	}
	dst = append(dst, "}\n\n"...)
	if len(b.held) > 0 {
		dst = rawjson.Put(w.delta(dst, b), "", b.held, "\"}}\n\n")
		w.held -= len(b.held)
		b.held = nil
	}
	return dst
}

// delta writes the beginning of a delta of a block, up to its text.
func (w *stream) delta(dst []byte, b *block) []byte {
	dst = w.head(dst, "content_block_delta")
	switch b.kind {
	case thoughtBlock:
		return append(dst, `,"delta":{"type":"thinking_delta","thinking":"`...)
	case callBlock:
		return append(dst, `,"delta":{"type":"input_json_delta","partial_json":"`...)
	}
	return append(dst, `,"delta":{"type":"text_delta","text":"`...)
}

// stop ends a block: thoughts with their seal, which may be empty.
func (w *stream) stop(dst []byte, b *block) []byte {
	switch {
	case b.kind == thoughtBlock:
		dst = append(w.head(dst, "content_block_delta"), `,"delta":{"type":"signature_delta","signature":"`...)
		dst = rawjson.Put(dst, "", b.seal, "\"}}\n\n")
	case b.kind == callBlock && !b.call.Said:
		dst = append(w.delta(dst, b), "{}\"}}\n\n"...)
	}
	return append(w.head(dst, "content_block_stop"), "}\n\n"...)
}

// give gives an answer up that is larger than any model's: it ends in an error.
func (w *stream) give(dst []byte) []byte {
	return w.Fail(dst, fault.New(fault.UpstreamError,
		"The model's answer holds more tool calls at once than can be passed on. Please try again."))
}

// End appends what closes a stream that has come to its end, with u as its usage.
func (w *stream) End(dst []byte, u wire.Usage) []byte {
	if w.over {
		return dst
	}
	w.over = true
	dst = append(w.begin(dst), "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""...)
	dst = rawjson.Put(dst, "", w.said.stopReason(), `","stop_sequence":null},"usage":`)
	dst = append(piece.AppendMessagesUsage(dst, u), "}\n\n"...)
	return append(dst, sse.MessageStop...)
}

// Fail appends the event of an error, after which nothing is written.
func (w *stream) Fail(dst []byte, err *fault.Error) []byte {
	w.over = true
	w.queue, w.held = nil, 0
	return rawjson.Put(dst, "event: error\ndata: ", err.NativeBody(), "\n\n")
}

// blockKind is a kind of content block.
type blockKind int

const (
	textBlock blockKind = iota
	thoughtBlock
	sealedBlock // thoughts of which there is no text
	callBlock
)

// block is a content block of the answer.
type block struct {
	kind  blockKind
	item  int
	part  int
	call  *item.ToolCall
	seal  []byte // the inside of a JSON string
	held  []byte // what is not written, the inside of a JSON string
	ended bool

	started bool // of a stream
}

// said puts the steps of an answer into blocks.
type said struct {
	id      wire.Identity
	reader  *item.Reader
	open    []*block // those that have not ended
	ids     map[string]bool
	refused bool
}

func newSaid(id wire.Identity, names item.Names) said {
	return said{id: id, reader: item.NewReader(id, names), ids: map[string]bool{}}
}

// take returns the block that a step is of, and whether it begins with it; nil
// where the step says nothing.
func (o *said) take(s item.AnswerStep) (b *block, begins bool) {
	kind := textBlock
	switch s.Kind {
	case item.Thought:
		kind = thoughtBlock
	case item.Thinking:
		if b = o.find(thoughtBlock, s); b != nil {
			b.seal = bytes.Clone(s.Text)
			return o.end(b), false
		}
		if len(s.Text) == 0 {
			return nil, false
		}
		return &block{kind: sealedBlock, seal: bytes.Clone(s.Text), ended: true}, true
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

// find returns the open block of a step; nil where there is none.
func (o *said) find(kind blockKind, s item.AnswerStep) *block {
	for i := len(o.open) - 1; i >= 0; i-- {
		if b := o.open[i]; b.kind == kind && b.item == s.Item && b.part == s.Part && !b.ended {
			return b
		}
	}
	return nil
}

// end ends a block, which may be nil.
func (o *said) end(b *block) *block {
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
func (o *said) appendCall(dst []byte, c *item.ToolCall) []byte {
	id := piece.ToolID(rawjson.Unquote(c.ID))
	if id == "" || o.ids[id] {
		id = piece.MadeCallID(o.id, c.Number)
	}
	o.ids[id] = true
	dst = rawjson.Put(dst, `{"type":"tool_use","id":`, rawjson.Quote(id), `,"name":"`)
	return rawjson.Put(dst, "", c.Name, `"`)
}

// stopReason tells why the answer ended.
func (o *said) stopReason() string {
	switch o.reader.Finish() {
	case form.FinishLimit:
		return "max_tokens"
	case form.FinishFiltered:
		return "refusal"
	}
	switch {
	case o.reader.Called():
		return "tool_use"
	case o.refused:
		return "refusal"
	}
	return "end_turn"
}
