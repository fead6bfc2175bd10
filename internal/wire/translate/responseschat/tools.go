package responseschat

import (
	"tollgate/internal/wire/rawjson"
)

// A custom tool takes free text. Chat lines of most vendors have functions
// only, so one with a single string stands for it: inputName is its argument.
const inputName = "input"

// wrapInput returns the arguments, a JSON string, of the function that stands
// for a custom tool. input is a JSON string.
func wrapInput(input []byte) []byte {
	if !rawjson.IsText(input) {
		input = []byte(`""`)
	}
	return rawjson.Quote(`{"` + inputName + `":` + string(input) + `}`)
}

// unwrapInput returns the inside of a JSON string with the input of a custom
// tool, given the inside of the one with the arguments. Arguments that are
// something else are the input as they stand.
func unwrapInput(arguments []byte) []byte {
	text := rawjson.AppendUnquoted(nil, arguments)
	if rawjson.IsValid(text) {
		object := text[rawjson.SkipSpace(text, 0):]
		switch input := rawjson.Field(object, inputName); {
		case rawjson.IsText(input):
			return input[1 : len(input)-1]
		case input != nil:
			return textInside(rawjson.Quote(string(input)))
		}
	}
	return arguments
}

// appendChatTools writes tools, tool_choice and parallel_tool_calls. The last
// two are refused by providers where there is no tool, so they go only with
// one.
func appendChatTools(dst []byte, d *rawjson.RequestBody, tools *chatTools) ([]byte, error) {
	choice := d.Raw("tool_choice")
	allowed := func(*chatTool) bool { return true }
	if rawjson.Unquote(rawjson.Field(choice, "type")) == "allowed_tools" {
		allowed = allowedTools(choice)
	}
	written := 0
	for _, tool := range tools.list {
		if !allowed(tool) {
			continue
		}
		if written == 0 {
			dst = append(dst, `,"tools":[`...)
		} else {
			dst = append(dst, ',')
		}
		written++
		dst = append(dst, `{"type":"function","function":{"name":`...)
		dst = append(dst, rawjson.Quote(tool.function)...)
		if tool.custom {
			dst = appendCustomTool(dst, tool.definition)
		} else {
			for _, name := range []string{"description", "parameters", "strict"} {
				if raw := rawjson.Field(tool.definition, name); raw != nil {
					dst = rawjson.AppendMember(dst, name, raw)
				}
			}
		}
		dst = append(dst, "}}"...)
	}
	if written > 0 {
		dst = append(dst, ']')
	}
	dst, err := appendChatChoice(dst, choice, tools, written > 0)
	if parallel := d.Raw("parallel_tool_calls"); parallel != nil && written > 0 {
		dst = rawjson.AppendMember(dst, "parallel_tool_calls", parallel)
	}
	return dst, err
}

// allowedTools tells which tools a choice allows: single ones, and whole
// namespaces.
func allowedTools(choice []byte) func(*chatTool) bool {
	tools, namespaces := make(map[toolName]bool), make(map[string]bool)
	for _, tool := range rawjson.Elements(rawjson.Field(choice, "tools")) {
		if rawjson.Unquote(rawjson.Field(tool, "type")) == "namespace" {
			namespaces[rawjson.Unquote(rawjson.Field(tool, "name"))] = true
		} else {
			tools[nameOfTool(tool)] = true
		}
	}
	return func(t *chatTool) bool { return tools[t.toolName] || t.namespace != "" && namespaces[t.namespace] }
}

// appendCustomTool writes the function that stands for a custom tool. A
// grammar cannot be enforced, so the model is told about it.
func appendCustomTool(dst, tool []byte) []byte {
	about := rawjson.Unquote(rawjson.Field(tool, "description"))
	format := rawjson.Field(tool, "format")
	grammar := rawjson.Field(format, "grammar")
	if grammar == nil {
		grammar = format
	}
	if definition := rawjson.Unquote(rawjson.Field(grammar, "definition")); definition != "" {
		if about != "" {
			about += "\n\n"
		}
		about += "The input must follow this " + rawjson.Unquote(rawjson.Field(grammar, "syntax")) + " grammar:\n" + definition
	}
	if about != "" {
		dst = rawjson.AppendMember(dst, "description", rawjson.Quote(about))
	}
	return append(rawjson.AppendMember(dst, "parameters", ""),
		`{"type":"object","properties":{"`+inputName+`":{"type":"string","description":"The input of the tool, as it is."}},`+
			`"required":["`+inputName+`"],"additionalProperties":false}`...)
}

// appendChatChoice writes tool_choice. Of allowed tools only those are sent
// that are allowed, so that their mode is left.
func appendChatChoice(dst, choice []byte, tools *chatTools, any bool) ([]byte, error) {
	switch kind := rawjson.Unquote(rawjson.Field(choice, "type")); {
	case choice == nil:
	case rawjson.IsText(choice):
		if word := rawjson.Unquote(choice); any || word != "none" && word != "auto" {
			dst = rawjson.AppendMember(dst, "tool_choice", choice)
		}
	case kind == "function" || kind == "custom":
		named := choice
		if nested := rawjson.Field(choice, kind); rawjson.Field(choice, "name") == nil && nested != nil {
			named = nested // as the chat form has it
		}
		dst = rawjson.AppendMember(dst, "tool_choice", `{"type":"function","function":{"name":`)
		dst = rawjson.Put(dst, "", rawjson.Quote(tools.function(nameOfTool(named))), "}}")
	case kind == "allowed_tools":
		if mode := rawjson.Field(choice, "mode"); mode != nil && any {
			dst = rawjson.AppendMember(dst, "tool_choice", mode)
		}
	default:
		return nil, notOnChat("tool_choice.type")
	}
	return dst, nil
}
