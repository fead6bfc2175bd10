package chat

import (
	"strings"
	"testing"
)

// TestNamesOfAnAnswer: each form says in its own place which model answered and what the
// answer's id is, whole and in a stream's beginning; what says neither has none.
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
