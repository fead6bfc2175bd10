package piece

import (
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// BlockKind is a kind of content block of the messages form.
type BlockKind int

// The kinds of content blocks.
const (
	TextBlock BlockKind = iota
	ThinkingBlock
	RedactedBlock // reasoning without text
	CallBlock
)

// Block is a content block of a MessagesStream. All texts are the contents of JSON strings.
type Block struct {
	Kind   BlockKind
	Number int // of a call, among the calls
	// ID and Name belong to a call, and must be set before Start.
	ID, Name []byte
	// Seal is the signature of thinking, the data of redacted thinking, or of a redacted block before
	// a call.
	Seal    []byte
	Pending []byte // text not yet written
	HasText bool
	Started bool
	Ended   bool // completely written
}

// MessagesStream writes the events of a stream of the messages form. Its output is well formed:
// blocks are numbered from 0, and one is open at a time. It is not safe for concurrent use.
type MessagesStream struct {
	ID    wire.Identity
	Queue []*Block // the first is being written, the others wait for its end
	Ended bool     // after End or Fail

	started      bool
	index        int // of the first block of Queue
	pendingBytes int
}

const (
	// MaxPending bounds the output waiting for the end of a block in bytes. No model's answer comes
	// near.
	MaxPending = 8 << 20
	// MaxQueue bounds the blocks in the same way.
	MaxQueue = 4096
)

// Begin appends message_start, once. The prompt's count is not known yet; message_delta corrects it.
func (w *MessagesStream) Begin(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = append(AppendMessageHead(dst, w.ID), `],"stop_reason":null,"stop_sequence":null,"usage":`...)
	return append(AppendMessagesUsage(dst, wire.Usage{}), "}}\n\n"...)
}

// AppendMessageHead appends the start of a message up to its content.
func AppendMessageHead(dst []byte, id wire.Identity) []byte {
	return fmt.Appendf(dst, `{"id":%s,"type":"message","role":"assistant","model":%s,"content":[`,
		rawjson.Quote(MessageID(id)), rawjson.Quote(id.Model))
}

// Add adds a block to the queue.
func (w *MessagesStream) Add(dst []byte, b *Block) []byte {
	if len(w.Queue) >= MaxQueue {
		return w.FailTooLarge(dst)
	}
	w.Queue = append(w.Queue, b)
	return dst
}

// Grow adds text to a block by add. The text is written if the block is started, or else waits.
func (w *MessagesStream) Grow(dst []byte, b *Block, text []byte, add func(dst, text []byte) []byte) []byte {
	b.HasText = true
	if b.Started {
		return append(add(w.delta(dst, b), text), "\"}}\n\n"...)
	}
	before := len(b.Pending)
	b.Pending = add(b.Pending, text)
	if w.pendingBytes += len(b.Pending) - before; w.pendingBytes > MaxPending {
		return w.FailTooLarge(dst)
	}
	return dst
}

// head appends the start of an event of the first block.
func (w *MessagesStream) head(dst []byte, event string) []byte {
	dst = rawjson.Put(dst, "event: ", event, "\ndata: {\"type\":\"")
	dst = rawjson.Put(dst, "", event, `","index":`)
	return strconv.AppendInt(dst, int64(w.index), 10)
}

// Start appends the start of the first block of the queue and its pending text.
func (w *MessagesStream) Start(dst []byte) []byte {
	b := w.Queue[0]
	b.Started = true
	dst = w.Begin(dst)
	if b.Kind == CallBlock && b.Seal != nil {
		dst = append(w.head(dst, "content_block_start"), `,"content_block":{"type":"redacted_thinking","data":"`...)
		dst = append(w.head(append(append(dst, b.Seal...), "\"}}\n\n"...), "content_block_stop"), "}\n\n"...)
		w.index++
	}
	dst = append(w.head(dst, "content_block_start"), `,"content_block":`...)
	switch b.Kind {
	case TextBlock:
		dst = append(dst, `{"type":"text","text":""}`...)
	case ThinkingBlock:
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case RedactedBlock:
		dst = rawjson.Put(dst, `{"type":"redacted_thinking","data":"`, b.Seal, `"}`)
	case CallBlock:
		dst = rawjson.Put(dst, `{"type":"tool_use","id":"`, b.ID, `","name":"`)
		dst = rawjson.Put(dst, "", b.Name, `","input":{}}`)
	}
	dst = append(dst, "}\n\n"...)
	if len(b.Pending) > 0 {
		dst = rawjson.Put(w.delta(dst, b), "", b.Pending, "\"}}\n\n")
		w.pendingBytes -= len(b.Pending)
		b.Pending = nil
	}
	return dst
}

// delta appends the start of a delta of a block, up to its text.
func (w *MessagesStream) delta(dst []byte, b *Block) []byte {
	dst = w.head(dst, "content_block_delta")
	switch b.Kind {
	case ThinkingBlock:
		return append(dst, `,"delta":{"type":"thinking_delta","thinking":"`...)
	case CallBlock:
		return append(dst, `,"delta":{"type":"input_json_delta","partial_json":"`...)
	}
	return append(dst, `,"delta":{"type":"text_delta","text":"`...)
}

// Stop appends the end of the first block and removes it from the queue. Thinking ends with its
// signature, which may be empty.
func (w *MessagesStream) Stop(dst []byte) []byte {
	b := w.Queue[0]
	if b.Kind == ThinkingBlock {
		dst = append(w.head(dst, "content_block_delta"), `,"delta":{"type":"signature_delta","signature":"`...)
		dst = rawjson.Put(dst, "", b.Seal, "\"}}\n\n")
	}
	dst = append(w.head(dst, "content_block_stop"), "}\n\n"...)
	b.Ended = true
	w.Queue = w.Queue[1:]
	w.index++
	return dst
}

// FailTooLarge ends the stream of an answer larger than any model's with an error.
func (w *MessagesStream) FailTooLarge(dst []byte) []byte {
	return w.Fail(dst, fault.New(fault.UpstreamError,
		"The model's answer holds more tool calls at once than can be passed on. Please try again."))
}

// Finish appends the end of the stream, once.
func (w *MessagesStream) Finish(dst []byte, stopReason string, u wire.Usage) []byte {
	if w.Ended {
		return dst
	}
	w.Ended = true
	dst = append(w.Begin(dst), "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""...)
	dst = rawjson.Put(dst, "", stopReason, `","stop_sequence":null},"usage":`)
	dst = append(AppendMessagesUsage(dst, u), "}\n\n"...)
	return append(dst, sse.MessageStop...)
}

// Fail implements wire.Writer.
func (w *MessagesStream) Fail(dst []byte, err *fault.Error) []byte {
	w.Ended = true
	w.Queue, w.pendingBytes = nil, 0
	return rawjson.Put(dst, "event: error\ndata: ", err.NativeBody(), "\n\n")
}
