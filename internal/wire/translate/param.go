package translate

import (
	"cmp"
	"slices"
	"strings"

	"tollgate/internal/wire"
)

// fieldNames are the names of one field in the forms of clients. An empty name means that the client's form
// has the line's name.
type fieldNames struct{ chat, messages, responses, gemini string }

// clientNames maps the top-level fields of all lines' forms to the names in the clients' forms.
var clientNames = func() map[string]fieldNames {
	names := map[string]fieldNames{}
	for fields, name := range map[string]fieldNames{
		"messages input contents": {"messages", "messages", "input", "contents"},
		"system instructions":     {"messages", "system", "instructions", "systemInstruction"},
		"reasoning reasoning_effort thinking output_config": {"reasoning_effort", "output_config.effort", "reasoning.effort",
			"generationConfig.thinkingConfig"},
		"response_format text output_format": {"response_format", "output_config.format", "text.format", "generationConfig.responseSchema"},
		"tool_choice":                        {gemini: "toolConfig"},
		"parallel_tool_calls":                {messages: "tool_choice", gemini: "toolConfig"},
		"stop stop_sequences":                {"stop", "stop_sequences", "", "generationConfig.stopSequences"},
		"top_p":                              {gemini: "generationConfig.topP"},
		"temperature":                        {gemini: "generationConfig.temperature"},
		"seed":                               {gemini: "generationConfig.seed"},
		"max_tokens max_completion_tokens max_output_tokens": {gemini: "generationConfig.maxOutputTokens"},
	} {
		for field := range strings.FieldsSeq(fields) {
			names[field] = name
		}
	}
	return names
}()

// limitFields are the names of the limit on output tokens in the forms of lines.
var limitFields = strings.Fields("max_tokens max_completion_tokens max_output_tokens")

// ClientParam translates param, the name of a field in a provider's error, from the line's form to the
// client's form. It returns param if the name is the same or unknown. params are the parameters of
// the client's request.
func ClientParam(client, line wire.Form, params *wire.Parameters, param string) string {
	if client == line {
		return param
	}
	field := param
	if i := strings.IndexAny(field, ".["); i >= 0 {
		field = field[:i]
	}
	switch {
	case slices.Contains(limitFields, field) && params.LimitParam != "":
		return params.LimitParam
	case param == "text.verbosity" && client == wire.FormChat:
		return "verbosity"
	case field == "tools":
		return toolParam(client, line, param)
	}
	names := clientNames[field]
	return cmp.Or(map[wire.Form]string{wire.FormChat: names.chat, wire.FormMessages: names.messages, wire.FormResponses: names.responses,
		wire.FormGemini: names.gemini}[client], param)
}

// toolParam translates the name of a tool's field. In chat, the members of a tool are inside `function`; in
// messages, `parameters` is called `input_schema`. A Gemini client gets only the path of the tool.
func toolParam(client, line wire.Form, param string) string {
	tool, member, found := strings.Cut(param, ".")
	if line == wire.FormChat {
		member = strings.TrimPrefix(strings.TrimPrefix(member, "function"), ".")
		found = member != ""
	}
	switch {
	case !found || client == wire.FormGemini:
		return tool
	case client == wire.FormChat:
		return tool + ".function." + member
	case client == wire.FormMessages && strings.HasPrefix(member, "parameters"):
		return tool + ".input_schema" + strings.TrimPrefix(member, "parameters")
	}
	return tool + "." + member
}
