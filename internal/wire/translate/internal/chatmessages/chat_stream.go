package chatmessages

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

// messagesStream writes a stream of the chat form as one of the messages form.
// Whatever the provider sends, what it writes is well formed: blocks are
// numbered from 0, one at a time is open, and message_stop comes only behind a
// finish_reason. Not for concurrent use.
type messagesStream struct {
	id wire.Identity

	started, finished, ended bool
	refused, hasText         bool // a refusal came; text came
	reason                   string
	hasChoice                bool
	choice                   int64 // whose answer is written: the first that came

	index        int         // of the first block of queue
	queue        []*outBlock // the first is being written, the others wait for its end
	calls        []*outCall  // all of them, in the order in which they came
	pendingBytes int         // bytes that wait
}

// outBlock is a block that was not written to its end.
type outBlock struct {
	kind    blockKind
	started bool
	pending []byte   // what is not written, the inside of a JSON string
	call    *outCall // of a call
}

// outCall is a call of a tool, by what the provider calls it.
type outCall struct {
	number    int // among the calls
	key       int64
	id        string // the provider's; may be empty
	clientID  []byte // the client's, as a JSON string
	name      []byte // as a JSON string; nil until it is known
	args      argumentScanner
	block     *outBlock
	ended     bool   // the block has ended
	signature []byte // the signature of a thought that came with it; nil: none
}

const (
	// maxPending bounds the bytes that wait for the end of a block, maxQueue
	// the blocks, and maxCalls the calls of one answer; no model's answer comes
	// near.
	maxPending = 8 << 20
	maxQueue   = 4096
	maxCalls   = 1024
	// functionKey is the key of a call in its older form.
	functionKey = -1
)

// newMessagesStream makes the writer of a messages stream from chunks of the
// chat form.
func newMessagesStream(id wire.Identity) *messagesStream { return &messagesStream{id: id} }

// Append appends the events for a chunk to dst. Calls of tools that the
// provider mixes are written one after the other. The blocks end with the
// finish_reason; message_delta and message_stop are End's, errors Fail's.
func (w *messagesStream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return append(dst, sse.KeepAlive...)
	case data[0] != '{' || w.finished || f.Err != nil:
		return dst
	}
	dst = w.begin(dst)
	for position, choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
		index, ok := rawjson.Count(rawjson.Field(choice, "index"))
		if !ok {
			index = int64(position)
		}
		if !w.hasChoice {
			w.hasChoice, w.choice = true, index
		}
		if index != w.choice {
			continue // the form has one answer
		}
		for _, name := range [...]string{"delta", "message"} {
			dst = w.message(dst, rawjson.Field(choice, name))
		}
		if w.finished {
			return dst
		}
		reason := rawjson.Unquote(rawjson.Field(choice, "finish_reason"))
		if kind := form.FinishOf(reason); kind != form.FinishNone && kind != form.FinishFailed {
			return w.finish(dst, reason)
		}
	}
	return dst
}

// begin writes message_start, once. What the prompt holds is known later: it
// is corrected in message_delta.
func (w *messagesStream) begin(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = fmt.Appendf(dst,
		`{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`,
		rawjson.Quote(piece.MessageID(w.id)), rawjson.Quote(w.id.Model))
	return append(piece.AppendMessagesUsage(dst, wire.Usage{}), "}}\n\n"...)
}

// message writes what a delta says.
func (w *messagesStream) message(dst, message []byte) []byte {
	if message == nil {
		return dst
	}
	m := readChatMessage(message)
	if rawjson.IsText(m.reasoning) {
		dst = w.text(dst, thinkingKind, m.reasoning)
	} else if m.reasoning != nil {
		dst = w.parts(dst, func(add func(blockKind, []byte)) {
			eachReasoning(m.reasoning, 0, func(raw []byte) { add(thinkingKind, raw) })
		})
	}
	if rawjson.IsText(m.content) {
		dst = w.text(dst, textKind, m.content)
	} else if m.content != nil {
		dst = w.parts(dst, func(add func(blockKind, []byte)) { eachContent(m.content, add) })
	}
	if len(rawjson.Contents(m.refusal)) > 0 {
		w.refused = w.refused || !w.hasText
		dst = w.text(dst, textKind, m.refusal)
	}
	for position, call := range rawjson.Elements(m.calls) {
		dst = w.call(dst, call, rawjson.Field(call, "function"), position)
	}
	if m.function != nil {
		dst = w.call(dst, nil, m.function, functionKey)
	}
	return dst
}

// parts writes what a vendor sends in parts.
func (w *messagesStream) parts(dst []byte, each func(add func(blockKind, []byte))) []byte {
	each(func(kind blockKind, raw []byte) { dst = w.text(dst, kind, raw) })
	return dst
}

// text writes text or reasoning.
func (w *messagesStream) text(dst []byte, kind blockKind, raw []byte) []byte {
	if len(rawjson.Contents(raw)) == 0 || w.finished {
		return dst
	}
	w.hasText = w.hasText || kind == textKind
	n := len(w.queue)
	if n == 0 || w.queue[n-1].kind != kind {
		if n >= maxQueue {
			return w.failTooLarge(dst)
		}
		w.queue = append(w.queue, &outBlock{kind: kind})
		dst = w.advance(dst, false)
	}
	return w.grow(dst, w.queue[len(w.queue)-1], raw)
}

// call writes a delta of a call: its beginning, or a fragment of its
// arguments.
func (w *messagesStream) call(dst, call, function []byte, position int) []byte {
	if w.finished {
		return dst
	}
	key, hasIndex := rawjson.Count(rawjson.Field(call, "index"))
	if !hasIndex {
		key = int64(position)
	}
	id, name := rawjson.Unquote(rawjson.Field(call, "id")), rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		name = nil
	}
	c := w.find(key, id, name != nil, hasIndex)
	if c == nil {
		if len(w.calls) >= maxCalls {
			return w.failTooLarge(dst)
		}
		c = &outCall{number: len(w.calls), key: key, id: id, block: &outBlock{kind: callKind}}
		c.block.call = c
		w.calls = append(w.calls, c)
		w.queue = append(w.queue, c.block)
	}
	if c.name == nil && name != nil {
		c.name = rawjson.Put(nil, `"`, piece.AppendContents(nil, name), `"`)
	}
	if c.clientID == nil && id != "" {
		c.id, c.clientID = id, w.clientID(id, c.number)
	}
	if signature := item.SealSignature(w.id, call); signature != nil {
		c.signature = signature
	}
	dst = w.advance(dst, false)
	arguments := rawjson.Field(function, "arguments")
	switch {
	case arguments == nil || string(arguments) == `""` || c.ended:
		return dst
	case !rawjson.IsText(arguments): // a whole object, where the form has its text
		arguments = piece.AppendQuoted(nil, arguments)
	}
	c.args.add(rawjson.Contents(arguments))
	dst = w.grow(dst, c.block, arguments)
	return w.advance(dst, false)
}

// find returns the call that a delta belongs to; nil when it begins one. The
// index tells, as far as vendors send it, and do so truly: some number every
// call 0, some none.
func (w *messagesStream) find(key int64, id string, hasName, hasIndex bool) *outCall {
	var last *outCall
	for i := len(w.calls) - 1; i >= 0; i-- {
		c := w.calls[i]
		if !hasIndex && id != "" && c.id == id {
			return c
		}
		if last == nil && c.key == key {
			last = c
		}
	}
	if last == nil && !hasIndex && key >= 0 && !hasName && id == "" && len(w.calls) > 0 {
		last = w.calls[len(w.calls)-1]
	}
	switch {
	case last == nil || !hasName || last.name == nil || id == last.id && id != "":
		return last
	case id == "" && hasIndex, id != "" && last.id == "" && !last.args.complete():
		return last
	case id == "" && !last.args.complete():
		return last
	}
	return nil
}

// clientID returns the id that the client gets for a call, unlike those before
// it.
func (w *messagesStream) clientID(id string, number int) []byte {
	sent := rawjson.Quote(piece.ToolID(id))
	for _, c := range w.calls {
		if bytes.Equal(c.clientID, sent) {
			return rawjson.Quote(piece.NewCallID(w.id, number))
		}
	}
	return sent
}

// grow adds a text, a JSON string, to a block: it is written if the block is
// open, else it waits.
func (w *messagesStream) grow(dst []byte, b *outBlock, raw []byte) []byte {
	if b.started {
		dst = piece.AppendContents(w.delta(dst, b), raw)
		return append(dst, "\"}}\n\n"...)
	}
	before := len(b.pending)
	b.pending = piece.AppendContents(b.pending, raw)
	if w.pendingBytes += len(b.pending) - before; w.pendingBytes > maxPending {
		return w.failTooLarge(dst)
	}
	return dst
}

// advance starts the first block that is not written and ends those that are
// whole: any but a call when another waits, a call when its arguments have
// ended too. At the end of the answer all are.
func (w *messagesStream) advance(dst []byte, all bool) []byte {
	for len(w.queue) > 0 {
		b := w.queue[0]
		if !b.started {
			if b.kind == callKind && b.call.name == nil && !all {
				return dst
			}
			dst = w.start(dst, b)
		}
		if !all && (len(w.queue) == 1 || b.kind == callKind && !b.call.args.complete()) {
			return dst
		}
		dst = w.stop(dst, b)
		w.queue = w.queue[1:]
		w.index++
	}
	return dst
}

// head writes the beginning of an event of the first block.
func (w *messagesStream) head(dst []byte, event string) []byte {
	dst = rawjson.Put(dst, "event: ", event, "\ndata: {\"type\":\"")
	dst = rawjson.Put(dst, "", event, `","index":`)
	return strconv.AppendInt(dst, int64(w.index), 10)
}

// start writes the beginning of a block, and what waited.
func (w *messagesStream) start(dst []byte, b *outBlock) []byte {
	b.started = true
	if b.call != nil && b.call.signature != nil {
		dst = append(w.head(dst, "content_block_start"), `,"content_block":{"type":"redacted_thinking","data":"`...)
		dst = append(w.head(append(append(dst, b.call.signature...), "\"}}\n\n"...), "content_block_stop"), "}\n\n"...)
		w.index++
	}
	dst = append(w.head(dst, "content_block_start"), `,"content_block":`...)
	switch b.kind {
	case textKind:
		dst = append(dst, `{"type":"text","text":""}`...)
	case thinkingKind:
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case callKind:
		c := b.call
		if c.clientID == nil {
			c.clientID = rawjson.Quote(piece.NewCallID(w.id, c.number))
		}
		if c.name == nil {
			c.name = []byte(`""`)
		}
		dst = fmt.Appendf(dst, `{"type":"tool_use","id":%s,"name":%s,"input":{}}`, c.clientID, c.name)
	}
	dst = append(dst, "}\n\n"...)
	if len(b.pending) > 0 {
		dst = rawjson.Put(w.delta(dst, b), "", b.pending, "\"}}\n\n")
		w.pendingBytes -= len(b.pending)
		b.pending = nil
	}
	return dst
}

// delta writes the beginning of a delta of a block, up to its text.
func (w *messagesStream) delta(dst []byte, b *outBlock) []byte {
	dst = w.head(dst, "content_block_delta")
	switch b.kind {
	case thinkingKind:
		return append(dst, `,"delta":{"type":"thinking_delta","thinking":"`...)
	case callKind:
		return append(dst, `,"delta":{"type":"input_json_delta","partial_json":"`...)
	}
	return append(dst, `,"delta":{"type":"text_delta","text":"`...)
}

// stop ends a block. No chat line signs what it thought.
func (w *messagesStream) stop(dst []byte, b *outBlock) []byte {
	if b.kind == thinkingKind {
		dst = append(w.head(dst, "content_block_delta"), ",\"delta\":{\"type\":\"signature_delta\",\"signature\":\"\"}}\n\n"...)
	}
	if b.call != nil {
		b.call.ended = true
	}
	return append(w.head(dst, "content_block_stop"), "}\n\n"...)
}

// finish ends the blocks.
func (w *messagesStream) finish(dst []byte, reason string) []byte {
	w.finished, w.reason = true, reason
	return w.advance(dst, true)
}

// failTooLarge gives an answer up that is larger than any model's: it ends in an
// error.
func (w *messagesStream) failTooLarge(dst []byte) []byte {
	return w.Fail(dst, fault.New(fault.UpstreamError,
		"The model's answer holds more tool calls at once than can be passed on. Please try again."))
}

// End appends what closes a stream that has finished, with u as its usage. A
// stream that has not finished, or is closed, gets nothing.
func (w *messagesStream) End(dst []byte, u wire.Usage) []byte {
	if !w.finished || w.ended {
		return dst
	}
	w.ended = true
	reason := stopReason(w.reason, len(w.calls) > 0, w.refused)
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"...)
	dst = rawjson.Put(dst, "", rawjson.Quote(reason), `,"stop_sequence":null},"usage":`)
	dst = append(piece.AppendMessagesUsage(dst, u), "}\n\n"...)
	return append(dst, sse.MessageStop...)
}

// Fail appends the event of an error, after which nothing is written.
func (w *messagesStream) Fail(dst []byte, err *fault.Error) []byte {
	w.finished, w.ended = true, true
	w.queue, w.pendingBytes = nil, 0
	dst = rawjson.Put(dst, "event: error\ndata: ", err.NativeBody(), "")
	return append(dst, "\n\n"...)
}
