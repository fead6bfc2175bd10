package item

import (
	"strings"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// Whole reads an answer that was not streamed, an object.
func (r *Reader) Whole(object []byte, step func(AnswerStep)) {
	r.end(object, step)
}

// Event reads an event of a stream. data is an object; name is the event's type if data has none.
func (r *Reader) Event(name string, data []byte, step func(AnswerStep)) {
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
		r.begin(r.find(&e), e.item, step)
	case "output_item.done":
		r.done(r.find(&e), e.item, step)
	case "output_text.delta":
		r.addText(r.find(&e), e.content, e.delta, false, false, e.logprobs, step)
	case "output_text.done":
		r.addText(r.find(&e), e.content, e.text, false, true, nil, step)
	case "refusal.delta":
		r.addText(r.find(&e), e.content, e.delta, true, false, e.logprobs, step)
	case "refusal.done":
		r.addText(r.find(&e), e.content, e.refusal, true, true, nil, step)
	case "content_part.done":
		r.partDone(r.find(&e), e.content, e.part, step)
	case "reasoning_summary_text.delta":
		r.addReasoning(r.find(&e), "summary", e.summary, e.delta, false, step)
	case "reasoning_summary_text.done":
		r.addReasoning(r.find(&e), "summary", e.summary, e.text, true, step)
	case "reasoning_text.delta":
		r.addReasoning(r.find(&e), "content", e.content, e.delta, false, step)
	case "reasoning_text.done":
		r.addReasoning(r.find(&e), "content", e.content, e.text, true, step)
	case "function_call_arguments.delta", "custom_tool_call_input.delta":
		r.arguments(r.callOf(&e, step), e.delta, false, step)
	case "function_call_arguments.done":
		r.arguments(r.callOf(&e, step), e.arguments, true, step)
	case "custom_tool_call_input.done":
		r.arguments(r.callOf(&e, step), e.input, true, step)
	case "completed", "incomplete":
		r.end(e.response, step)
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
func (r *Reader) find(e *event) *outItem {
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

func (r *Reader) newItem(key int64, id string) *outItem {
	if len(r.items) >= maxItems {
		return nil
	}
	o := &outItem{number: len(r.items), key: key, id: id, parts: map[int64]*part{}}
	r.items = append(r.items, o)
	return o
}

// begin reads the start of an item.
func (r *Reader) begin(o *outItem, item []byte, step func(AnswerStep)) {
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
			r.call(o, item, kind == "custom_tool_call", step)
		}
	}
}

// setKind sets the kind of an item. It returns false if the kind is another already.
func (o *outItem) setKind(kind itemKind) bool {
	if o.kind == unknownItem {
		o.kind = kind
	}
	return o.kind == kind
}

// call starts a call.
func (r *Reader) call(o *outItem, item []byte, custom bool, step func(AnswerStep)) {
	c := &ToolCall{Number: r.calls, Custom: custom, Name: r.names.client(rawjson.Field(item, "name"))}
	if id := rawjson.Field(item, "call_id"); len(rawjson.Contents(id)) > 0 {
		c.ID = rawjson.Put(nil, `"`, piece.AppendContents(nil, id), `"`)
	}
	r.calls++
	o.call = c
	step(AnswerStep{Kind: Call, Item: o.number, Call: c})
}

// callOf returns the item of an event about a call's arguments. Without the start of the call,
// nothing is known of it until its end.
func (r *Reader) callOf(e *event, step func(AnswerStep)) *outItem {
	o := r.find(e)
	if o == nil || o.ended || !o.setKind(callItem) {
		return nil
	}
	if o.call == nil && rawjson.IsText(e.name) {
		r.call(o, rawjson.Put(nil, `{"name":`, e.name, "}"), strings.Contains(e.kind, "custom"), step)
	}
	return o
}

// arguments reads a piece of a call's arguments, or all of them.
func (r *Reader) arguments(o *outItem, text []byte, whole bool, step func(AnswerStep)) {
	if o == nil || o.call == nil || text == nil {
		return
	}
	if !rawjson.IsText(text) { // an object instead of its text
		text = piece.AppendQuoted(nil, text)
	}
	p := o.part(0)
	inside := r.piece(p, text, whole)
	if len(inside) == 0 {
		return
	}
	o.call.HasArguments = true
	step(AnswerStep{Kind: Arguments, Item: o.number, Text: inside, Call: o.call})
}

// piece returns the new contents of a text, given its next piece or all of it.
func (r *Reader) piece(p *part, text []byte, whole bool) []byte {
	if p == nil || p.ended || !rawjson.IsText(text) {
		return nil
	}
	if whole {
		rest := p.sum.rest(text)
		p.sum.add(rest)
		return rest
	}
	inside := piece.AppendContents(nil, text)
	p.sum.add(inside)
	return inside
}

// part returns a part of an item, or nil above maxParts.
func (o *outItem) part(index int64) *part {
	p := o.parts[index]
	if p == nil && len(o.parts) < maxParts {
		p = &part{number: len(o.parts)}
		o.parts[index] = p
	}
	return p
}

// addText reads a piece of a text of a message, or all of it.
func (r *Reader) addText(o *outItem, index int64, text []byte, refusal, whole bool, logprobs []byte, step func(AnswerStep)) {
	if o == nil || o.ended || !o.setKind(messageItem) {
		return
	}
	p := o.part(index)
	inside := r.piece(p, text, whole)
	if len(inside) == 0 {
		return
	}
	p.refusal = refusal
	kind := Text
	if refusal {
		kind = Refusal
	}
	step(AnswerStep{Kind: kind, Item: o.number, Part: p.number, Text: inside, Logprobs: logprobs})
}

// partDone reads the end of a part of a message.
func (r *Reader) partDone(o *outItem, index int64, value []byte, step func(AnswerStep)) {
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
	r.addText(o, index, text, refusal, true, logprobs, step)
	if p = o.parts[index]; p != nil && !p.ended {
		p.ended = true
		if p.sum.size > 0 {
			step(AnswerStep{Kind: TextEnd, Item: o.number, Part: p.number})
		}
	}
}

// addReasoning reads a piece of reasoning, or all of it: of the summary, or of the reasoning
// itself, whichever comes first.
func (r *Reader) addReasoning(o *outItem, source string, index int64, text []byte, whole bool, step func(AnswerStep)) {
	if o == nil || o.ended || !o.setKind(reasoningItem) || o.source != "" && o.source != source {
		return
	}
	inside := r.piece(o.part(index), text, whole)
	if len(inside) == 0 {
		return
	}
	if o.hasText && o.lastPart != index {
		step(AnswerStep{Kind: ReasoningText, Item: o.number, Text: []byte(`\n\n`)})
	}
	o.source, o.lastPart, o.hasText = source, index, true
	step(AnswerStep{Kind: ReasoningText, Item: o.number, Text: inside})
}

// done reads the end of an item, including contents not sent in pieces.
func (r *Reader) done(o *outItem, item []byte, step func(AnswerStep)) {
	if o == nil || o.ended {
		return
	}
	r.begin(o, item, step)
	switch o.kind {
	case messageItem:
		content := rawjson.Field(item, "content")
		for i, value := range rawjson.Elements(content) {
			r.partDone(o, int64(i), value, step)
		}
	case reasoningItem:
		for _, source := range [...]string{"summary", "content"} {
			for i, value := range rawjson.Elements(rawjson.Field(item, source)) {
				r.addReasoning(o, source, int64(i), rawjson.Field(value, "text"), true, step)
			}
		}
	case callItem:
		if o.call == nil { // a call even without a name
			r.call(o, item, rawjson.Unquote(rawjson.Field(item, "type")) == "custom_tool_call", step)
		}
		text := rawjson.Field(item, "arguments")
		if o.call.Custom {
			text = rawjson.Field(item, "input")
		}
		r.arguments(o, text, true, step)
	}
	r.close(o, item, step)
}

// close writes the end of an item.
func (r *Reader) close(o *outItem, item []byte, step func(AnswerStep)) {
	o.ended = true
	switch o.kind {
	case messageItem:
		for n := range len(o.parts) {
			for _, p := range o.parts {
				if p.number == n && !p.ended && p.sum.size > 0 {
					p.ended = true
					step(AnswerStep{Kind: TextEnd, Item: o.number, Part: p.number})
				}
			}
		}
	case reasoningItem:
		step(AnswerStep{Kind: ReasoningEnd, Item: o.number, Text: Seal(r.identity, rawjson.Field(item, "encrypted_content"))})
	case callItem:
		if o.call != nil {
			step(AnswerStep{Kind: CallEnd, Item: o.number, Call: o.call})
		}
	}
}

// end reads a whole response: the answer, or its repetition in the last event. Items already read
// from events are skipped.
func (r *Reader) end(response []byte, step func(AnswerStep)) {
	streamed := len(r.items) > 0
	r.ended = true
	r.reason = rawjson.Unquote(rawjson.Field(rawjson.Field(response, "incomplete_details"), "reason"))
	if r.reason == "" && rawjson.Unquote(rawjson.Field(response, "status")) == "incomplete" {
		r.reason = tokenLimit
	}
	for i, item := range rawjson.Elements(rawjson.Field(response, "output")) {
		switch {
		case !streamed:
			r.done(r.newItem(int64(i), ""), item, step)
		default:
			for _, o := range r.items {
				if o.key == int64(i) && !o.ended && o.matches(item) {
					r.done(o, item, step)
				}
			}
		}
	}
	for _, o := range r.items {
		if !o.ended {
			r.close(o, nil, step)
		}
	}
}

// matches reports whether item may be a repetition of o.
func (o *outItem) matches(item []byte) bool {
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

// HasCalls reports whether the answer calls a tool.
func (r *Reader) HasCalls() bool { return r.calls > 0 }

// Finish returns the finish reason of a complete answer.
func (r *Reader) Finish() form.FinishKind {
	switch r.reason {
	case "":
		return form.FinishStop
	case "content_filter":
		return form.FinishFiltered
	}
	return form.FinishLimit
}
