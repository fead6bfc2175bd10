package messagesresponses

import (
	"cmp"
	"fmt"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// Body returns the request in the responses form. Equal requests give equal bytes, and a request
// that continues another begins with the same items. Fields without a counterpart are dropped, or
// rejected if they change the answer or its price. Check must be called first.
func (r messagesOnResponses) Body(t wire.Translation) (rawjson.Pieces, error) {
	if err := piece.CheckTranslatable(r.Params()); err != nil {
		return nil, err
	}
	if r.Doc.Raw("mcp_servers") != nil {
		return nil, piece.Unsupported("mcp_servers", "`{param}` is not offered for this model. Leave it out.")
	}
	c := conversation{input: item.NewInput(t, r.id), blocks: piece.Blocks{URLs: t.OpenAI}}
	if err := c.addSystem(r.Doc.Raw("system"), "system"); err != nil {
		return nil, err
	}
	for i, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		if err := c.add(message, i); err != nil {
			return nil, err
		}
	}
	effort, summary, err := r.thinking(t)
	if err != nil {
		return nil, err
	}
	format, err := r.format()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, r.Size()+r.Size()/8+512)
	out = rawjson.Put(out, `{"model":`, rawjson.Quote(t.Model), "")
	out = rawjson.AppendMember(out, "input", c.input.End(false))
	if out, err = r.appendTools(out); err != nil {
		return nil, err
	}
	out = item.AppendLimit(out, cmp.Or(r.Limit, t.Limit))
	for _, name := range []string{"temperature", "top_p"} {
		if raw := r.Doc.Raw(name); raw != nil && !t.Reasoning {
			out = rawjson.AppendMember(out, name, raw)
		}
	}
	out = item.AppendFormat(out, format, nil)
	out = item.AppendReasoning(out, t, effort, summary, false)
	user := rawjson.Unquote(rawjson.Field(r.Doc.Raw("metadata"), "user_id"))
	out = item.AppendName(out, "safety_identifier", user)
	out = item.AppendName(out, "prompt_cache_key", sessionOf(user))
	return rawjson.Pieces{item.AppendEnd(out, t, r.Stream)}, nil
}

// sessionOf returns the session in a user's id from coding agents: JSON with a session_id, or a
// suffix. Any other id has none; as the key of the cache it would spoil it.
func sessionOf(user string) string {
	if session := rawjson.Unquote(rawjson.Field([]byte(user), "session_id")); rawjson.IsValid([]byte(user)) && session != "" {
		return session
	}
	_, session, _ := strings.Cut(user, "_session_")
	return session
}

// thinking returns the effort, and whether the client wants to see the reasoning.
func (r messagesOnResponses) thinking(t wire.Translation) (effort string, summary bool, err error) {
	effort, err = item.Effort(rawjson.Field(r.Doc.Raw("output_config"), "effort"), t, "output_config.effort")
	if err != nil {
		return "", false, err
	}
	thinking := r.Doc.Raw("thinking")
	switch kind := rawjson.Unquote(rawjson.Field(thinking, "type")); {
	case kind == "disabled":
		effort, _ = wire.NearestEffort("none", t.Efforts)
		return effort, false, nil
	case kind == "enabled" && effort == "":
		effort = piece.BudgetEffort(thinking)
		effort, _ = wire.NearestEffort(effort, t.Efforts)
	case kind != "enabled" && kind != "adaptive":
		return effort, false, nil
	}
	return effort, rawjson.Unquote(rawjson.Field(thinking, "display")) != "omitted", nil
}

// appendTools appends the tools and the tool choice.
func (r messagesOnResponses) appendTools(out []byte) ([]byte, error) {
	var list []byte
	err := piece.EachTool(r.Request, func(tool, name, schema []byte) {
		list = item.AppendFunction(list, item.Tool{Name: name, Description: rawjson.Field(tool, "description"),
			Schema: schema, Strict: string(rawjson.Field(tool, "strict")) == "true"})
	})
	if err != nil {
		return nil, err
	}
	if list == nil {
		return out, nil
	}
	return r.appendChoice(rawjson.AppendMember(out, "tools", item.Parts(list)))
}

func (r messagesOnResponses) appendChoice(out []byte) ([]byte, error) {
	choice := r.Doc.Raw("tool_choice")
	if choice == nil {
		return out, nil
	}
	word, name, err := piece.ToolChoice(choice)
	switch {
	case err != nil:
		return nil, err
	case name != nil:
		out = item.AppendChoice(append(out, `,"tool_choice":`...), "function", name)
	default:
		out = rawjson.AppendMember(out, "tool_choice", rawjson.Quote(word))
	}
	if alone := rawjson.Field(choice, "disable_parallel_tool_use"); alone != nil {
		out = fmt.Appendf(out, `,"parallel_tool_calls":%v`, string(alone) != "true")
	}
	return out, nil
}

// format returns the format of the answer's text, or nil for plain text.
func (r messagesOnResponses) format() ([]byte, error) {
	schema, err := piece.OutputSchema(r.Request)
	if schema == nil {
		return nil, err
	}
	out := rawjson.AppendMember([]byte(`{"type":"json_schema","name":"output"`), "schema", schema)
	return fmt.Appendf(out, `,"strict":%v}`, isStrict(schema, 0)), nil
}

// isStrict reports whether providers accept a schema as strict: each object requires all its
// properties and allows no others.
func isStrict(schema []byte, depth int) bool {
	const deepest = 32
	if depth > deepest {
		return false
	}
	if len(schema) > 0 && schema[0] == '[' {
		for _, inner := range rawjson.Elements(schema) {
			if !isStrict(inner, depth+1) {
				return false
			}
		}
		return true
	}
	properties := rawjson.Field(schema, "properties")
	if properties != nil || strings.Contains(string(rawjson.Field(schema, "type")), `"object"`) {
		if string(rawjson.Field(schema, "additionalProperties")) != "false" {
			return false
		}
		required := map[string]bool{}
		for _, name := range rawjson.Elements(rawjson.Field(schema, "required")) {
			required[rawjson.Unquote(name)] = true
		}
		for name := range rawjson.Members(properties) {
			if !required[string(name)] {
				return false
			}
		}
	}
	for name, inner := range rawjson.Members(schema) {
		switch string(name) {
		case "properties", "$defs", "definitions":
			for _, member := range rawjson.Members(inner) {
				if !isStrict(member, depth+1) {
					return false
				}
			}
		case "items", "anyOf", "oneOf", "allOf", "prefixItems":
			if !isStrict(inner, depth+1) {
				return false
			}
		}
	}
	return true
}
