package translate

import (
	"fmt"
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
	const foreign = `{"type":"reasoning","summary":[{"type":"summary_text","text":"A."}],"encrypted_content":"tg1.0.gAAA"},`
	second := strings.NewReplacer(`"c"`, `"d"`)
	for input, want := range map[string]string{
		summary("I must look.") + "," + called:    `"reasoning_content":"I must look.",` + calls,
		summary("I must", "look.") + "," + called: `"reasoning_content":"I must\n\nlook.",` + calls,
		own + called:      `"reasoning_content":"Raw.",` + calls,
		unsigned + called: `"reasoning_content":"A.",` + calls,
		// The reasoning is of a responses line that was drained.
		foreign + called: `"reasoning_content":"A.",` + calls,
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

// TestReasoningOfOtherLines expects a blank text in place of reasoning that a host requires and the client has
// not, and no reasoning for a host that rejected it.
func TestReasoningOfOtherLines(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","content":[%s{"type":"tool_use","id":"a","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`
	const blank, given = `"reasoning_content":" "`, `"reasoning_content":"Hm."`
	claude, own := `{"type":"thinking","thinking":"Hm.","signature":"S"},`, `{"type":"thinking","thinking":"Hm.","signature":""},`
	for _, c := range []struct {
		before, after string
		target        wire.Translation
		want          string
	}{
		{claude, "", wire.Translation{Reasoning: true, NeedsReasoning: true}, blank},
		{claude, "", wire.Translation{Reasoning: true}, ""},
		{"", "", wire.Translation{Reasoning: true, NeedsReasoning: true}, blank},
		{"", `,{"role":"assistant","content":"Done."},{"role":"user","content":"x"}`,
			wire.Translation{Reasoning: true, NeedsReasoning: true}, ""},
		{own, "", wire.Translation{Reasoning: true, NeedsReasoning: true}, given},
		{own, "", wire.Translation{Reasoning: true, NoReasoning: true}, ""},
	} {
		r := pairtest.Messages(t, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},`+
			fmt.Sprintf(call, c.before)+c.after+`]}`)
		body, err := pairtest.Body(New(r, wire.FormChat, pairtest.Identity()), c.target)
		if err != nil || !strings.Contains(string(body), c.want) || strings.Contains(string(body), "reasoning") != (c.want != "") {
			t.Errorf("%s %+v: the line got %s, %v; want %q", c.before, c.target, body, err, c.want)
		}
	}
}
