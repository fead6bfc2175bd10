package chatresponses

import (
	"fmt"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// appendTools appends the tools, including those of the older field, and the tool choice.
func (r chatOnResponses) appendTools(out []byte) ([]byte, error) {
	var list []byte
	for i, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		var err error
		if list, err = appendTool(list, tool, fmt.Sprintf("tools[%d]", i)); err != nil {
			return nil, err
		}
	}
	for i, function := range rawjson.Elements(r.Doc.Raw("functions")) {
		var err error
		if list, err = appendFunction(list, function, fmt.Sprintf("functions[%d]", i)); err != nil {
			return nil, err
		}
	}
	if list == nil {
		return out, nil
	}
	out = rawjson.AppendMember(out, "tools", item.Parts(list))
	choice, err := r.toolChoice()
	if err != nil {
		return nil, err
	}
	if choice != nil {
		out = rawjson.AppendMember(out, "tool_choice", choice)
	}
	if parallel := r.Doc.Raw("parallel_tool_calls"); parallel != nil {
		out = rawjson.AppendMember(out, "parallel_tool_calls", parallel)
	}
	return out, nil
}

func appendTool(list, tool []byte, at string) ([]byte, error) {
	kind := rawjson.Field(tool, "type")
	function, custom := rawjson.Field(tool, "function"), rawjson.Field(tool, "custom")
	switch {
	case rawjson.Unquote(kind) == "custom" && custom != nil:
		return appendCustom(list, custom, at+".custom")
	case rawjson.Unquote(kind) != "function" && (kind != nil || function == nil):
		return nil, piece.Unsupported(at+".type", "`{param}` must be function or custom for this model.")
	}
	return appendFunction(list, function, at+".function")
}

func appendFunction(list, function []byte, at string) ([]byte, error) {
	t := item.Tool{
		Name: rawjson.Field(function, "name"), Description: rawjson.Field(function, "description"),
		Schema: rawjson.Field(function, "parameters"), Strict: string(rawjson.Field(function, "strict")) == "true",
	}
	switch {
	case !rawjson.IsText(t.Name) || len(t.Name) == 2:
		return nil, piece.Unsupported(at+".name", "`{param}` must be a string: name the function.")
	case t.Schema != nil && t.Schema[0] != '{':
		return nil, piece.Unsupported(at+".parameters", "`{param}` must be an object: a JSON schema.")
	}
	return item.AppendFunction(list, t), nil
}

// appendCustom appends a custom tool. Its grammar is one level higher in this form.
func appendCustom(list, custom []byte, at string) ([]byte, error) {
	name := rawjson.Field(custom, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return nil, piece.Unsupported(at+".name", "`{param}` must be a string: name the tool.")
	}
	list = rawjson.Put(list, `,{"type":"custom","name":`, item.LineName(name), "")
	if text := rawjson.Field(custom, "description"); rawjson.IsText(text) {
		list = rawjson.AppendMember(list, "description", text)
	}
	format := rawjson.Field(custom, "format")
	if grammar := rawjson.Field(format, "grammar"); grammar != nil {
		list = append(list, `,"format":{"type":"grammar"`...)
		for _, name := range []string{"syntax", "definition"} {
			if value := rawjson.Field(grammar, name); value != nil {
				list = rawjson.AppendMember(list, name, value)
			}
		}
		list = append(list, '}')
	} else if format != nil {
		list = rawjson.AppendMember(list, "format", format)
	}
	return append(list, '}'), nil
}

// toolChoice returns tool_choice, or the older function_call, or nil if there is neither.
func (r chatOnResponses) toolChoice() ([]byte, error) {
	param, raw := "tool_choice", r.Doc.Raw("tool_choice")
	if raw == nil {
		param, raw = "function_call", r.Doc.Raw("function_call")
	}
	switch word := rawjson.Unquote(raw); {
	case raw == nil:
		return nil, nil
	case word == "none" || word == "auto" || word == "required":
		return raw, nil
	case rawjson.Unquote(rawjson.Field(raw, "type")) == "allowed_tools":
		return allowedTools(rawjson.Field(raw, "allowed_tools"))
	}
	if choice := choiceOf(raw); choice != nil {
		return choice, nil
	}
	if name := rawjson.Field(raw, "name"); rawjson.IsText(name) && param == "function_call" {
		return item.AppendChoice(nil, "function", name), nil
	}
	return nil, piece.Unsupported(param, "`{param}` must be none, auto, required or name a tool.")
}

// choiceOf returns the choice of one tool, or nil if the value names no tool.
func choiceOf(raw []byte) []byte {
	for _, kind := range [...]string{"function", "custom"} {
		if name := rawjson.Field(rawjson.Field(raw, kind), "name"); rawjson.IsText(name) && len(name) > 2 {
			return item.AppendChoice(nil, kind, name)
		}
	}
	return nil
}

// allowedTools returns the choice among some tools. All tools stay declared for the provider's
// prompt cache.
func allowedTools(allowed []byte) ([]byte, error) {
	mode := rawjson.Unquote(rawjson.Field(allowed, "mode"))
	if mode != "required" {
		mode = "auto"
	}
	var list []byte
	for i, tool := range rawjson.Elements(rawjson.Field(allowed, "tools")) {
		choice := choiceOf(tool)
		if choice == nil {
			at := fmt.Sprintf("tool_choice.allowed_tools.tools[%d]", i)
			return nil, piece.Unsupported(at, "`{param}` must name a function or a custom tool.")
		}
		list = append(append(list, ','), choice...)
	}
	if list == nil {
		return nil, piece.Unsupported("tool_choice.allowed_tools.tools", "`{param}` names no tool.")
	}
	return append(rawjson.AppendMember(rawjson.Put(nil, `{"type":"allowed_tools","mode":"`, mode, `"`), "tools", item.Parts(list)), '}'), nil
}
