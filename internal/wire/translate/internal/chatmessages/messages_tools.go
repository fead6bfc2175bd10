package chatmessages

import (
	"fmt"

	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// messagesTools are the tools of a request in the messages form.
type messagesTools struct {
	list  []block
	names []string
	// fromHistory is set if the tools are only in the history, so that they must not be called
	// again.
	fromHistory bool
}

// messagesTools reads tools, and the older functions.
func (r chatOnMessages) messagesTools() (*messagesTools, error) {
	allowed, err := r.allowedTools()
	if err != nil {
		return nil, err
	}
	t := &messagesTools{}
	for i, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		at := fmt.Sprintf("tools[%d]", i)
		kind, function := rawjson.Field(tool, "type"), rawjson.Field(tool, "function")
		if rawjson.Unquote(kind) != "function" && (kind != nil || function == nil) {
			return nil, unsupported(at+".type", "`{param}`: this model takes tools of type function only.")
		}
		mark := markOf(tool)
		if mark == noBreakpoint {
			mark = markOf(function)
		}
		if err := t.add(function, mark, at+".function", allowed); err != nil {
			return nil, err
		}
	}
	for i, function := range rawjson.Elements(r.Doc.Raw("functions")) {
		if err := t.add(function, markOf(function), fmt.Sprintf("functions[%d]", i), nil); err != nil {
			return nil, err
		}
	}
	if allowed != nil && len(t.list) == 0 {
		return nil, unsupported("tool_choice.allowed_tools.tools", "`{param}` names no function of `tools`.")
	}
	return t, nil
}

// add adds a function, unless allowed excludes it.
func (t *messagesTools) add(function []byte, mark breakpoint, at string, allowed map[string]bool) error {
	name := rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return unsupported(at+".name", "`{param}` must be a string: name the function.")
	}
	if allowed != nil && !allowed[rawjson.Unquote(name)] {
		return nil
	}
	tool := append([]byte(`{"name":`), name...)
	if text := rawjson.Field(function, "description"); rawjson.IsText(text) {
		tool = rawjson.AppendMember(tool, "description", text)
	}
	parameters := rawjson.Field(function, "parameters")
	switch {
	case parameters == nil:
		parameters = []byte(`{"type":"object","properties":{}}`)
	case parameters[0] != '{':
		return unsupported(at+".parameters", "`{param}` must be an object: a JSON schema.")
	}
	parameters, strict := adaptSchema(schema.Messages(), piece.ObjectSchema(parameters), function)
	tool = rawjson.AppendMember(tool, "input_schema", parameters)
	if strict {
		tool = rawjson.AppendMember(tool, "strict", "true")
	}
	t.list = append(t.list, block{json: tool, mark: mark})
	t.names = append(t.names, rawjson.Unquote(name))
	return nil
}

// adaptSchema returns a tool's schema for the target, and whether it is strict as requested by the
// client. If the target does not support the schema, it is unchanged and not strict.
func adaptSchema(target *schema.Subset, original, tool []byte) (parameters []byte, strict bool) {
	if string(rawjson.Field(tool, "strict")) != "true" {
		return original, false
	}
	if adapted, err := target.For(original, "parameters"); err == nil {
		return adapted, true
	}
	return original, false
}

// addFromHistory adds tools for the functions called in the history, because a history with calls
// needs tools.
func (t *messagesTools) addFromHistory(names []string) {
	for _, name := range names {
		tool := append([]byte(`{"name":`), rawjson.Quote(name)...)
		tool = rawjson.AppendMember(tool, "input_schema", `{"type":"object"}`)
		t.list, t.names, t.fromHistory = append(t.list, block{json: tool}), append(t.names, name), true
	}
}

func (t *messagesTools) marks() int { return countMarks(t.list) }

func (t *messagesTools) append(out []byte, marks *breakpoints) []byte {
	if len(t.list) == 0 {
		return out
	}
	return marks.append(append(out, `,"tools":`...), t.list)
}

// allowedTools returns the names in a tool_choice of type allowed_tools, or nil for another type.
func (r chatOnMessages) allowedTools() (map[string]bool, error) {
	choice := r.Doc.Raw("tool_choice")
	if rawjson.Unquote(rawjson.Field(choice, "type")) != "allowed_tools" {
		return nil, nil
	}
	allowed := map[string]bool{}
	for i, tool := range rawjson.Elements(rawjson.Field(rawjson.Field(choice, "allowed_tools"), "tools")) {
		if kind := rawjson.Unquote(rawjson.Field(tool, "type")); kind != "function" {
			at := fmt.Sprintf("tool_choice.allowed_tools.tools[%d].type", i)
			return nil, unsupported(at, "`{param}`: this model takes tools of type function only.")
		}
		name := rawjson.Field(tool, "name")
		if name == nil {
			name = rawjson.Field(rawjson.Field(tool, "function"), "name")
		}
		allowed[rawjson.Unquote(name)] = true
	}
	return allowed, nil
}

// messagesToolChoice translates tool_choice, the older function_call, and parallel_tool_calls. A
// model that thinks cannot be forced to call a tool.
func (r chatOnMessages) messagesToolChoice(tools *messagesTools, thinks bool) ([]byte, error) {
	if tools.fromHistory {
		return []byte(`{"type":"none"}`), nil
	}
	kind, name, err := r.toolChoice()
	if err != nil {
		return nil, err
	}
	if thinks && (kind == "any" || kind == "tool") {
		kind = "auto"
	}
	alone := string(r.Doc.Raw("parallel_tool_calls")) == "false" && kind != "none"
	switch {
	case kind == "" && !alone:
		return nil, nil
	case kind == "":
		kind = "auto"
	}
	choice := rawjson.Put(nil, `{"type":"`, kind, `"`)
	if kind == "tool" {
		choice = rawjson.AppendMember(choice, "name", name)
	}
	if alone {
		choice = append(choice, `,"disable_parallel_tool_use":true`...)
	}
	return append(choice, '}'), nil
}

// toolChoice returns the messages form's word for the choice, or "" without one, and the name of
// the function to be called.
func (r chatOnMessages) toolChoice() (kind string, name []byte, err error) {
	param, raw := "tool_choice", r.Doc.Raw("tool_choice")
	if raw == nil {
		param, raw = "function_call", r.Doc.Raw("function_call")
	}
	word := rawjson.Unquote(raw)
	if rawjson.Unquote(rawjson.Field(raw, "type")) == "allowed_tools" {
		word = rawjson.Unquote(rawjson.Field(rawjson.Field(raw, "allowed_tools"), "mode"))
	}
	switch word {
	case "none", "auto":
		return word, nil, nil
	case "required", "any":
		return "any", nil, nil
	}
	if raw == nil {
		return "", nil, nil
	}
	if name = rawjson.Field(rawjson.Field(raw, "function"), "name"); name == nil {
		name = rawjson.Field(raw, "name") // of function_call
	}
	if !rawjson.IsText(name) || len(name) == 2 {
		return "", nil, unsupported(param, "`{param}` must be none, auto, required or name a function.")
	}
	return "tool", name, nil
}
