package responses

import (
	"strconv"

	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// itemKind is the kind of an item of a translated answer.
type itemKind int

const (
	kindMessage itemKind = iota
	kindReasoning
	kindFunction
	kindCustom
)

// outputItem is an item of an answer being written.
type outputItem struct {
	kind     itemKind
	id       []byte // without quotes
	index    int    // in the output
	location []byte // the members that identify the item, and its open part, in events

	// Of a message or reasoning.
	current  *outputPart // the open part
	parts    int         // number of finished parts
	finished []byte      // finished parts as JSON with commas

	// Of a call. Names and texts are the contents of JSON strings.
	output       *conversation.Output
	callID, name []byte
	namespace    []byte // of the tool, or nil
	arguments    []byte
	sent         int    // number of bytes of arguments sent
	ended        bool   // the provider ended the call
	sealed       []byte // of reasoning: its signature, or nil
	json         []byte // the item, once it has ended
}

// outputPart is a part of a message or reasoning being written.
type outputPart struct {
	refusal  bool
	text     []byte
	logprobs []byte
}

// prefix returns the prefix of an item's id.
func (k itemKind) prefix() string {
	return [...]string{"msg_", "rs_", "fc_", "ctc_"}[k]
}

// openItem adds an item. It ends an open message or reasoning, and every call that the provider
// ended.
func (s *writer) openItem(dst []byte, item *outputItem) []byte {
	dst = s.closeCalls(s.closeOpen(dst, "completed"), false)
	item.index = len(s.items)
	item.id = s.newID(item.kind.prefix(), item.index)
	item.location = item.appendLocation(nil, "")
	s.items = append(s.items, item)
	if item.kind == kindMessage || item.kind == kindReasoning {
		s.open = item
	}
	if s.silent {
		return dst
	}
	dst = strconv.AppendInt(append(s.event(dst, "response.output_item.added"), `,"output_index":`...), int64(item.index), 10)
	return endEvent(item.append(append(dst, `,"item":`...), "in_progress"))
}

// newID returns a new id for an item.
func (s *writer) newID(prefix string, n int) []byte {
	id := rawjson.Quote(prefix + s.idSuffix + "_" + strconv.Itoa(n))
	return id[1 : len(id)-1]
}

// appendLocation appends the members that locate an event in the answer.
func (i *outputItem) appendLocation(dst []byte, part string) []byte {
	dst = append(appendText(dst, `,"item_id":"`, i.id), `,"output_index":`...)
	dst = strconv.AppendInt(dst, int64(i.index), 10)
	if part != "" {
		dst = strconv.AppendInt(append(dst, part...), int64(i.parts), 10)
	}
	return dst
}

// append appends the item in its current state.
func (i *outputItem) append(dst []byte, status string) []byte {
	switch i.kind {
	case kindMessage:
		dst = append(appendText(dst, `{"type":"message","id":"`, i.id), `,"status":"`...)
		dst = rawjson.Put(dst, "", status, `","role":"assistant","content":[`)
		return rawjson.Put(dst, "", i.finished, "]}")
	case kindReasoning:
		dst = append(appendText(dst, `{"type":"reasoning","id":"`, i.id), `,"summary":[`...)
		dst = rawjson.Put(dst, "", i.finished, "]")
		if i.sealed != nil {
			dst = rawjson.Put(dst, `,"encrypted_content":"`, i.sealed, `"`)
		}
		return append(dst, '}')
	}
	kind, input := "function_call", `,"arguments":"`
	if i.kind == kindCustom {
		kind, input = "custom_tool_call", `,"input":"`
	}
	dst = rawjson.Put(dst, `{"type":"`, kind, `"`)
	dst = appendText(dst, `,"id":"`, i.id)
	dst = rawjson.Put(dst, `,"status":"`, status, `"`)
	dst = appendText(dst, `,"call_id":"`, i.callID)
	dst = appendText(dst, `,"name":"`, i.name)
	if i.namespace != nil {
		dst = appendText(dst, `,"namespace":"`, i.namespace)
	}
	return append(appendText(dst, input, i.arguments[:i.sent]), '}')
}

// openPart adds a part to a message or reasoning.
func (s *writer) openPart(dst []byte, item *outputItem, refusal bool) []byte {
	item.current = &outputPart{refusal: refusal}
	kind, number := "response.content_part.added", `,"content_index":`
	if item.kind == kindReasoning {
		kind, number = "response.reasoning_summary_part.added", `,"summary_index":`
	}
	item.location = item.appendLocation(item.location[:0], number)
	if s.silent {
		return dst
	}
	dst = rawjson.Put(s.event(dst, kind), "", item.location, `,"part":`)
	return endEvent(item.appendPart(dst))
}

// appendPart appends the open part in its current state.
func (i *outputItem) appendPart(dst []byte) []byte {
	switch {
	case i.kind == kindReasoning:
		return append(appendText(dst, `{"type":"summary_text","text":"`, i.current.text), '}')
	case i.current.refusal:
		return append(appendText(dst, `{"type":"refusal","refusal":"`, i.current.text), '}')
	}
	dst = append(appendText(dst, `{"type":"output_text","text":"`, i.current.text), `,"annotations":[],"logprobs":[`...)
	return rawjson.Put(dst, "", i.current.logprobs, "]}")
}

// closePart ends the open part of the open message or reasoning.
func (s *writer) closePart(dst []byte) []byte {
	item := s.open
	if item.current == nil {
		return dst
	}
	if item.parts > 0 {
		item.finished = append(item.finished, ',')
	}
	from := len(item.finished)
	item.finished = item.appendPart(item.finished)
	part, json := item.current, item.finished[from:]
	item.current = nil
	item.parts++
	if s.silent {
		return dst
	}
	kind, name, ended := "response.output_text.done", `,"text":"`, "response.content_part.done"
	switch {
	case item.kind == kindReasoning:
		kind, ended = "response.reasoning_summary_text.done", "response.reasoning_summary_part.done"
	case part.refusal:
		kind, name = "response.refusal.done", `,"refusal":"`
	}
	dst = appendText(append(s.event(dst, kind), item.location...), name, part.text)
	if item.kind == kindMessage && !part.refusal {
		dst = rawjson.Put(dst, `,"logprobs":[`, part.logprobs, "]")
	}
	dst = endEvent(dst)
	dst = rawjson.Put(s.event(dst, ended), "", item.location, `,"part":`)
	return endEvent(append(dst, json...))
}

// closeOpen ends the open message or reasoning.
func (s *writer) closeOpen(dst []byte, status string) []byte {
	item := s.open
	if item == nil {
		return dst
	}
	dst = s.closePart(dst)
	s.open = nil
	return s.closeItem(dst, item, status)
}

func (s *writer) closeItem(dst []byte, item *outputItem, status string) []byte {
	item.json = item.append(nil, status)
	item.finished, item.arguments, item.sent = nil, nil, 0
	if s.silent {
		return dst
	}
	dst = strconv.AppendInt(append(s.event(dst, "response.output_item.done"), `,"output_index":`...), int64(item.index), 10)
	return endEvent(rawjson.Put(dst, `,"item":`, item.json, ""))
}

// closeAll ends all items. In an incomplete answer, the open items are incomplete.
func (s *writer) closeAll(dst []byte) []byte {
	status := "completed"
	if s.reason != "" {
		status = "incomplete"
	}
	return s.closeCalls(s.closeOpen(dst, status), true)
}

// callOf returns the item of a call, or nil.
func (s *writer) callOf(o *conversation.Output) *outputItem {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if s.calls[i].output == o {
			return s.calls[i]
		}
	}
	return nil
}

// openCall adds a call to the items, after the signature of the reasoning before it.
func (s *writer) openCall(dst []byte, o *conversation.Output) []byte {
	if !s.reserve(len(o.ID) + len(o.Name)) {
		return dst
	}
	item := &outputItem{kind: kindFunction, output: o, callID: o.ID, name: o.Name, namespace: o.Namespace}
	if o.Custom {
		item.kind = kindCustom
	}
	if len(o.ID) == 0 || s.ids[string(o.ID)] {
		item.callID = s.newID("call_", len(s.calls))
	}
	s.ids[string(item.callID)] = true
	s.calls = append(s.calls, item)
	if o.Signature.Data != nil {
		dst = s.openItem(dst, &outputItem{kind: kindReasoning, sealed: conversation.Seal(s.id, o.Signature.Data)})
	}
	return s.openItem(dst, item)
}

// names returns the names of the events and the member for the text of a call.
func (i *outputItem) names() (delta, done, member string) {
	if i.kind == kindCustom {
		return "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", `,"input":"`
	}
	return "response.function_call_arguments.delta", "response.function_call_arguments.done", `,"arguments":"`
}

// sendArguments appends the arguments not yet sent.
func (s *writer) sendArguments(dst []byte, item *outputItem) []byte {
	piece := item.arguments[item.sent:]
	if len(piece) == 0 {
		return dst
	}
	item.sent = len(item.arguments)
	if s.silent {
		return dst
	}
	delta, _, _ := item.names()
	dst = append(s.event(dst, delta), item.location...)
	return endEvent(appendText(dst, `,"delta":"`, piece))
}

// closeCalls ends all open calls, or, if all is false, only those that the provider ended. Vendors may
// interleave calls, so several may be open.
func (s *writer) closeCalls(dst []byte, all bool) []byte {
	for _, item := range s.calls {
		if item.json == nil && (all || item.ended) {
			dst = s.closeCall(dst, item)
		}
	}
	return dst
}

// closeCall ends a call. A call without arguments gets an empty object, for clients to parse.
func (s *writer) closeCall(dst []byte, item *outputItem) []byte {
	status := "completed"
	if s.reason != "" && !item.output.Complete {
		status = "incomplete"
	}
	if item.kind == kindFunction && len(item.arguments) == 0 {
		item.arguments = []byte("{}")
	}
	dst = s.sendArguments(dst, item)
	if !s.silent {
		_, done, member := item.names()
		dst = append(s.event(dst, done), item.location...)
		if item.kind == kindFunction {
			dst = appendText(dst, `,"name":"`, item.name)
		}
		dst = endEvent(appendText(dst, member, item.arguments))
	}
	return s.closeItem(dst, item, status)
}
