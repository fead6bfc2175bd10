package responseschat

import (
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// appendChatTools appends tools, tool_choice and parallel_tool_calls. Providers reject the last two
// without a tool, so they are only sent with one.
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
			dst = piece.AppendCustomTool(dst, tool.definition)
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

// allowedTools returns the predicate for the allowed tools and namespaces of a choice.
func allowedTools(choice []byte) func(*chatTool) bool {
	tools, namespaces := make(map[qualifiedName]bool), make(map[string]bool)
	for _, tool := range rawjson.Elements(rawjson.Field(choice, "tools")) {
		if rawjson.Unquote(rawjson.Field(tool, "type")) == "namespace" {
			namespaces[rawjson.Unquote(rawjson.Field(tool, "name"))] = true
		} else {
			tools[nameOfTool(tool)] = true
		}
	}
	return func(t *chatTool) bool { return tools[t.qualifiedName] || t.namespace != "" && namespaces[t.namespace] }
}

// appendChatChoice appends tool_choice. Only the allowed tools are sent, so the choice is their
// mode.
func appendChatChoice(dst, choice []byte, tools *chatTools, any bool) ([]byte, error) {
	switch kind := rawjson.Unquote(rawjson.Field(choice, "type")); {
	case choice == nil:
	case rawjson.IsText(choice):
		if word := rawjson.Unquote(choice); any || word != "none" && word != "auto" {
			dst = rawjson.AppendMember(dst, "tool_choice", choice)
		}
	case kind == "function" || kind == "custom":
		function := choice
		if nested := rawjson.Field(choice, kind); rawjson.Field(choice, "name") == nil && nested != nil {
			function = nested // in the chat form
		}
		dst = rawjson.AppendMember(dst, "tool_choice", `{"type":"function","function":{"name":`)
		dst = rawjson.Put(dst, "", rawjson.Quote(tools.functionFor(nameOfTool(function))), "}}")
	case kind == "allowed_tools":
		if mode := rawjson.Field(choice, "mode"); mode != nil && any {
			dst = rawjson.AppendMember(dst, "tool_choice", mode)
		}
	default:
		return nil, unsupported("tool_choice.type")
	}
	return dst, nil
}
