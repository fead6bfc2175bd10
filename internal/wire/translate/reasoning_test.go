package translate

import (
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestReasoningOfChatLinesReturns expects a chat line to get its reasoning before a call back, because
// DeepSeek and Kimi refuse a history without it.
func TestReasoningOfChatLinesReturns(t *testing.T) {
	t.Parallel()
	const call = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`
	const result = `{"type":"function_call_output","call_id":"c","output":"r"}`
	const calls = `"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]`
	summary := func(texts ...string) string {
		parts := strings.Join(texts, `"},{"type":"summary_text","text":"`)
		return `{"type":"reasoning","summary":[{"type":"summary_text","text":"` + parts + `"}]}`
	}
	const called = call + "," + result
	const own = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"","content":[{"type":"reasoning_text","text":"Raw."}]},`
	const unsigned = `{"type":"reasoning","summary":[{"type":"summary_text","text":"A."}],"encrypted_content":null},`
	second := strings.NewReplacer(`"c"`, `"d"`)
	for input, want := range map[string]string{
		summary("I must look.") + "," + called:    `"reasoning_content":"I must look.",` + calls,
		summary("I must", "look.") + "," + called: `"reasoning_content":"I must\n\nlook.",` + calls,
		own + called:      `"reasoning_content":"Raw.",` + calls,
		unsigned + called: `"reasoning_content":"A.",` + calls,
		// The model speaks before it calls.
		summary("A.") + `,{"role":"assistant","content":"Wait."},` + called: `"content":"Wait.","reasoning_content":"A.",` + calls,
		// Each turn of a loop has its own reasoning.
		summary("A.") + "," + called + "," + summary("B.") + "," + second.Replace(called): `"reasoning_content":"B.",` + second.Replace(calls),
	} {
		r := pairtest.Responses(t, `{"model":"m","input":[{"role":"user","content":"x"},`+input+`],"tools":[{"type":"function","name":"f"}]}`)
		body, err := pairtest.Body(New(r, wire.FormChat, pairtest.Identity()), wire.Translation{Edits: wire.Edits{Model: "v"}, Reasoning: true})
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: the line got %s, %v; want %s", input, body, err, want)
		}
	}
}
