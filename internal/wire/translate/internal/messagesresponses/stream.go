package messagesresponses

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// stream writes a responses stream as one of messages. Whatever the provider sends, its output is
// well formed: blocks are numbered from 0, one is open at a time, and message_stop follows only the
// end of the answer. It is not safe for concurrent use.
type stream struct {
	piece.MessagesStream
	output output
	blocks []*block // of Queue
}

func newStream(id wire.Identity, names item.Names) *stream {
	return &stream{MessagesStream: piece.MessagesStream{ID: id}, output: newOutput(id, names)}
}

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
	if w.Ended {
		return dst
	}
	b, begins := w.output.blockOf(s)
	if b == nil {
		return dst
	}
	if begins {
		w.blocks = append(w.blocks, b)
		dst = w.Add(dst, &b.Block)
	}
	if len(s.Text) > 0 && s.Kind != item.ReasoningEnd && !w.Ended {
		dst = w.Grow(dst, &b.Block, s.Text, appendText)
	}
	return w.advance(dst)
}

func appendText(dst, text []byte) []byte { return append(dst, text...) }

// advance starts the first block of the queue and stops blocks that have ended. A text block also
// stops when another block waits.
func (w *stream) advance(dst []byte) []byte {
	for len(w.Queue) > 0 {
		b := w.blocks[0]
		if !b.Started {
			if b.call != nil {
				b.ID, b.Name = rawjson.Contents(w.output.callID(b.call)), b.call.Name
			}
			dst = w.Start(dst)
		}
		if !b.done && (b.Kind != piece.TextBlock || len(w.Queue) == 1) {
			return dst
		}
		b.done = true
		if b.Kind == piece.CallBlock && !b.HasText {
			dst = w.Grow(dst, &b.Block, []byte("{}"), appendText)
		}
		dst = w.Stop(dst)
		w.blocks = w.blocks[1:]
	}
	return dst
}

func (w *stream) End(dst []byte, u wire.Usage) []byte {
	return w.Finish(dst, w.output.stopReason(), u)
}

// block is a content block of the answer.
type block struct {
	piece.Block
	item, part int
	call       *item.ToolCall
	done       bool // no more text follows
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
	kind := piece.TextBlock
	switch s.Kind {
	case item.ReasoningText:
		kind = piece.ThinkingBlock
	case item.ReasoningEnd:
		if b = o.find(piece.ThinkingBlock, s); b != nil {
			b.Seal = bytes.Clone(s.Text)
			return o.end(b), false
		}
		if len(s.Text) == 0 {
			return nil, false
		}
		return &block{Block: piece.Block{Kind: piece.RedactedBlock, Seal: bytes.Clone(s.Text)}, done: true}, true
	case item.Call, item.Arguments, item.CallEnd:
		kind = piece.CallBlock
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
	b = &block{Block: piece.Block{Kind: kind}, item: s.Item, part: s.Part, call: s.Call}
	o.open = append(o.open, b)
	return b, true
}

// find returns the open block of a step, or nil.
func (o *output) find(kind piece.BlockKind, s item.AnswerStep) *block {
	for i := len(o.open) - 1; i >= 0; i-- {
		if b := o.open[i]; b.Kind == kind && b.item == s.Item && b.part == s.Part && !b.done {
			return b
		}
	}
	return nil
}

// end ends a block, which may be nil.
func (o *output) end(b *block) *block {
	for i, open := range o.open {
		if open == b {
			b.done = true
			o.open = append(o.open[:i], o.open[i+1:]...)
			break
		}
	}
	return b
}

// callID returns the client's id of a call, a JSON string.
func (o *output) callID(c *item.ToolCall) []byte {
	id := piece.ToolID(rawjson.Unquote(c.ID))
	if id == "" || o.ids[id] {
		id = piece.NewCallID(o.id, c.Number)
	}
	o.ids[id] = true
	return rawjson.Quote(id)
}

// stopReason returns the stop_reason.
func (o *output) stopReason() string {
	return piece.StopReason(o.reader.Finish(), o.reader.HasCalls(), o.refused)
}
