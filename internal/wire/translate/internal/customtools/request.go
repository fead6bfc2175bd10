package customtools

import (
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// withFunctions returns the body of a request with functions instead of its custom tools, in tools, messages
// and tool_choice.
func withFunctions(r *completions.Request) []byte {
	edits := rawjson.Edits{Doc: r.Doc}
	if choice := r.Doc.Raw("tool_choice"); choice != nil {
		edits.Set("tool_choice", choiceOf(choice))
	}
	for _, list := range []struct {
		name string
		as   func([]byte) []byte
	}{{"tools", functionOf}, {"messages", messageOf}} {
		at := r.Doc.Find(list.name)
		if at == nil {
			continue
		}
		array := r.Doc.Body[at.From:at.To]
		for from, to := range rawjson.ElementSpans(array) {
			if text := list.as(array[from:to]); text != nil {
				edits.Splices = append(edits.Splices, rawjson.Splice{From: at.From + from, To: at.From + to, Text: text})
			}
		}
	}
	return edits.Body().Bytes()
}

// functionOf returns the function replacing a custom tool, or nil for another tool.
func functionOf(tool []byte) []byte {
	custom := customOf(tool)
	if custom == nil {
		return nil
	}
	t := conversation.Tool{Description: rawjson.Field(custom, "description"), Grammar: rawjson.Field(custom, "format"), Custom: true}
	f := t.AsFunction()
	out := append([]byte(`{"type":"function","function":{"name":`), nameOf(custom)...)
	if f.Description != nil {
		out = rawjson.AppendMember(out, "description", f.Description)
	}
	return append(rawjson.AppendMember(out, "parameters", f.Schema), "}}"...)
}

func nameOf(custom []byte) []byte { return rawjson.AppendOr(nil, rawjson.Field(custom, "name"), `""`) }

// messageOf returns a message with its calls of custom tools changed to functions, or nil if the message has
// no such calls.
func messageOf(message []byte) []byte {
	var edits []rawjson.Splice
	for m := range rawjson.Spans(message) {
		if string(m.Name) != "tool_calls" {
			continue
		}
		calls := message[m.From:m.To]
		for from, to := range rawjson.ElementSpans(calls) {
			custom := customOf(calls[from:to])
			if custom == nil {
				continue
			}
			call := append([]byte(`{"id":`), rawjson.AppendOr(nil, rawjson.Field(calls[from:to], "id"), `""`)...)
			call = append(append(call, `,"type":"function","function":{"name":`...), nameOf(custom)...)
			call = append(rawjson.AppendMember(call, "arguments", conversation.WrapInput(rawjson.Field(custom, "input"))), "}}"...)
			edits = append(edits, rawjson.Splice{From: m.From + from, To: m.From + to, Text: call})
		}
	}
	if edits == nil {
		return nil
	}
	return rawjson.Replace(message, edits)
}

// choiceOf returns a tool choice with functions instead of custom tools.
func choiceOf(choice []byte) []byte {
	if custom := customOf(choice); custom != nil {
		return rawjson.Put(nil, `{"type":"function","function":{"name":`, nameOf(custom), "}}")
	}
	allowed := rawjson.Field(choice, "allowed_tools")
	if allowed == nil {
		return choice
	}
	list := []byte(`[`)
	for i, tool := range rawjson.Elements(rawjson.Field(allowed, "tools")) {
		if i > 0 {
			list = append(list, ',')
		}
		if custom := customOf(tool); custom != nil {
			tool = rawjson.Put(nil, `{"type":"function","function":{"name":`, nameOf(custom), "}}")
		}
		list = append(list, tool...)
	}
	out := []byte(`{"type":"allowed_tools","allowed_tools":{"mode":`)
	out = rawjson.AppendOr(out, rawjson.Field(allowed, "mode"), `"auto"`)
	return append(rawjson.AppendMember(out, "tools", append(list, ']')), "}}"...)
}
