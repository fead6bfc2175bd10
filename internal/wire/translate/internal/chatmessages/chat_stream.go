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

// messagesStream writes a chat stream as one of the messages form. Whatever the provider sends, its
// output is well formed: blocks are numbered from 0, one is open at a time, and message_stop
// follows only a finish_reason. It is not safe for concurrent use.
type messagesStream struct {
	id wire.Identity

	started, finished, ended bool
	refused, hasText         bool // there was a refusal, there was text
	reason                   string
	hasChoice                bool
	choice                   int64 // index of the first choice, the only one written

	index        int         // of the first block of queue
	queue        []*outBlock // the first is being written, the others wait for its end
	calls        []*outCall  // in the order of arrival
	pendingBytes int         // size of pending output
}

// outBlock is a block not completely written.
type outBlock struct {
	kind    blockKind
	started bool
	pending []byte   // unwritten text, the contents of a JSON string
	call    *outCall // nil except for a call
}

// outCall is a tool call.
type outCall struct {
	number    int // among the calls
	key       int64
	id        string // the provider's, may be empty
	clientID  []byte // a JSON string
	name      []byte // a JSON string, nil until known
	args      argumentScanner
	block     *outBlock
	ended     bool   // the block has ended
	signature []byte // sealed signature of the reasoning before it, or nil
}

const (
	// maxPending bounds the output waiting for the end of a block in bytes, maxQueue the blocks,
	// and maxCalls the calls of one answer; no model's answer comes near.
	maxPending = 8 << 20
	maxQueue   = 4096
	maxCalls   = 1024
	// functionKey is the key of a call in its older form.
	functionKey = -1
)

// newMessagesStream returns the writer of a messages stream.
func newMessagesStream(id wire.Identity) *messagesStream { return &messagesStream{id: id} }

// Append implements wire.Writer. Interleaved tool calls are written one after the other. The blocks
// end with the finish_reason.
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

// begin appends message_start, once. The prompt's count is not known yet; message_delta corrects
// it.
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

// message appends the events for a delta.
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

// parts appends the texts of a value with parts.
func (w *messagesStream) parts(dst []byte, each func(add func(blockKind, []byte))) []byte {
	each(func(kind blockKind, raw []byte) { dst = w.text(dst, kind, raw) })
	return dst
}

// text appends text or reasoning.
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

// call appends a delta of a call: its start, or a piece of its arguments.
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
	case !rawjson.IsText(arguments): // an object instead of its text
		arguments = piece.AppendQuoted(nil, arguments)
	}
	c.args.add(rawjson.Contents(arguments))
	dst = w.grow(dst, c.block, arguments)
	return w.advance(dst, false)
}

// find returns the call of a delta, or nil if the delta starts one. Some vendors number every call
// 0, and some send no index.
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

// clientID returns the client's id of a call, different from those before it.
func (w *messagesStream) clientID(id string, number int) []byte {
	sent := rawjson.Quote(piece.ToolID(id))
	for _, c := range w.calls {
		if bytes.Equal(c.clientID, sent) {
			return rawjson.Quote(piece.NewCallID(w.id, number))
		}
	}
	return sent
}

// grow adds a text, a JSON string, to a block. The text is written if the block is started, or else
// waits.
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

// advance starts the first block of the queue and stops complete blocks: a call after its arguments
// have ended, and any block once another waits. If all is set, every block is complete.
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

// head appends the start of an event of the first block.
func (w *messagesStream) head(dst []byte, event string) []byte {
	dst = rawjson.Put(dst, "event: ", event, "\ndata: {\"type\":\"")
	dst = rawjson.Put(dst, "", event, `","index":`)
	return strconv.AppendInt(dst, int64(w.index), 10)
}

// start appends the start of a block and its pending output.
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

// delta appends the start of a delta of a block, up to its text.
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

// stop appends the end of a block. No chat line signs its reasoning.
func (w *messagesStream) stop(dst []byte, b *outBlock) []byte {
	if b.kind == thinkingKind {
		dst = append(w.head(dst, "content_block_delta"), ",\"delta\":{\"type\":\"signature_delta\",\"signature\":\"\"}}\n\n"...)
	}
	if b.call != nil {
		b.call.ended = true
	}
	return append(w.head(dst, "content_block_stop"), "}\n\n"...)
}

// finish ends all blocks.
func (w *messagesStream) finish(dst []byte, reason string) []byte {
	w.finished, w.reason = true, reason
	return w.advance(dst, true)
}

// failTooLarge ends the stream of an answer larger than any model's with an error.
func (w *messagesStream) failTooLarge(dst []byte) []byte {
	return w.Fail(dst, fault.New(fault.UpstreamError,
		"The model's answer holds more tool calls at once than can be passed on. Please try again."))
}

// End implements wire.Writer. It appends nothing to an unfinished or ended stream.
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

// Fail implements wire.Writer.
func (w *messagesStream) Fail(dst []byte, err *fault.Error) []byte {
	w.finished, w.ended = true, true
	w.queue, w.pendingBytes = nil, 0
	dst = rawjson.Put(dst, "event: error\ndata: ", err.NativeBody(), "")
	return append(dst, "\n\n"...)
}
