package translate

import (
	"cmp"
	"strings"

	"tollgate/internal/wire"
)

// ClientParam translates param, the name of a field in a provider's error, from the line's form to the
// client's form. It returns param if the name is the same or unknown. params are the parameters of
// the client's request.
func ClientParam(client, line wire.Form, params *wire.Parameters, param string) string {
	if client == wire.FormGemini && line != client {
		return geminiParam(params, param)
	}
	if line != wire.FormResponses || client == line {
		return param
	}
	isChat := client == wire.FormChat
	either := func(chat, messages string) string {
		if isChat {
			return chat
		}
		return messages
	}
	field := param
	if i := strings.IndexAny(field, ".["); i >= 0 {
		field = field[:i]
	}
	switch {
	case field == "input":
		return "messages"
	case field == "max_output_tokens" && params.LimitParam != "":
		return params.LimitParam
	case field == "reasoning":
		return either("reasoning_effort", "output_config.effort")
	case strings.HasPrefix(param, "text.format"):
		return either("response_format", "output_config.format")
	case param == "text.verbosity" && isChat:
		return "verbosity"
	case field == "tools":
		tool, member, found := strings.Cut(param, ".")
		switch {
		case found && isChat:
			return tool + ".function." + member
		case found && strings.HasPrefix(member, "parameters"):
			return tool + ".input_schema" + strings.TrimPrefix(member, "parameters")
		}
	}
	return param
}

// geminiParam translates the name of a field of any line's form to the Gemini form.
func geminiParam(params *wire.Parameters, param string) string {
	field := param
	if i := strings.IndexAny(field, ".["); i >= 0 {
		field = field[:i]
	}
	switch field {
	case "messages", "input":
		return "contents"
	case "system", "instructions":
		return "systemInstruction"
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		return cmp.Or(params.LimitParam, "generationConfig.maxOutputTokens")
	case "reasoning", "reasoning_effort", "thinking", "output_config":
		return "generationConfig.thinkingConfig"
	case "response_format", "text", "output_format":
		return "generationConfig.responseSchema"
	case "tool_choice", "parallel_tool_calls":
		return "toolConfig"
	case "stop", "stop_sequences":
		return "generationConfig.stopSequences"
	case "top_p":
		return "generationConfig.topP"
	case "temperature", "seed":
		return "generationConfig." + field
	}
	return param
}
