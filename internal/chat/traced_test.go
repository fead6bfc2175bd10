package chat

import (
	"maps"
	"strings"
	"testing"

	"tollgate/internal/wire"
)

// TestNamesOfAnAnswer checks the model and id of whole answers and first events in each form, and of
// answers without a model or id.
func TestNamesOfAnAnswer(t *testing.T) {
	t.Parallel()
	for data, want := range map[string][2]string{
		`{"id":"chatcmpl-1","object":"chat.completion","model":"m-1","choices":[{"message":{"model":"x","id":"y"}}]}`: {"m-1", "chatcmpl-1"},
		`{"id":"msg_1","type":"message","role":"assistant","model":"m-2","content":[]}`:                               {"m-2", "msg_1"},
		` {"type":"message_start","message":{"id":"msg_1","model":"m-2","content":[]}}`:                               {"m-2", "msg_1"},
		`{"id":"resp_1","object":"response","model":"m-3","output":[]}`:                                               {"m-3", "resp_1"},
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m-3"}}`:                    {"m-3", "resp_1"},
		`{"candidates":[],"modelVersion":"m-4","responseId":"r-1"}`:                                                   {"m-4", "r-1"},
		`{"id":null,"model":7}`:            {},
		`{"model":"m\u002d5","id":""}`:     {"m-5", ""},
		`{"message":"m","response":["r"]}`: {},
		`[DONE]`:                           {},
		``:                                 {},
		`["model","id"]`:                   {},
		`{"type":"ping"}`:                  {},
		`{"model":"` + strings.Repeat("m", maxTracedName+1) + `","id":"i"}`: {"", "i"},
	} {
		if model, id := namesOf([]byte(data)); [2]string{model, id} != want {
			t.Errorf("%.100s: %q, %q; want %q", data, model, id, want)
		}
	}
}

// TestFinishesOfAnAnswer checks the finish reasons of whole answers and events in each form, and of
// answers without a reason.
func TestFinishesOfAnAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form wire.Form
		data string
		want map[int]string
	}{
		{wire.FormChat, `{"choices":[{"index":0,"message":{},"finish_reason":"stop"},{"index":1,"finish_reason":"length"}]}`,
			map[int]string{0: "stop", 1: "length"}},
		{wire.FormChat, ` {"choices":[{"index":3,"delta":{},"finish_reason":"tool_calls"}]}`, map[int]string{3: "tool_calls"}},
		{wire.FormChat, `{"choices":[{"finish_reason":"stop"},{"finish_reason":null},{"index":"x","finish_reason":7}]}`,
			map[int]string{0: "stop", 1: "", 2: ""}},
		{wire.FormChat, `{"choices":[],"status":"completed","stop_reason":"end_turn"}`, map[int]string{}},
		{wire.FormChat, `{"choices":[{"finish_reason":"` + strings.Repeat("s", maxTracedName+1) + `"}]}`, map[int]string{0: ""}},
		{wire.FormMessages, `{"type":"message","content":[],"stop_reason":"end_turn","stop_sequence":null}`, map[int]string{0: "end_turn"}},
		{wire.FormMessages, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{}}`, map[int]string{0: "max_tokens"}},
		{wire.FormResponses, `{"object":"response","status":"completed","incomplete_details":null,"output":[]}`, map[int]string{0: "completed"}},
		{wire.FormResponses, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_tool_calls"}}}`,
			map[int]string{0: "max_tool_calls"}},
		{wire.FormResponses, `{"type":"response.completed","response":{"status":"completed"}}`, map[int]string{0: "completed"}},
		{wire.FormGemini, `{"candidates":[{"content":{},"finishReason":"MAX_TOKENS"},{"index":1,"finishReason":"STOP"}]}`,
			map[int]string{0: "MAX_TOKENS", 1: "STOP"}},
		{wire.FormInteractions, `{"status":"requires_action","steps":[]}`, map[int]string{0: "requires_action"}},
		{wire.FormInteractions, `{"interaction":{"status":"incomplete"},"event_type":"interaction.completed"}`, map[int]string{0: "incomplete"}},
		{wire.FormChat, `[DONE]`, map[int]string{0: ""}},
		{wire.FormMessages, ``, map[int]string{0: ""}},
		{wire.FormResponses, `{"status":["completed"]}`, map[int]string{0: ""}},
	} {
		if got := maps.Collect(finishesOf(c.form, []byte(c.data))); !maps.Equal(got, c.want) {
			t.Errorf("%s %.120s: %v, want %v", c.form, c.data, got, c.want)
		}
	}
}
