package responseschat

import (
	"strconv"

	"tollgate/internal/wire/rawjson"
)

// itemKind is what an item of a translated answer is.
type itemKind int

const (
	kindMessage itemKind = iota
	kindReasoning
	kindFunction
	kindCustom
)

// outputItem is an item of an answer while it grows.
type outputItem struct {
	kind  itemKind
	id    []byte // without quotes
	index int    // its place among the items
	place []byte // the members that name the item, and its open part, in events

	// Of a message or reasoning.
	part  *outputPart // the open one
	parts int         // how many there were
	whole []byte      // those that have ended, as JSON with commas

	// Of a call. Names and texts are the insides of JSON strings.
	number       int64  // the provider's
	given        []byte // the id as the provider gave it
	callID, name []byte
	namespace    []byte // of the tool; nil for none
	arguments    []byte
	sealed       []byte // the signature of the thought before it, which is an item too; nil: none
	sent         int    // how much of the arguments went out
	opened       bool
	judged       int    // the length of the arguments that full is about
	full         bool   // the arguments are a JSON object
	done         []byte // the item as JSON, once it has ended
}

// outputPart is a part of a message or reasoning while it grows.
type outputPart struct {
	refusal  bool
	text     []byte
	logprobs []byte
}

// prefix of the ids of items.
func (k itemKind) prefix() string {
	return [...]string{"msg_", "rs_", "fc_", "ctc_"}[k]
}

// openItem adds an item. A message or reasoning that grows ends before it, and
// so does every call whose arguments are whole.
func (s *stream) openItem(dst []byte, item *outputItem) []byte {
	dst = s.closeCalls(s.closeOpen(dst, "completed"), false)
	item.index = len(s.items)
	item.id = s.newID(item.kind.prefix(), item.index)
	item.opened = true
	item.place = item.appendPlace(nil, "")
	s.items = append(s.items, item)
	if item.kind == kindMessage || item.kind == kindReasoning {
		s.open = item
	}
	if s.silent {
		return dst
	}
	dst = strconv.AppendInt(append(s.event(dst, "response.output_item.added"), `,"output_index":`...), int64(item.index), 10)
	return endOf(item.append(append(dst, `,"item":`...), "in_progress"))
}

// newID makes an id that no other item of the answer has.
func (s *stream) newID(prefix string, n int) []byte {
	id := rawjson.Quote(prefix + s.stem + "_" + strconv.Itoa(n))
	return id[1 : len(id)-1]
}

// appendPlace writes the members that say where in the answer an event belongs.
func (i *outputItem) appendPlace(dst []byte, part string) []byte {
	dst = append(appendText(dst, `,"item_id":"`, i.id), `,"output_index":`...)
	dst = strconv.AppendInt(dst, int64(i.index), 10)
	if part != "" {
		dst = strconv.AppendInt(append(dst, part...), int64(i.parts), 10)
	}
	return dst
}

// append writes the item as it stands.
func (i *outputItem) append(dst []byte, status string) []byte {
	switch i.kind {
	case kindMessage:
		dst = append(appendText(dst, `{"type":"message","id":"`, i.id), `,"status":"`...)
		dst = rawjson.Put(dst, "", status, `","role":"assistant","content":[`)
		return rawjson.Put(dst, "", i.whole, "]}")
	case kindReasoning:
		dst = append(appendText(dst, `{"type":"reasoning","id":"`, i.id), `,"summary":[`...)
		dst = rawjson.Put(dst, "", i.whole, "]")
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
func (s *stream) openPart(dst []byte, item *outputItem, refusal bool) []byte {
	item.part = &outputPart{refusal: refusal}
	kind, number := "response.content_part.added", `,"content_index":`
	if item.kind == kindReasoning {
		kind, number = "response.reasoning_summary_part.added", `,"summary_index":`
	}
	item.place = item.appendPlace(item.place[:0], number)
	if s.silent {
		return dst
	}
	dst = rawjson.Put(s.event(dst, kind), "", item.place, `,"part":`)
	return endOf(item.appendPart(dst))
}

// appendPart writes the open part as it stands.
func (i *outputItem) appendPart(dst []byte) []byte {
	switch {
	case i.kind == kindReasoning:
		return append(appendText(dst, `{"type":"summary_text","text":"`, i.part.text), '}')
	case i.part.refusal:
		return append(appendText(dst, `{"type":"refusal","refusal":"`, i.part.text), '}')
	}
	dst = append(appendText(dst, `{"type":"output_text","text":"`, i.part.text), `,"annotations":[],"logprobs":[`...)
	return rawjson.Put(dst, "", i.part.logprobs, "]}")
}

// closePart ends the open part of the message or reasoning that grows.
func (s *stream) closePart(dst []byte) []byte {
	item := s.open
	if item.part == nil {
		return dst
	}
	if item.parts > 0 {
		item.whole = append(item.whole, ',')
	}
	from := len(item.whole)
	item.whole = item.appendPart(item.whole)
	part, json := item.part, item.whole[from:]
	item.part = nil
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
	dst = appendText(append(s.event(dst, kind), item.place...), name, part.text)
	if item.kind == kindMessage && !part.refusal {
		dst = rawjson.Put(dst, `,"logprobs":[`, part.logprobs, "]")
	}
	dst = endOf(dst)
	dst = rawjson.Put(s.event(dst, ended), "", item.place, `,"part":`)
	return endOf(append(dst, json...))
}

// closeOpen ends the message or reasoning that grows.
func (s *stream) closeOpen(dst []byte, status string) []byte {
	item := s.open
	if item == nil {
		return dst
	}
	dst = s.closePart(dst)
	s.open = nil
	return s.closeItem(dst, item, status)
}

// closeItem ends an item.
func (s *stream) closeItem(dst []byte, item *outputItem, status string) []byte {
	item.done = item.append(nil, status)
	item.whole, item.arguments, item.sent = nil, nil, 0
	if s.silent {
		return dst
	}
	dst = strconv.AppendInt(append(s.event(dst, "response.output_item.done"), `,"output_index":`...), int64(item.index), 10)
	return endOf(rawjson.Put(dst, `,"item":`, item.done, ""))
}

// closeAll ends all items. Those that an incomplete answer ends in are
// incomplete.
func (s *stream) closeAll(dst []byte) []byte {
	status := "completed"
	if s.reason != "" {
		status = "incomplete"
	}
	return s.closeCalls(s.closeOpen(dst, status), true)
}
