package customtools

import (
	"bytes"

	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// withCustomCalls returns an answer with calls of the replacing functions changed to calls of
// custom tools.
func withCustomCalls(answer []byte, names map[string]bool) []byte {
	if !bytes.Contains(answer, []byte(`"tool_calls"`)) {
		return answer
	}
	return replaceMember(answer, "choices", func(choices []byte) []byte {
		return mapElements(choices, func(choice []byte) []byte {
			return replaceMember(choice, "message", func(message []byte) []byte {
				return replaceMember(message, "tool_calls", func(calls []byte) []byte {
					return mapElements(calls, func(call []byte) []byte { return customCall(call, names) })
				})
			})
		})
	})
}

// customCall returns a call of a replacing function as one of its custom tool, and any other call
// unchanged.
func customCall(call []byte, names map[string]bool) []byte {
	function := rawjson.Field(call, "function")
	name := rawjson.Field(function, "name")
	if !names[rawjson.Unquote(name)] {
		return call
	}
	out := append([]byte(`{"id":`), rawjson.AppendOr(nil, rawjson.Field(call, "id"), `""`)...)
	out = append(append(out, `,"type":"custom","custom":{"name":`...), name...)
	return rawjson.Put(out, `,"input":"`, conversation.UnwrapInput(textOf(rawjson.Field(function, "arguments"))), `"}}`)
}

// textOf returns the text of arguments as the contents of a JSON string. Some vendors send an
// object instead of its text.
func textOf(arguments []byte) []byte {
	switch {
	case arguments == nil:
		return nil
	case !rawjson.IsText(arguments):
		arguments = conversation.AppendQuoted(nil, arguments)
	}
	return conversation.Contents(arguments)
}

// replaceMember returns an object with a member changed.
func replaceMember(object []byte, name string, change func([]byte) []byte) []byte {
	for m := range rawjson.Spans(object) {
		if string(m.Name) == name {
			return rawjson.Replace(object, []rawjson.Splice{{From: m.From, To: m.To, Text: change(object[m.From:m.To])}})
		}
	}
	return object
}

// mapElements returns an array with all elements changed.
func mapElements(array []byte, change func([]byte) []byte) []byte {
	var edits []rawjson.Splice
	for from, to := range rawjson.ElementSpans(array) {
		edits = append(edits, rawjson.Splice{From: from, To: to, Text: change(array[from:to])})
	}
	return rawjson.Replace(array, edits)
}
