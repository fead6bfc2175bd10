package responseschat

import (
	"bytes"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// oldCall is the number of a call in the field `function_call`, which knows
// only one.
const oldCall = -1

// call reads a tool call, or a delta of one. It is known by its index, or by
// its position where a vendor leaves the index out.
func (s *stream) call(dst, call []byte, position int64) []byte {
	number := position
	var id, function []byte
	sealed := item.SealedSignature(s.id, call)
	for name, value := range rawjson.Members(call) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				number = n
			}
		case "id":
			id = rawjson.NonNull(value)
		case "function", "custom":
			function = rawjson.NonNull(value)
		}
	}
	return s.callOf(dst, number, id, function, sealed)
}

// callOf adds a delta to a call: its name, a piece of its arguments, and the
// signature of the thought before it.
func (s *stream) callOf(dst []byte, number int64, id, function, sealed []byte) []byte {
	var name, arguments []byte
	for member, value := range rawjson.Members(function) {
		switch string(member) {
		case "name":
			name = rawjson.NonNull(value)
		case "arguments", "input":
			arguments = rawjson.NonNull(value)
		}
	}
	item := s.callFor(number, id, name)
	if item == nil || item.done != nil {
		return dst // what comes behind whole arguments is nothing but space
	}
	if len(item.name) == 0 && rawjson.IsText(name) {
		item.name = bytes.Clone(textInside(name))
	}
	switch {
	case rawjson.IsText(arguments):
		arguments = textInside(arguments)
	case arguments != nil: // an object instead of a string
		arguments = textInside(rawjson.Quote(string(arguments)))
	}
	if !s.take(len(arguments) + len(sealed)) {
		return dst
	}
	if sealed != nil && !item.opened {
		item.sealed = sealed
	}
	item.arguments = append(item.arguments, arguments...)
	if !item.opened {
		if len(item.name) == 0 {
			return dst // it can be shown once it has a name
		}
		dst = s.openCall(dst, item)
	}
	return s.sendArguments(dst, item)
}

// callFor returns the call of a number, a new one where there is none. Some
// vendors number all calls alike: another id with a name is another call, and
// so is a name behind whole arguments. It returns nil when there is no room for
// more.
func (s *stream) callFor(number int64, id, name []byte) *outputItem {
	var given []byte
	if rawjson.IsText(id) && len(id) > 2 {
		given = textInside(id)
	}
	for i := len(s.calls) - 1; i >= 0; i-- {
		item := s.calls[i]
		if item.number != number {
			continue
		}
		if len(name) > 2 && len(item.name) > 0 &&
			(given != nil && !bytes.Equal(given, item.given) || given == nil && item.isWhole()) {
			break
		}
		return item
	}
	if !s.take(len(given) + len(name)) {
		return nil
	}
	item := &outputItem{kind: kindFunction, number: number, given: bytes.Clone(given)}
	item.callID = item.given
	if len(given) == 0 || s.ids[string(given)] {
		item.callID = s.newID("call_", len(s.calls))
	}
	s.ids[string(item.callID)] = true
	s.calls = append(s.calls, item)
	return item
}

// openCall adds the call to the items. The call of a function that stands for
// a custom tool or for one of a namespace is one of that tool.
func (s *stream) openCall(dst []byte, item *outputItem) []byte {
	if item.sealed != nil {
		dst = s.openItem(dst, &outputItem{kind: kindReasoning, sealed: item.sealed})
	}
	if tool := s.tools.byFunction[string(rawjson.AppendUnquoted(nil, item.name))]; tool != nil {
		if tool.custom {
			item.kind = kindCustom
		}
		if tool.namespace != "" {
			item.name, item.namespace = textInside(rawjson.Quote(tool.name)), textInside(rawjson.Quote(tool.namespace))
		}
	}
	return s.openItem(dst, item)
}

// sendArguments appends the arguments that did not go out yet. The input of a
// custom tool is known at its end only.
func (s *stream) sendArguments(dst []byte, item *outputItem) []byte {
	piece := item.arguments[item.sent:]
	if item.kind == kindCustom || len(piece) == 0 {
		return dst
	}
	item.sent = len(item.arguments)
	if s.silent {
		return dst
	}
	dst = append(s.event(dst, "response.function_call_arguments.delta"), item.place...)
	return endOf(appendText(dst, `,"delta":"`, piece))
}

// closeCalls ends the calls that have begun: all, or those whose arguments are
// whole. Vendors may go on with another, so that several are open.
func (s *stream) closeCalls(dst []byte, all bool) []byte {
	for _, item := range s.calls {
		if item.done != nil || !all && (!item.opened || !item.isWhole()) {
			continue
		}
		if !item.opened {
			dst = s.openCall(dst, item)
		}
		dst = s.closeCall(dst, item)
	}
	return dst
}

// isWhole tells whether a call's arguments are a JSON object, behind which
// nothing can come.
func (i *outputItem) isWhole() bool {
	if n := len(i.arguments); n != i.judged {
		i.judged = n
		i.full = n > 1 && i.arguments[n-1] == '}' && rawjson.IsValid(rawjson.AppendUnquoted(nil, i.arguments))
	}
	return i.full
}

// closeCall ends a call. One without arguments has an empty object, which
// clients can read.
func (s *stream) closeCall(dst []byte, item *outputItem) []byte {
	status := "completed"
	if s.reason != "" && !item.isWhole() {
		status = "incomplete"
	}
	kind, ended, name := "response.function_call_arguments.delta", "response.function_call_arguments.done", `,"arguments":"`
	switch {
	case item.kind == kindCustom:
		kind, ended, name = "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", `,"input":"`
		item.arguments = piece.UnwrapInput(item.arguments)
	case len(item.arguments) == 0:
		item.arguments = []byte("{}")
	}
	piece := item.arguments[item.sent:]
	item.sent = len(item.arguments)
	if !s.silent {
		if len(piece) > 0 {
			dst = append(s.event(dst, kind), item.place...)
			dst = endOf(appendText(dst, `,"delta":"`, piece))
		}
		dst = append(s.event(dst, ended), item.place...)
		if item.kind == kindFunction {
			dst = appendText(dst, `,"name":"`, item.name)
		}
		dst = endOf(appendText(dst, name, item.arguments))
	}
	return s.closeItem(dst, item, status)
}
