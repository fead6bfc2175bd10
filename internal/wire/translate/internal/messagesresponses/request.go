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

// Thinking budgets in tokens below which the effort is low, and below which it is medium.
const (
	lowBudget  = 4 << 10
	highBudget = 16 << 10
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
		budget, _ := rawjson.Integer(rawjson.Field(thinking, "budget_tokens"))
		switch {
		case budget < lowBudget:
			effort = "low"
		case budget < highBudget:
			effort = "medium"
		default:
			effort = "high"
		}
		effort, _ = wire.NearestEffort(effort, t.Efforts)
	case kind != "enabled" && kind != "adaptive":
		return effort, false, nil
	}
	return effort, rawjson.Unquote(rawjson.Field(thinking, "display")) != "omitted", nil
}

// appendTools appends the tools and the tool choice.
func (r messagesOnResponses) appendTools(out []byte) ([]byte, error) {
	var list []byte
	for i, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		at := fmt.Sprintf("tools[%d]", i)
		if kind := rawjson.Field(tool, "type"); kind != nil && rawjson.Unquote(kind) != "custom" {
			return nil, piece.Unsupported(at+".type", "`{param}`: this model takes the client's own tools only, of type custom.")
		}
		t := item.Tool{
			Name: rawjson.Field(tool, "name"), Description: rawjson.Field(tool, "description"),
			Schema: rawjson.Field(tool, "input_schema"), Strict: string(rawjson.Field(tool, "strict")) == "true",
		}
		switch {
		case !rawjson.IsText(t.Name) || len(t.Name) == 2:
			return nil, piece.Unsupported(at+".name", "`{param}` must be a string: name the tool.")
		case len(t.Schema) == 0 || t.Schema[0] != '{':
			return nil, piece.Unsupported(at+".input_schema", "`{param}` must be an object: a JSON schema.")
		}
		list = item.AppendFunction(list, t)
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
	switch kind := rawjson.Unquote(rawjson.Field(choice, "type")); kind {
	case "auto", "none":
		out = rawjson.AppendMember(out, "tool_choice", rawjson.Quote(kind))
	case "any":
		out = append(out, `,"tool_choice":"required"`...)
	case "tool":
		name := rawjson.Field(choice, "name")
		if !rawjson.IsText(name) || len(name) == 2 {
			return nil, piece.Unsupported("tool_choice.name", "`{param}` must be a string: name the tool.")
		}
		out = item.AppendChoice(append(out, `,"tool_choice":`...), "function", name)
	default:
		return nil, piece.Unsupported("tool_choice.type", "`{param}` must be auto, any, tool or none.")
	}
	if alone := rawjson.Field(choice, "disable_parallel_tool_use"); alone != nil {
		out = fmt.Appendf(out, `,"parallel_tool_calls":%v`, string(alone) != "true")
	}
	return out, nil
}

// format returns the format of the answer's text, or nil for plain text.
func (r messagesOnResponses) format() ([]byte, error) {
	param, format := "output_config.format", rawjson.Field(r.Doc.Raw("output_config"), "format")
	if format == nil {
		param, format = "output_format", r.Doc.Raw("output_format") // the name in a beta
	}
	if format == nil {
		return nil, nil
	}
	schema := rawjson.Field(format, "schema")
	if rawjson.Unquote(rawjson.Field(format, "type")) != "json_schema" || len(schema) == 0 || schema[0] != '{' {
		return nil, piece.Unsupported(param, "`{param}` must be of type json_schema, with a schema.")
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
			for _, one := range rawjson.Members(inner) {
				if !isStrict(one, depth+1) {
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
