package responseschat

import (
	"bytes"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// functionCallNumber is the number of the call in the older field `function_call`.
const functionCallNumber = -1

// call reads a tool call, or a delta of one. Its number is its index, or its position if a vendor
// omits the index.
func (s *stream) call(dst, call []byte, position int64) []byte {
	number := position
	var id, function []byte
	sealed := item.SealSignature(s.id, call)
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

// callOf adds a delta to a call: its name, a piece of its arguments, and the signature of the
// reasoning before it.
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
	if item == nil || item.json != nil {
		return dst // only space can follow complete arguments
	}
	if len(item.name) == 0 && rawjson.IsText(name) {
		item.name = bytes.Clone(contentsOf(name))
	}
	switch {
	case rawjson.IsText(arguments):
		arguments = contentsOf(arguments)
	case arguments != nil: // an object instead of a string
		arguments = contentsOf(rawjson.Quote(string(arguments)))
	}
	if !s.reserve(len(arguments) + len(sealed)) {
		return dst
	}
	if sealed != nil && !item.opened {
		item.sealed = sealed
	}
	item.arguments = append(item.arguments, arguments...)
	if !item.opened {
		if len(item.name) == 0 {
			return dst // shown once it has a name
		}
		dst = s.openCall(dst, item)
	}
	return s.sendArguments(dst, item)
}

// callFor returns the call with a number, or a new one. Some vendors give all calls the same
// number: another id with a name starts another call, and so does a name after complete arguments.
// It returns nil above the limits.
func (s *stream) callFor(number int64, id, name []byte) *outputItem {
	var providerID []byte
	if rawjson.IsText(id) && len(id) > 2 {
		providerID = contentsOf(id)
	}
	for i := len(s.calls) - 1; i >= 0; i-- {
		item := s.calls[i]
		if item.number != number {
			continue
		}
		if len(name) > 2 && len(item.name) > 0 &&
			(providerID != nil && !bytes.Equal(providerID, item.providerID) || providerID == nil && item.isComplete()) {
			break
		}
		return item
	}
	if !s.reserve(len(providerID) + len(name)) {
		return nil
	}
	item := &outputItem{kind: kindFunction, number: number, providerID: bytes.Clone(providerID)}
	item.callID = item.providerID
	if len(providerID) == 0 || s.ids[string(providerID)] {
		item.callID = s.newID("call_", len(s.calls))
	}
	s.ids[string(item.callID)] = true
	s.calls = append(s.calls, item)
	return item
}

// openCall adds the call to the items. The call of a function replacing a custom tool or a tool of
// a namespace becomes a call of this tool.
func (s *stream) openCall(dst []byte, item *outputItem) []byte {
	if item.sealed != nil {
		dst = s.openItem(dst, &outputItem{kind: kindReasoning, sealed: item.sealed})
	}
	if tool := s.tools.byFunction[string(rawjson.AppendUnquoted(nil, item.name))]; tool != nil {
		if tool.custom {
			item.kind = kindCustom
		}
		if tool.namespace != "" {
			item.name, item.namespace = contentsOf(rawjson.Quote(tool.name)), contentsOf(rawjson.Quote(tool.namespace))
		}
	}
	return s.openItem(dst, item)
}

// sendArguments appends the arguments not yet sent. The input of a custom tool is only known at its
// end.
func (s *stream) sendArguments(dst []byte, item *outputItem) []byte {
	piece := item.arguments[item.sent:]
	if item.kind == kindCustom || len(piece) == 0 {
		return dst
	}
	item.sent = len(item.arguments)
	if s.silent {
		return dst
	}
	dst = append(s.event(dst, "response.function_call_arguments.delta"), item.location...)
	return endOf(appendText(dst, `,"delta":"`, piece))
}

// closeCalls ends all open calls, or those with complete arguments. Vendors may interleave calls,
// so several may be open.
func (s *stream) closeCalls(dst []byte, all bool) []byte {
	for _, item := range s.calls {
		if item.json != nil || !all && (!item.opened || !item.isComplete()) {
			continue
		}
		if !item.opened {
			dst = s.openCall(dst, item)
		}
		dst = s.closeCall(dst, item)
	}
	return dst
}

// isComplete reports whether a call's arguments are a JSON object, so that nothing can follow.
func (i *outputItem) isComplete() bool {
	if n := len(i.arguments); n != i.checkedLength {
		i.checkedLength = n
		i.isObject = n > 1 && i.arguments[n-1] == '}' && rawjson.IsValid(rawjson.AppendUnquoted(nil, i.arguments))
	}
	return i.isObject
}

// closeCall ends a call. A call without arguments gets an empty object, for clients to parse.
func (s *stream) closeCall(dst []byte, item *outputItem) []byte {
	status := "completed"
	if s.reason != "" && !item.isComplete() {
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
			dst = append(s.event(dst, kind), item.location...)
			dst = endOf(appendText(dst, `,"delta":"`, piece))
		}
		dst = append(s.event(dst, ended), item.location...)
		if item.kind == kindFunction {
			dst = appendText(dst, `,"name":"`, item.name)
		}
		dst = endOf(appendText(dst, name, item.arguments))
	}
	return s.closeItem(dst, item, status)
}
