package chatmessages

import (
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// maxStops is the chat form's limit on stop sequences.
const maxStops = 4

// Body returns the request in the chat form. Equal requests give equal bytes. Results of tools
// become messages directly after the call; a missing result is "(no result)". Fields without a
// counterpart are dropped, or rejected if they change the answer or its price. A stream always asks
// for usage. Check must be called first.
func (r messagesOnChat) Body(t wire.Translation) (rawjson.Pieces, error) {
	if err := piece.CheckTranslatable(r.Params()); err != nil {
		return nil, err
	}
	if r.Doc.Raw("mcp_servers") != nil {
		return nil, unsupported("mcp_servers", "`{param}` is not offered for this model. Leave it out.")
	}
	d := dialogue{id: r.id}
	if err := d.addSystem(r.Doc.Raw("system"), "system"); err != nil {
		return nil, err
	}
	list := r.Doc.Raw("messages")
	d.loopStart = loopStartOf(list)
	for i, message := range rawjson.Elements(list) {
		if err := d.add(message, i); err != nil {
			return nil, err
		}
	}
	d.finish()
	out := make([]byte, 0, r.Size()+r.Size()/8+512)
	out = rawjson.Put(out, `{"model":`, rawjson.Quote(t.Model), "")
	out = d.append(append(out, `,"messages":`...))
	out = r.appendChatLimits(out, t)
	for _, add := range []func([]byte, wire.Translation) ([]byte, error){r.appendChatTools, r.appendChatEffort, r.appendChatFormat} {
		var err error
		if out, err = add(out, t); err != nil {
			return nil, err
		}
	}
	if user := rawjson.Field(r.Doc.Raw("metadata"), "user_id"); rawjson.IsText(user) && 2 < len(user) && len(user) <= maxUserLength {
		out = rawjson.AppendMember(out, "user", user)
	}
	if r.Stream {
		out = append(out, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	return rawjson.Pieces{append(out, '}')}, nil
}

// maxUserLength is the longest name of an end user accepted by all providers, with quotes.
const maxUserLength = 64 + 2

// appendChatLimits appends the limits of the answer and the sampling fields, which reasoning models
// reject.
func (r messagesOnChat) appendChatLimits(out []byte, t wire.Translation) []byte {
	name := t.LimitField
	if name == "" {
		name = "max_tokens"
	}
	if r.Limit > 0 {
		out = rawjson.AppendMember(out, name, strconv.AppendInt(nil, r.Limit, 10))
	}
	var stops []byte
	n := 0
	for _, stop := range rawjson.Elements(r.Doc.Raw("stop_sequences")) {
		if rawjson.IsText(stop) && len(stop) > 2 && n < maxStops {
			stops = rawjson.Put(stops, ",", stop, "")
			n++
		}
	}
	if n > 0 {
		stops[0] = '['
		out = append(rawjson.AppendMember(out, "stop", stops), ']')
	}
	for _, name := range []string{"temperature", "top_p"} {
		if raw := r.Doc.Raw(name); raw != nil && !t.Reasoning {
			out = rawjson.AppendMember(out, name, raw)
		}
	}
	return out
}

// forcesTool reports whether the model must call a tool.
func (r messagesOnChat) forcesTool() bool {
	kind := rawjson.Unquote(rawjson.Field(r.Doc.Raw("tool_choice"), "type"))
	return r.HasTools() && (kind == "any" || kind == "tool")
}

// appendChatTools appends tools and the tool choice.
func (r messagesOnChat) appendChatTools(out []byte, t wire.Translation) ([]byte, error) {
	sep := `,"tools":[`
	err := piece.EachTool(r.Request, func(tool, name, parameters []byte) {
		out = rawjson.Put(append(out, sep...), `{"type":"function","function":{"name":`, name, "")
		if text := rawjson.Field(tool, "description"); rawjson.IsText(text) {
			out = rawjson.AppendMember(out, "description", text)
		}
		parameters, strict := adaptSchema(schema.Strict(), parameters, tool)
		out = rawjson.AppendMember(out, "parameters", parameters)
		if strict {
			out = rawjson.AppendMember(out, "strict", "true")
		}
		out = append(out, "}}"...)
		sep = ","
	})
	if err != nil {
		return nil, err
	}
	if sep != "," {
		return out, nil
	}
	if t.NoThinking.Name != "" && r.forcesTool() {
		return r.appendChatChoice(rawjson.AppendMember(append(out, ']'), t.NoThinking.Name, t.NoThinking.Value))
	}
	return r.appendChatChoice(append(out, ']'))
}

func (r messagesOnChat) appendChatChoice(out []byte) ([]byte, error) {
	choice := r.Doc.Raw("tool_choice")
	if choice == nil {
		return out, nil
	}
	word, name, err := piece.ToolChoice(choice)
	switch {
	case err != nil:
		return nil, err
	case name != nil:
		out = rawjson.Put(out, `,"tool_choice":{"type":"function","function":{"name":`, name, "}}")
	default:
		out = rawjson.AppendMember(out, "tool_choice", rawjson.Quote(word))
	}
	if string(rawjson.Field(choice, "disable_parallel_tool_use")) == "true" {
		out = append(out, `,"parallel_tool_calls":false`...)
	}
	return out, nil
}

// appendChatEffort appends reasoning_effort for thinking and effort. Only reasoning models have the
// field.
func (r messagesOnChat) appendChatEffort(out []byte, t wire.Translation) ([]byte, error) {
	thinking := r.Doc.Raw("thinking")
	raw := rawjson.Field(r.Doc.Raw("output_config"), "effort")
	effort := rawjson.Unquote(raw)
	switch effort {
	case "low", "medium", "high", "xhigh", "max":
	default:
		if raw != nil {
			return nil, unsupported("output_config.effort", "`{param}` must be one of low, medium, high, xhigh and max.")
		}
	}
	switch kind := rawjson.Unquote(rawjson.Field(thinking, "type")); {
	case kind == "disabled":
		effort = "none"
	case kind == "enabled" && effort == "":
		effort = piece.BudgetEffort(thinking)
	}
	if effort == "" || !t.Reasoning || t.NoThinking.Name != "" && r.forcesTool() {
		return out, nil
	}
	effort, _ = wire.NearestEffort(effort, t.Efforts)
	return rawjson.AppendMember(out, "reasoning_effort", rawjson.Quote(effort)), nil
}

// appendChatFormat appends response_format with the schema unchanged. It is not strict, because the
// client's form has no such setting.
func (r messagesOnChat) appendChatFormat(out []byte, _ wire.Translation) ([]byte, error) {
	schemaJSON, err := piece.OutputSchema(r.Request)
	if schemaJSON == nil {
		return out, err
	}
	out = append(out, `,"response_format":{"type":"json_schema","json_schema":{"name":"output"`...)
	return append(rawjson.AppendMember(out, "schema", schemaJSON), "}}"...), nil
}
