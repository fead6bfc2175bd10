package responses

import (
	"slices"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

const (
	// maxItems and maxParts bound the memory for one answer; no model comes near.
	maxItems = 4096
	maxParts = 64
)

// reader reads an answer as events.
type reader struct {
	*conversation.Emitter
	items    []*answerItem
	calls    int
	reason   string // of an incomplete answer
	ended    bool
	finished bool
}

// answerItem is an item of an answer.
type answerItem struct {
	number int
	key    int64  // the provider's output_index, or -1
	id     string // the provider's
	kind   readKind
	ended  bool
	call   *conversation.Output
	custom bool // the provider's call is one of a custom tool
	// thinking is the reasoning of the item. source is its member (summary or content), and lastPart
	// the index of its last part.
	thinking *conversation.Output
	source   string
	lastPart int64
	// parts are the texts of the item by index; of a call, its arguments.
	parts map[int64]*answerPart
}

// answerPart is the state of one text.
type answerPart struct {
	number int
	output *conversation.Output
	sum    textSum
	ended  bool
}

// readKind is a kind of item passed to the client.
type readKind int

const (
	unknownItem readKind = iota
	messageItem
	reasoningItem
	callItem
)

// NewReader returns the reader of a line's answer.
func NewReader(m *conversation.Emitter) conversation.Reader { return &reader{Emitter: m} }

// Whole implements conversation.Reader.
func (r *reader) Whole(object []byte) {
	r.end(object)
}

// Read implements conversation.Reader.
func (r *reader) Read(name string, data []byte) {
	if r.ended {
		return
	}
	var e event
	e.read(data)
	if e.kind == "" {
		e.kind = name
	}
	kind, ok := strings.CutPrefix(e.kind, "response.")
	if !ok {
		return
	}
	switch kind {
	case "output_item.added":
		r.begin(r.find(&e), e.item)
	case "output_item.done":
		r.done(r.find(&e), e.item)
	case "output_text.delta":
		r.addText(r.find(&e), e.content, e.delta, false, false, e.logprobs)
	case "output_text.done":
		r.addText(r.find(&e), e.content, e.text, false, true, nil)
	case "refusal.delta":
		r.addText(r.find(&e), e.content, e.delta, true, false, e.logprobs)
	case "refusal.done":
		r.addText(r.find(&e), e.content, e.refusal, true, true, nil)
	case "content_part.done":
		r.partDone(r.find(&e), e.content, e.part)
	case "reasoning_summary_text.delta":
		r.addReasoning(r.find(&e), "summary", e.summary, e.delta, false)
	case "reasoning_summary_text.done":
		r.addReasoning(r.find(&e), "summary", e.summary, e.text, true)
	case "reasoning_text.delta":
		r.addReasoning(r.find(&e), "content", e.content, e.delta, false)
	case "reasoning_text.done":
		r.addReasoning(r.find(&e), "content", e.content, e.text, true)
	case "function_call_arguments.delta", "custom_tool_call_input.delta":
		r.arguments(r.callOf(&e), e.delta, false)
	case "function_call_arguments.done":
		r.arguments(r.callOf(&e), e.arguments, true)
	case "custom_tool_call_input.done":
		r.arguments(r.callOf(&e), e.input, true)
	case "completed", "incomplete":
		r.end(e.response)
		if kind == "incomplete" && r.reason == "" {
			r.reason = tokenLimit
		}
	}
}

// tokenLimit is the incomplete reason for the output token limit.
const tokenLimit = "max_output_tokens"

// event holds the members of an event as JSON. Absent members are nil.
type event struct {
	kind                     string
	output, content, summary int64 // -1 if absent
	itemID                   string
	item, part, response     []byte
	delta, text, refusal     []byte
	arguments, input, name   []byte
	logprobs                 []byte
}

func (e *event) read(data []byte) {
	e.output, e.content, e.summary = -1, 0, 0
	index := func(to *int64, value []byte) {
		if n, ok := rawjson.Count(value); ok {
			*to = n
		}
	}
	for name, value := range rawjson.Members(data) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(name) {
		case "type":
			e.kind = rawjson.Unquote(value)
		case "output_index":
			index(&e.output, value)
		case "content_index":
			index(&e.content, value)
		case "summary_index":
			index(&e.summary, value)
		case "item_id":
			e.itemID = rawjson.Unquote(value)
		case "item":
			e.item = value
		case "part":
			e.part = value
		case "response":
			e.response = value
		case "delta":
			e.delta = value
		case "text":
			e.text = value
		case "refusal":
			e.refusal = value
		case "arguments":
			e.arguments = value
		case "input":
			e.input = value
		case "name":
			e.name = value
		case "logprobs":
			e.logprobs = value
		}
	}
}

// find returns the item of an event by its index, or else by its id, since some vendors send
// another id with every event. It adds a missing item, and returns nil above maxItems.
func (r *reader) find(e *event) *answerItem {
	if e.itemID == "" {
		e.itemID = rawjson.Unquote(rawjson.Field(e.item, "id"))
	}
	for i := len(r.items) - 1; i >= 0; i-- {
		o := r.items[i]
		if e.output >= 0 && o.key == e.output || e.output < 0 && o.id == e.itemID {
			return o
		}
	}
	return r.newItem(e.output, e.itemID)
}

func (r *reader) newItem(key int64, id string) *answerItem {
	if len(r.items) >= maxItems {
		return nil
	}
	o := &answerItem{number: len(r.items), key: key, id: id, parts: map[int64]*answerPart{}}
	r.items = append(r.items, o)
	return o
}

// begin reads the start of an item.
func (r *reader) begin(o *answerItem, item []byte) {
	if o == nil || o.ended {
		return
	}
	kind := rawjson.Unquote(rawjson.Field(item, "type"))
	switch kind {
	case "message":
		o.setKind(messageItem)
	case "reasoning":
		o.setKind(reasoningItem)
	case "function_call", "custom_tool_call":
		if o.setKind(callItem) && o.call == nil && rawjson.IsText(rawjson.Field(item, "name")) {
			r.startCall(o, item, kind == "custom_tool_call")
		}
	}
}

// setKind sets the kind of an item. It returns false if the item already has another kind.
func (o *answerItem) setKind(kind readKind) bool {
	if o.kind == unknownItem {
		o.kind = kind
	}
	return o.kind == kind
}

func (r *reader) startCall(o *answerItem, item []byte, custom bool) {
	c := &conversation.Output{Kind: conversation.ToolCall, Number: r.calls, Custom: custom,
		Name: slices.Clone(conversation.Contents(rawjson.Field(item, "name")))}
	if id := rawjson.Field(item, "call_id"); len(rawjson.Contents(id)) > 0 {
		c.ID = slices.Clone(conversation.Contents(id))
	}
	r.calls++
	o.call, o.custom = c, custom
	r.Start(c, nil)
}

// callOf returns the item of an event about a call's arguments. If the start of the call is missing, its
// arguments are read at the end of the item.
func (r *reader) callOf(e *event) *answerItem {
	o := r.find(e)
	if o == nil || o.ended || !o.setKind(callItem) {
		return nil
	}
	if o.call == nil && rawjson.IsText(e.name) {
		r.startCall(o, rawjson.Put(nil, `{"name":`, e.name, "}"), strings.Contains(e.kind, "custom"))
	}
	return o
}

// arguments reads a piece of a call's arguments, or all of them.
func (r *reader) arguments(o *answerItem, text []byte, whole bool) {
	if o == nil || o.call == nil || text == nil {
		return
	}
	if !rawjson.IsText(text) { // an object instead of its text
		text = conversation.AppendQuoted(nil, text)
	}
	p := o.part(0)
	inside := r.piece(p, text, whole)
	if len(inside) == 0 {
		return
	}
	r.Text(o.call, inside, nil)
}

// piece returns the new contents of a text, given its next piece or all of it.
func (r *reader) piece(p *answerPart, text []byte, whole bool) []byte {
	if p == nil || p.ended || !rawjson.IsText(text) {
		return nil
	}
	if whole {
		rest := p.sum.rest(text)
		p.sum.add(rest)
		return rest
	}
	inside := conversation.Contents(text)
	p.sum.add(inside)
	return inside
}

// part returns a part of an item, or nil above maxParts.
func (o *answerItem) part(index int64) *answerPart {
	p := o.parts[index]
	if p == nil && len(o.parts) < maxParts {
		p = &answerPart{number: len(o.parts)}
		o.parts[index] = p
	}
	return p
}

// addText reads a piece of a text of a message, or all of it.
func (r *reader) addText(o *answerItem, index int64, text []byte, refusal, whole bool, logprobs []byte) {
	if o == nil || o.ended || !o.setKind(messageItem) {
		return
	}
	p := o.part(index)
	inside := r.piece(p, text, whole)
	if len(inside) == 0 {
		return
	}
	kind := conversation.Text
	if refusal {
		kind = conversation.Refusal
	}
	if p.output == nil {
		p.output = &conversation.Output{Kind: kind, Message: o.number}
		r.Start(p.output, nil)
	}
	r.Text(p.output, inside, logprobs)
}

// partDone reads the end of a part of a message.
func (r *reader) partDone(o *answerItem, index int64, value []byte) {
	if o == nil || o.ended || o.kind == reasoningItem || o.kind == callItem {
		return
	}
	refusal := false
	var logprobs []byte
	text := rawjson.Field(value, "text")
	switch rawjson.Unquote(rawjson.Field(value, "type")) {
	case "output_text", "text":
		logprobs = rawjson.Field(value, "logprobs")
	case "refusal":
		text, refusal = rawjson.Field(value, "refusal"), true
	default:
		return
	}
	p := o.parts[index]
	if p != nil && p.sum.size > 0 {
		logprobs = nil // sent with the pieces
	}
	r.addText(o, index, text, refusal, true, logprobs)
	if p = o.parts[index]; p != nil && !p.ended {
		r.endPart(p)
	}
}

// addReasoning reads a piece of reasoning, or all of it. source is the member with the reasoning, summary or
// content. Only the first source of an item counts.
func (r *reader) addReasoning(o *answerItem, source string, index int64, text []byte, whole bool) {
	if o == nil || o.ended || !o.setKind(reasoningItem) || o.source != "" && o.source != source {
		return
	}
	inside := r.piece(o.part(index), text, whole)
	if len(inside) == 0 {
		return
	}
	switch {
	case o.thinking == nil:
		o.thinking = &conversation.Output{Kind: conversation.Thinking, Message: o.number}
		r.Start(o.thinking, nil)
	case o.lastPart != index:
		r.Text(o.thinking, []byte(`\n\n`), nil)
	}
	o.source, o.lastPart = source, index
	r.Text(o.thinking, inside, nil)
}

// done reads the end of an item, including contents not sent in pieces.
func (r *reader) done(o *answerItem, item []byte) {
	if o == nil || o.ended {
		return
	}
	r.begin(o, item)
	switch o.kind {
	case messageItem:
		content := rawjson.Field(item, "content")
		for i, value := range rawjson.Elements(content) {
			r.partDone(o, int64(i), value)
		}
	case reasoningItem:
		for _, source := range [...]string{"summary", "content"} {
			for i, value := range rawjson.Elements(rawjson.Field(item, source)) {
				r.addReasoning(o, source, int64(i), rawjson.Field(value, "text"), true)
			}
		}
	case callItem:
		if o.call == nil { // a call even without a name
			r.startCall(o, item, rawjson.Unquote(rawjson.Field(item, "type")) == "custom_tool_call")
		}
		text := rawjson.Field(item, "arguments")
		if o.custom {
			text = rawjson.Field(item, "input")
		}
		r.arguments(o, text, true)
	}
	r.close(o, item)
}

// close writes the end of an item.
func (r *reader) close(o *answerItem, item []byte) {
	o.ended = true
	switch o.kind {
	case messageItem:
		for n := range len(o.parts) {
			for _, p := range o.parts {
				if p.number == n {
					r.endPart(p)
				}
			}
		}
	case reasoningItem:
		r.endThinking(o, conversation.Contents(rawjson.Field(item, "encrypted_content")))
	case callItem:
		if o.call == nil {
			return
		}
		if p := o.parts[0]; !o.custom && (p == nil || p.sum.size == 0) {
			r.Text(o.call, []byte("{}"), nil)
		}
		o.call.Complete = true
		r.Emitter.End(o.call)
	}
}

// endPart ends a text, once.
func (r *reader) endPart(p *answerPart) {
	if !p.ended && p.output != nil {
		r.Emitter.End(p.output)
	}
	p.ended = true
}

// endThinking ends reasoning with its encrypted form. Some reasoning has only the encrypted form.
func (r *reader) endThinking(o *answerItem, encrypted []byte) {
	if o.thinking == nil {
		if len(encrypted) == 0 {
			return
		}
		o.thinking = &conversation.Output{Kind: conversation.Thinking, Message: o.number}
		r.Start(o.thinking, nil)
	}
	o.thinking.Signature = conversation.Signature{Data: slices.Clone(encrypted), Vendor: wire.FormResponses}
	r.Emitter.End(o.thinking)
}

// end reads a whole response: the answer, or its repetition in the last event. Items already read
// from events are skipped.
func (r *reader) end(response []byte) {
	streamed := len(r.items) > 0
	r.ended = true
	r.reason = rawjson.Unquote(rawjson.Field(rawjson.Field(response, "incomplete_details"), "reason"))
	if r.reason == "" && rawjson.Unquote(rawjson.Field(response, "status")) == "incomplete" {
		r.reason = tokenLimit
	}
	for i, item := range rawjson.Elements(rawjson.Field(response, "output")) {
		switch {
		case !streamed:
			r.done(r.newItem(int64(i), ""), item)
		default:
			for _, o := range r.items {
				if o.key == int64(i) && !o.ended && o.matches(item) {
					r.done(o, item)
				}
			}
		}
	}
	for _, o := range r.items {
		if !o.ended {
			r.close(o, nil)
		}
	}
}

// matches reports whether item may be a repetition of o.
func (o *answerItem) matches(item []byte) bool {
	switch rawjson.Unquote(rawjson.Field(item, "type")) {
	case "message":
		return o.kind == messageItem || o.kind == unknownItem
	case "reasoning":
		return o.kind == reasoningItem || o.kind == unknownItem
	case "function_call", "custom_tool_call":
		return o.kind == callItem || o.kind == unknownItem
	}
	return false
}

// End implements conversation.Reader.
func (r *reader) End() {
	if r.finished {
		return
	}
	r.finished = true
	kind := form.FinishLimit
	switch r.reason {
	case "":
		kind = form.FinishStop
	case "content_filter":
		kind = form.FinishFiltered
	}
	r.Finish(0, kind)
}
