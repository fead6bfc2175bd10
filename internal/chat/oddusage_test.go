package chat

import (
	"encoding/json"
	"fmt"
	"testing"

	"tollgate/internal/wire"
)

// oddUsage is a usage object of a form whose counts have odd values.
func oddUsage(on wire.Form, prompt, completion string) string {
	switch on {
	case wire.FormResponses, wire.FormMessages:
		return fmt.Sprintf(`{"input_tokens":%s,"output_tokens":%s,"input_tokens_details":%[1]s,"cache_creation":%[1]s,`+
			`"server_tool_use":%[1]s,"iterations":%[2]s}`, prompt, completion)
	case wire.FormGemini:
		return fmt.Sprintf(`{"promptTokenCount":%s,"candidatesTokenCount":%s,"promptTokensDetails":%[1]s,"thoughtsTokenCount":null}`,
			prompt, completion)
	}
	return fmt.Sprintf(`{"prompt_tokens":%s,"completion_tokens":%s,"prompt_tokens_details":%[1]s,"plugins":%[1]s,"cost":%[1]s}`,
		prompt, completion)
}

// oddWhole is an answer in one piece with an odd usage object.
func oddWhole(t *testing.T, on wire.Form, usage string) string {
	t.Helper()
	var answer map[string]json.RawMessage
	if err := json.Unmarshal([]byte(goodWhole(on)), &answer); err != nil {
		t.Fatal(err)
	}
	name := "usage"
	if on == wire.FormGemini {
		name = "usageMetadata"
	}
	answer[name] = json.RawMessage(usage)
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestOddUsage checks that the gateway counts tokens itself if a provider's counts are not numbers,
// and that no number makes an answer free or breaks the settlement.
func TestOddUsage(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`"100"`, `""`, `null`, `true`, `{"a":1}`, `[1]`, `{}`, `[[[[[[7]]]]]]`,
		`-1`, `-1e300`, `{"total":{"a":[1e9]}}`} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			eachPair(t, func(t *testing.T, client, on wire.Form) {
				usage := oddUsage(on, value, value)
				for _, end := range []string{isWhole, breaksOff, isLeft} {
					e := playReporting(t, client, on, usage, usage, end)
					got := e.end().Tokens
					if got.Prompt != 8 || got.Completion != 3 || got.Cached != 0 || e.end().Cost <= 0 {
						t.Errorf("%s: %+v, cost %s", end, got, e.end().Cost)
					}
				}
				tr := newTrial(t, reply{pieces: []string{oddWhole(t, on, usage)}})
				if out := tr.send(formCall(t, client, on, false)); out.err != nil || tr.end().Tokens.Prompt != 8 || tr.end().Cost <= 0 {
					t.Errorf("in one piece: %+v, %+v", out, tr.end())
				}
			})
		})
	}
	for _, value := range []string{`1e999`, `99999999999999999999999`, `9223372036854775808`, `1.8e308`} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			eachPair(t, func(t *testing.T, client, on wire.Form) {
				usage := oddUsage(on, value, value)
				e := playReporting(t, client, on, usage, usage, isWhole)
				if got := e.end().Tokens; got.Prompt <= 0 || got.Completion <= 0 || e.end().Cost <= 0 {
					t.Errorf("%+v, cost %s", got, e.end().Cost)
				}
				tr := newTrial(t, reply{pieces: []string{oddWhole(t, on, usage)}})
				if out := tr.send(formCall(t, client, on, false)); out.err != nil || tr.end().Cost <= 0 {
					t.Errorf("in one piece: %+v, %+v", out, tr.end())
				}
			})
		})
	}
}
