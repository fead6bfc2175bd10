package chatmessages

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/piece"
)

// chatStream writes a messages stream as one of the chat form. Whatever the provider sends, its
// output is well formed: one identity in all chunks, tool calls numbered from 0, at most one
// finish_reason and only usage and [DONE] after it. It is not safe for concurrent use.
type chatStream struct {
	id    wire.Identity
	usage bool // the client asked for usage

	head []byte // of every chunk, up to its delta
	tail []byte // of a chunk without finish_reason

	started, finished, ended bool
	calls                    int // number of tool calls started
	open                     []openBlock
}

// openBlock is an open tool_use block.
type openBlock struct {
	index        int64 // among all blocks
	call         int   // among the calls
	hasArguments bool  // a piece of arguments was sent
	isComplete   bool  // the block started with all its arguments
}

// maxOpenBlocks bounds the blocks left open by a provider. In the form, one is open at a time.
const maxOpenBlocks = 128

// newChatStream returns the writer of a chat stream, with the usage chunk if includeUsage is set.
func newChatStream(id wire.Identity, includeUsage bool) *chatStream {
	w := &chatStream{id: id, usage: includeUsage}
	w.head = append(piece.AppendChatHead([]byte("data: "), id, "chat.completion.chunk"), `[{"index":0,"delta":`...)
	w.tail = []byte(`,"finish_reason":null}]` + w.nullUsage() + "}\n\n")
	return w
}

// nullUsage returns the usage member of every other chunk.
func (w *chatStream) nullUsage() string {
	if w.usage {
		return `,"usage":null`
	}
	return ""
}

// Append implements wire.Writer. Pings become comments.
func (w *chatStream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 {
		return append(dst, sse.KeepAlive...)
	}
	if w.finished || f.Err != nil {
		return dst
	}
	var kind, index, delta, block []byte
	for name, value := range rawjson.Members(data) {
		switch string(name) {
		case "type":
			kind = rawjson.UnquoteBytes(value)
		case "index":
			index = value
		case "delta":
			delta = value
		case "content_block":
			block = value
		}
	}
	if kind == nil {
		kind = []byte(e.Name)
	}
	switch string(kind) {
	case "ping":
		return append(dst, sse.KeepAlive...)
	case "message_start":
		return w.begin(dst)
	case "content_block_start":
		n, _ := rawjson.Count(index)
		return w.start(dst, n, block)
	case "content_block_delta":
		n, _ := rawjson.Count(index)
		return w.delta(dst, n, delta)
	case "content_block_stop":
		n, _ := rawjson.Count(index)
		return w.stop(dst, n)
	case "message_delta":
		reason := rawjson.Unquote(rawjson.Field(delta, "stop_reason"))
		if kind := form.FinishOf(reason); kind != form.FinishNone && kind != form.FinishFailed {
			return w.finish(dst, reason)
		}
	case "message_stop": // the reason is missing
		return w.finish(dst, "")
	}
	return dst
}

// begin appends the first chunk, once.
func (w *chatStream) begin(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	return w.chunk(dst, `{"role":"assistant","content":""}`)
}

// chunk appends a chunk with the given delta.
func (w *chatStream) chunk(dst []byte, delta string) []byte {
	dst = append(dst, w.head...)
	dst = append(dst, delta...)
	return append(dst, w.tail...)
}

// text appends a chunk with a text, after the start of its member.
func (w *chatStream) text(dst []byte, before string, raw []byte) []byte {
	if len(rawjson.Contents(raw)) == 0 {
		return dst
	}
	dst = w.begin(dst)
	dst = append(dst, w.head...)
	dst = append(dst, before...)
	dst = piece.AppendContents(dst, raw)
	return rawjson.Put(dst, `"}`, w.tail, "")
}

const (
	contentDelta   = `{"content":"`
	reasoningDelta = `{"reasoning_content":"`
)

// start starts a block. Some hosts of the form put the first text, or all arguments, here.
func (w *chatStream) start(dst []byte, index int64, block []byte) []byte {
	switch rawjson.Unquote(rawjson.Field(block, "type")) {
	case "text":
		return w.text(dst, contentDelta, rawjson.Field(block, "text"))
	case "thinking":
		return w.text(dst, reasoningDelta, rawjson.Field(block, "thinking"))
	case "tool_use":
	default:
		return dst
	}
	if len(w.open) >= maxOpenBlocks {
		dst = w.stop(dst, w.open[0].index)
	}
	call, input := w.calls, rawjson.Field(block, "input")
	whole := len(input) > 2 // not {}
	w.open = append(w.open, openBlock{index: index, call: call, hasArguments: whole, isComplete: whole})
	w.calls++
	dst = append(w.begin(dst), w.head...)
	dst = fmt.Appendf(dst, `{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":"`, call,
		callID(rawjson.Field(block, "id"), w.id, call))
	dst = piece.AppendContents(dst, rawjson.Field(block, "name"))
	dst = rawjson.Put(dst, `","arguments":""}}]}`, w.tail, "")
	if whole {
		dst = w.endArguments(piece.AppendEscaped(w.beginArguments(dst, call), input))
	}
	return dst
}

// delta appends the chunk for a delta of a block.
func (w *chatStream) delta(dst []byte, index int64, delta []byte) []byte {
	var kind, text, thinking, partial []byte
	for name, value := range rawjson.Members(delta) {
		switch string(name) {
		case "type":
			kind = rawjson.UnquoteBytes(value)
		case "text":
			text = value
		case "thinking":
			thinking = value
		case "partial_json":
			partial = value
		}
	}
	switch string(kind) {
	case "text_delta":
		return w.text(dst, contentDelta, text)
	case "thinking_delta":
		return w.text(dst, reasoningDelta, thinking)
	case "input_json_delta":
		if i := w.find(index); i >= 0 && !w.open[i].isComplete && len(rawjson.Contents(partial)) > 0 {
			w.open[i].hasArguments = true
			dst = w.beginArguments(dst, w.open[i].call)
			dst = piece.AppendContents(dst, partial)
			return w.endArguments(dst)
		}
	}
	return dst
}

func (w *chatStream) find(index int64) int {
	return slices.IndexFunc(w.open, func(b openBlock) bool { return b.index == index })
}

func (w *chatStream) beginArguments(dst []byte, call int) []byte {
	dst = rawjson.Put(dst, "", w.head, `{"tool_calls":[{"index":`)
	return append(strconv.AppendInt(dst, int64(call), 10), `,"function":{"arguments":"`...)
}

func (w *chatStream) endArguments(dst []byte) []byte {
	return rawjson.Put(dst, `"}}]}`, w.tail, "")
}

// stop ends a block. A call without arguments gets an empty object.
func (w *chatStream) stop(dst []byte, index int64) []byte {
	i := w.find(index)
	if i < 0 {
		return dst
	}
	b := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	if b.hasArguments {
		return dst
	}
	return w.endArguments(append(w.beginArguments(dst, b.call), "{}"...))
}

// finish ends the choice.
func (w *chatStream) finish(dst []byte, reason string) []byte {
	dst = w.begin(dst)
	for len(w.open) > 0 {
		dst = w.stop(dst, w.open[0].index)
	}
	w.finished = true
	dst = rawjson.Put(dst, "", w.head, `{},"finish_reason":"`)
	return rawjson.Put(dst, piece.FinishReason(form.FinishOf(reason), w.calls > 0)+`"}]`, w.nullUsage(), "}\n\n")
}

// End implements wire.Writer. It appends nothing to an unfinished or ended stream.
func (w *chatStream) End(dst []byte, u wire.Usage) []byte {
	if !w.finished || w.ended {
		return dst
	}
	w.ended = true
	if w.usage {
		dst = piece.AppendUsageChunk(dst, w.id, u)
	}
	return append(dst, sse.Done...)
}

func (w *chatStream) Fail(dst []byte, err *fault.Error) []byte {
	w.finished, w.ended = true, true
	return append(dst, completions.ErrorEvent(err.Object())...)
}
