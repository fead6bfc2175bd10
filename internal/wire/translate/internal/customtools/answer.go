package customtools

import (
	"bytes"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// withCustomCalls returns a whole answer in which calls of the functions that stand
// for custom tools are calls of these.
func withCustomCalls(answer []byte, names map[string]bool) []byte {
	if !bytes.Contains(answer, []byte(`"tool_calls"`)) {
		return answer
	}
	return changed(answer, "choices", func(choices []byte) []byte {
		return eachChanged(choices, func(choice []byte) []byte {
			return changed(choice, "message", func(message []byte) []byte {
				return changed(message, "tool_calls", func(calls []byte) []byte {
					return eachChanged(calls, func(call []byte) []byte { return customCall(call, names) })
				})
			})
		})
	})
}

// customCall returns a call as one of a custom tool, where its function stands for
// one.
func customCall(call []byte, names map[string]bool) []byte {
	function := rawjson.Field(call, "function")
	name := rawjson.Field(function, "name")
	if !names[rawjson.Unquote(name)] {
		return call
	}
	out := append([]byte(`{"id":`), rawjson.AppendOr(nil, rawjson.Field(call, "id"), `""`)...)
	out = append(append(out, `,"type":"custom","custom":{"name":`...), name...)
	return rawjson.Put(out, `,"input":"`, inputOf(insideOf(rawjson.Field(function, "arguments"))), `"}}`)
}

// insideOf returns the inside of a JSON string with the text of arguments, which
// vendors may send as an object.
func insideOf(arguments []byte) []byte {
	switch {
	case arguments == nil:
		return nil
	case !rawjson.IsText(arguments):
		arguments = piece.AppendAsText(nil, arguments)
	}
	return piece.AppendInside(nil, arguments)
}

// inputOf returns the inside of a JSON string with the input that arguments have.
func inputOf(arguments []byte) []byte {
	input := piece.UnwrapInput(arguments)
	return piece.AppendInside(nil, rawjson.Put(nil, `"`, input, `"`))
}

// changed returns an object one of whose members is changed.
func changed(object []byte, name string, change func([]byte) []byte) []byte {
	for m := range rawjson.Spans(object) {
		if string(m.Name) == name {
			return rawjson.Replace(object, []rawjson.Splice{{From: m.From, To: m.To, Text: change(object[m.From:m.To])}})
		}
	}
	return object
}

// eachChanged returns an array each of whose elements is changed.
func eachChanged(array []byte, change func([]byte) []byte) []byte {
	var edits []rawjson.Splice
	for from, to := range rawjson.ElementSpans(array) {
		edits = append(edits, rawjson.Splice{From: from, To: to, Text: change(array[from:to])})
	}
	return rawjson.Replace(array, edits)
}
