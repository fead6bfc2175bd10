package translate

import (
	"testing"

	"tollgate/internal/wire"
)

// TestClientParam expects the client's name of the field that a line has rejected.
func TestClientParam(t *testing.T) {
	t.Parallel()
	const chat, messages, responses, gemini = wire.FormChat, wire.FormMessages, wire.FormResponses, wire.FormGemini
	for _, c := range []struct {
		client, line wire.Form
		param, want  string
	}{
		{chat, responses, "input[1].content[0]", "messages"},
		{chat, responses, "max_output_tokens", "limit"},
		{chat, responses, "tools[0].parameters.x", "tools[0].function.parameters.x"},
		{chat, responses, "text.verbosity", "verbosity"},
		{chat, responses, "text.format.schema", "response_format"},
		{chat, responses, "top_logprobs", "top_logprobs"},
		{messages, responses, "tools[0].parameters.x", "tools[0].input_schema.x"},
		{messages, responses, "instructions", "system"},
		{messages, chat, "messages[2].content", "messages"},
		{messages, chat, "stop", "stop_sequences"},
		{messages, chat, "tools[1].function.parameters", "tools[1].input_schema"},
		{messages, chat, "reasoning_effort", "output_config.effort"},
		{responses, chat, "messages.[1].content", "input"},
		{responses, chat, "max_tokens", "limit"},
		{responses, chat, "max_completion_tokens", "limit"},
		{responses, chat, "reasoning_effort", "reasoning.effort"},
		{responses, chat, "response_format.json_schema", "text.format"},
		{responses, chat, "tools[0].function.name", "tools[0].name"},
		{responses, chat, "tools[0].function", "tools[0]"},
		{responses, chat, "temperature", "temperature"},
		{gemini, chat, "messages[1]", "contents"},
		{gemini, chat, "top_p", "generationConfig.topP"},
		{gemini, responses, "tools[0].name", "tools[0]"},
		{responses, responses, "input[1]", "input[1]"},
	} {
		if got := ClientParam(c.client, c.line, &wire.Parameters{LimitParam: "limit"}, c.param); got != c.want {
			t.Errorf("%s on %s: got %s for %s, want %s", c.client, c.line, got, c.param, c.want)
		}
	}
}
