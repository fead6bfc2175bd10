package piece

import (
	"fmt"

	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
)

// The functions below read a messages request for the translators to other forms.

// EachSystemText calls add for each text of a system prompt, a string or text blocks.
func EachSystemText(content []byte, at string, add func(text []byte)) error {
	switch {
	case content == nil:
	case rawjson.IsText(content):
		add(content)
	case content[0] == '[':
		for i, b := range rawjson.Elements(content) {
			text := rawjson.Field(b, "text")
			if !rawjson.IsText(text) {
				return Unsupported(fmt.Sprintf("%s[%d]", at, i), "`%s` may hold text blocks only.", at)
			}
			add(text)
		}
	default:
		return Unsupported(at, "`{param}` must be a string or an array of text blocks.")
	}
	return nil
}

// Result returns the parts of a tool_result block.
func (o Blocks) Result(b []byte, at string) ([]Part, error) {
	content := rawjson.Field(b, "content")
	if rawjson.IsText(content) {
		return []Part{{Text: rawjson.Contents(content)}}, nil
	}
	var parts []Part
	for i, inner := range rawjson.Elements(content) {
		more, err := o.Parts(inner, fmt.Sprintf("%s.content[%d]", at, i))
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

// EachTool calls add for each tool with its name and its JSON schema.
func EachTool(r *messages.Request, add func(tool, name, schema []byte)) error {
	for i, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		at := fmt.Sprintf("tools[%d]", i)
		if kind := rawjson.Field(tool, "type"); kind != nil && rawjson.Unquote(kind) != "custom" {
			return Unsupported(at+".type", "`{param}`: this model takes the client's own tools only, of type custom.")
		}
		name, schema := rawjson.Field(tool, "name"), rawjson.Field(tool, "input_schema")
		switch {
		case !rawjson.IsText(name) || len(name) == 2:
			return Unsupported(at+".name", "`{param}` must be a string: name the tool.")
		case len(schema) == 0 || schema[0] != '{':
			return Unsupported(at+".input_schema", "`{param}` must be an object: a JSON schema.")
		}
		add(tool, name, schema)
	}
	return nil
}

// ToolChoice returns the chat form's word for a tool_choice (none, auto, required), or the name of the
// tool.
func ToolChoice(choice []byte) (word string, name []byte, err error) {
	switch kind := rawjson.Unquote(rawjson.Field(choice, "type")); kind {
	case "auto", "none":
		return kind, nil, nil
	case "any":
		return "required", nil, nil
	case "tool":
		name = rawjson.Field(choice, "name")
		if !rawjson.IsText(name) || len(name) == 2 {
			return "", nil, Unsupported("tool_choice.name", "`{param}` must be a string: name the tool.")
		}
		return "", name, nil
	}
	return "", nil, Unsupported("tool_choice.type", "`{param}` must be auto, any, tool or none.")
}

// OutputSchema returns the JSON schema of the answer, or nil.
func OutputSchema(r *messages.Request) ([]byte, error) {
	param, format := "output_config.format", rawjson.Field(r.Doc.Raw("output_config"), "format")
	if format == nil {
		param, format = "output_format", r.Doc.Raw("output_format") // the name in a beta
	}
	if format == nil {
		return nil, nil
	}
	schema := rawjson.Field(format, "schema")
	if rawjson.Unquote(rawjson.Field(format, "type")) != "json_schema" || len(schema) == 0 || schema[0] != '{' {
		return nil, Unsupported(param, "`{param}` must be of type json_schema, with a schema.")
	}
	return schema, nil
}

// BudgetEffort returns the effort for a thinking budget.
func BudgetEffort(thinking []byte) string {
	budget, _ := rawjson.Integer(rawjson.Field(thinking, "budget_tokens"))
	switch {
	case budget < 4<<10:
		return "low"
	case budget < 16<<10:
		return "medium"
	}
	return "high"
}
