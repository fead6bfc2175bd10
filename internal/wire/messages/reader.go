package messages

import (
	"slices"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// reader reads an answer as events.
type reader struct {
	*conversation.Emitter
	open     []openBlock
	calls    int // number of calls started
	begun    bool
	finished bool
}

// openBlock is an open block of the answer.
type openBlock struct {
	index    int64 // the provider's
	output   *conversation.Output
	complete bool // the block started with all its arguments
}

// maxOpenBlocks bounds the blocks left open by a provider. In the form, one is open at a time.
const maxOpenBlocks = 128

// NewReader returns the reader of a line's answer.
func NewReader(m *conversation.Emitter) conversation.Reader { return &reader{Emitter: m} }

// Read implements conversation.Reader.
func (r *reader) Read(name string, object []byte) {
	if r.finished {
		return
	}
	var kind, index, delta, block []byte
	for member, value := range rawjson.Members(object) {
		switch string(member) {
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
		kind = []byte(name)
	}
	n, _ := rawjson.Count(index)
	switch string(kind) {
	case "ping":
		r.Emit(conversation.Event{Kind: conversation.Idle})
	case "message_start":
		r.begin()
	case "content_block_start":
		r.begin()
		r.start(n, block)
	case "content_block_delta":
		r.delta(n, delta)
	case "content_block_stop":
		r.stop(r.find(n))
	case "message_delta":
		reason := form.FinishOf(rawjson.Unquote(rawjson.Field(delta, "stop_reason")))
		if reason != form.FinishNone && reason != form.FinishFailed {
			r.finish(reason)
		}
	case "message_stop": // the reason is missing
		r.finish(form.FinishStop)
	}
}

// begin begins the answer, once.
func (r *reader) begin() {
	if !r.begun {
		r.begun = true
		r.Emit(conversation.Event{Kind: conversation.Begin})
	}
}

// start starts a block. Some hosts of the form put the first text, or all arguments, here.
func (r *reader) start(index int64, block []byte) {
	o := &conversation.Output{}
	var text []byte
	complete := false
	switch rawjson.Unquote(rawjson.Field(block, "type")) {
	case "text":
		text = conversation.Contents(rawjson.Field(block, "text"))
	case "thinking":
		o.Kind, text = conversation.Thinking, conversation.Contents(rawjson.Field(block, "thinking"))
		o.Signature = conversation.LineSignature(rawjson.Field(block, "signature"), wire.FormMessages)
	case "redacted_thinking":
		o.Kind = conversation.Thinking
		o.Signature = conversation.LineSignature(rawjson.Field(block, "data"), wire.FormMessages)
	case "tool_use":
		o.Kind, o.Number = conversation.ToolCall, r.calls
		o.Name = conversation.Contents(rawjson.Field(block, "name"))
		if id := rawjson.Field(block, "id"); rawjson.IsString(id) && len(id) > 2 {
			o.ID = slices.Clone(rawjson.Contents(id))
		}
		o.Name = slices.Clone(o.Name)
		r.calls++
		if input := rawjson.Field(block, "input"); len(input) > 2 { // not {}
			text, complete = conversation.AppendEscaped(nil, input), true
		}
	default:
		return
	}
	if len(r.open) >= maxOpenBlocks {
		r.stop(0)
	}
	r.open = append(r.open, openBlock{index, o, complete})
	r.Start(o, nil)
	r.Text(o, text, nil)
	o.Complete = complete
}

// delta reads a delta of a block.
func (r *reader) delta(index int64, delta []byte) {
	var kind, text []byte
	for name, value := range rawjson.Members(delta) {
		switch string(name) {
		case "type":
			kind = rawjson.UnquoteBytes(value)
		case "text", "thinking", "partial_json", "signature":
			text = value
		}
	}
	outputKind := conversation.Text
	switch string(kind) {
	case "text_delta":
	case "thinking_delta", "signature_delta":
		outputKind = conversation.Thinking
	case "input_json_delta":
		outputKind = conversation.ToolCall
	default:
		return
	}
	i := r.find(index)
	if i < 0 && outputKind != conversation.ToolCall && len(r.open) < maxOpenBlocks { // the start of the block is missing
		r.open = append(r.open, openBlock{index: index, output: &conversation.Output{Kind: outputKind}})
		i = len(r.open) - 1
		r.begin()
		r.Start(r.open[i].output, nil)
	}
	if i < 0 || r.open[i].output.Kind != outputKind || r.open[i].complete {
		return
	}
	if string(kind) == "signature_delta" {
		o := r.open[i].output
		o.Signature = conversation.Signature{Data: append(o.Signature.Data, conversation.Contents(text)...), Vendor: wire.FormMessages}
		return
	}
	r.Text(r.open[i].output, conversation.Contents(text), nil)
}

// find returns the position of an open block, or -1.
func (r *reader) find(index int64) int {
	return slices.IndexFunc(r.open, func(b openBlock) bool { return b.index == index })
}

// stop ends an open block.
func (r *reader) stop(i int) {
	if i < 0 {
		return
	}
	o := r.open[i].output
	r.open = slices.Delete(r.open, i, i+1)
	r.Emitter.End(o)
}

// finish ends the answer.
func (r *reader) finish(reason form.FinishKind) {
	if r.finished {
		return
	}
	for len(r.open) > 0 {
		r.stop(0)
	}
	r.finished = true
	r.begin()
	r.Finish(0, reason)
}

// Whole implements conversation.Reader.
func (r *reader) Whole(object []byte) {
	for i, block := range rawjson.Elements(rawjson.Field(object, "content")) {
		r.start(int64(i), block)
		r.stop(r.find(int64(i)))
	}
	if reason := form.FinishOf(rawjson.Unquote(rawjson.Field(object, "stop_reason"))); reason != form.FinishNone {
		r.finish(reason)
	}
}

// End implements conversation.Reader.
func (r *reader) End() { r.finish(form.FinishStop) }
