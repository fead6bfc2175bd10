package customtools

import (
	"bytes"

	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// withCustomCalls returns an answer with calls of the replacing functions changed to calls of
// custom tools.
func withCustomCalls(answer []byte, names map[string]bool) []byte {
	if !bytes.Contains(answer, []byte(`"tool_calls"`)) {
		return answer
	}
	return form.EditMember(answer, "choices", func(choices []byte) []byte {
		choices, _ = form.EditElements(choices, func(choice []byte) []byte {
			return form.EditMember(choice, "message", func(message []byte) []byte {
				return form.EditMember(message, "tool_calls", func(calls []byte) []byte {
					calls, _ = form.EditElements(calls, func(call []byte) []byte { return customCall(call, names) })
					return calls
				})
			})
		})
		return choices
	})
}

// customCall changes a call of a replacing function to a call of its custom tool. It returns any other call
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
