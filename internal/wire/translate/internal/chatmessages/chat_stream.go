package chatmessages

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// messagesStream translates a stream of chat completions into a stream of messages. The output is
// well formed whatever the provider sends: blocks are numbered from 0, one is open at a time, and
// message_stop follows only a finish_reason. It is not safe for concurrent use.
type messagesStream struct {
	piece.MessagesStream

	finished         bool
	refused, hasText bool // whether the answer had a refusal, or text
	reason           string
	hasChoice        bool
	choice           int64      // index of the first choice, the only one written
	calls            []*outCall // in the order of arrival
}

// outCall is a tool call.
type outCall struct {
	piece.Block
	key  int64
	id   string // the provider's, may be empty
	args argumentScanner
}

const (
	// maxCalls bounds the tool calls of one answer, far above the largest real answers.
	maxCalls = 1024
	// functionKey is the key of a call in the deprecated member function_call, which has no index.
	functionKey = -1
)

// newMessagesStream returns the writer of a messages stream.
func newMessagesStream(id wire.Identity) *messagesStream {
	return &messagesStream{MessagesStream: piece.MessagesStream{ID: id}}
}

// Append implements wire.Writer. Interleaved tool calls are written one after the other. The blocks
// end with the finish_reason.
func (w *messagesStream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return append(dst, sse.KeepAlive...)
	case data[0] != '{' || w.isDone() || f.Err != nil:
		return dst
	}
	dst = w.Begin(dst)
	for position, choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
		index, ok := rawjson.Count(rawjson.Field(choice, "index"))
		if !ok {
			index = int64(position)
		}
		if !w.hasChoice {
			w.hasChoice, w.choice = true, index
		}
		if index != w.choice {
			continue // messages have a single choice
		}
		for _, name := range [...]string{"delta", "message"} {
			dst = w.message(dst, rawjson.Field(choice, name))
		}
		if w.isDone() {
			return dst
		}
		reason := rawjson.Unquote(rawjson.Field(choice, "finish_reason"))
		if kind := form.FinishOf(reason); kind != form.FinishNone && kind != form.FinishFailed {
			return w.finish(dst, reason)
		}
	}
	return dst
}

// message appends the events for a delta.
func (w *messagesStream) message(dst, message []byte) []byte {
	if message == nil {
		return dst
	}
	m := readChatMessage(message)
	if rawjson.IsText(m.reasoning) {
		dst = w.text(dst, piece.ThinkingBlock, m.reasoning)
	} else if m.reasoning != nil {
		dst = w.parts(dst, func(add func(piece.BlockKind, []byte)) {
			eachReasoning(m.reasoning, 0, func(raw []byte) { add(piece.ThinkingBlock, raw) })
		})
	}
	if rawjson.IsText(m.content) {
		dst = w.text(dst, piece.TextBlock, m.content)
	} else if m.content != nil {
		dst = w.parts(dst, func(add func(piece.BlockKind, []byte)) { eachContent(m.content, add) })
	}
	if len(rawjson.Contents(m.refusal)) > 0 {
		w.refused = w.refused || !w.hasText
		dst = w.text(dst, piece.TextBlock, m.refusal)
	}
	for position, call := range rawjson.Elements(m.calls) {
		dst = w.call(dst, call, rawjson.Field(call, "function"), position)
	}
	if m.function != nil {
		dst = w.call(dst, nil, m.function, functionKey)
	}
	return dst
}

// parts appends the text of each part that each passes to its argument.
func (w *messagesStream) parts(dst []byte, each func(add func(piece.BlockKind, []byte))) []byte {
	each(func(kind piece.BlockKind, raw []byte) { dst = w.text(dst, kind, raw) })
	return dst
}

// text appends text or reasoning.
func (w *messagesStream) text(dst []byte, kind piece.BlockKind, raw []byte) []byte {
	if len(rawjson.Contents(raw)) == 0 || w.isDone() {
		return dst
	}
	w.hasText = w.hasText || kind == piece.TextBlock
	n := len(w.Queue)
	if n == 0 || w.Queue[n-1].Kind != kind {
		if dst = w.Add(dst, &piece.Block{Kind: kind}); w.Ended {
			return dst
		}
		dst = w.advance(dst, false)
	}
	return w.Grow(dst, w.Queue[len(w.Queue)-1], raw, piece.AppendContents)
}

// call appends a delta of a call: its start, or a piece of its arguments.
func (w *messagesStream) call(dst, call, function []byte, position int) []byte {
	if w.isDone() {
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
			return w.FailTooLarge(dst)
		}
		c = &outCall{key: key, Block: piece.Block{Kind: piece.CallBlock, Number: len(w.calls)}}
		w.calls = append(w.calls, c)
		w.Queue = append(w.Queue, &c.Block)
	}
	if c.Name == nil && name != nil {
		c.Name = piece.AppendContents(nil, name)
	}
	if c.ID == nil && id != "" {
		c.id, c.ID = id, w.clientID(id, c.Number)
	}
	if signature := item.SealSignature(w.ID, call); signature != nil {
		c.Seal = signature
	}
	dst = w.advance(dst, false)
	arguments := rawjson.Field(function, "arguments")
	switch {
	case arguments == nil || string(arguments) == `""` || c.Ended:
		return dst
	case !rawjson.IsText(arguments): // an object instead of a string with JSON
		arguments = piece.AppendQuoted(nil, arguments)
	}
	c.args.add(rawjson.Contents(arguments))
	dst = w.Grow(dst, &c.Block, arguments, piece.AppendContents)
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
	case last == nil || !hasName || last.Name == nil || id == last.id && id != "":
		return last
	case id == "" && hasIndex, id != "" && last.id == "" && !last.args.complete():
		return last
	case id == "" && !last.args.complete():
		return last
	}
	return nil
}

// clientID returns the id of a call for the client. It differs from the ids of all previous calls.
func (w *messagesStream) clientID(id string, number int) []byte {
	clientID := rawjson.Contents(rawjson.Quote(piece.ToolID(id)))
	for _, c := range w.calls {
		if bytes.Equal(c.ID, clientID) {
			return w.newID(number)
		}
	}
	return clientID
}

func (w *messagesStream) newID(number int) []byte {
	return rawjson.Contents(rawjson.Quote(piece.NewCallID(w.ID, number)))
}

// advance starts the first block of the queue and stops complete blocks: a call after its arguments
// have ended, and any block once another waits. If all is set, every block is complete.
func (w *messagesStream) advance(dst []byte, all bool) []byte {
	for len(w.Queue) > 0 {
		b := w.Queue[0]
		isCall := b.Kind == piece.CallBlock
		if !b.Started {
			if isCall && b.Name == nil && !all {
				return dst
			}
			if isCall && b.ID == nil {
				b.ID = w.newID(b.Number)
			}
			dst = w.Start(dst)
		}
		if !all && (len(w.Queue) == 1 || isCall && !w.calls[b.Number].args.complete()) {
			return dst
		}
		dst = w.Stop(dst)
	}
	return dst
}

// finish ends all blocks.
func (w *messagesStream) finish(dst []byte, reason string) []byte {
	w.finished, w.reason = true, reason
	return w.advance(dst, true)
}

func (w *messagesStream) isDone() bool { return w.finished || w.Ended }

// End implements wire.Writer. It appends nothing to an unfinished or ended stream.
func (w *messagesStream) End(dst []byte, u wire.Usage) []byte {
	if !w.finished {
		return dst
	}
	return w.Finish(dst, piece.StopReason(form.FinishOf(w.reason), len(w.calls) > 0, w.refused), u)
}
