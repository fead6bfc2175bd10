package translate

import (
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestFailedEnds expects a failed end to be an error, whole and streamed, on all lines, also after a text or
// a call.
func TestFailedEnds(t *testing.T) {
	t.Parallel()
	for line, reasons := range map[wire.Form][]string{
		wire.FormChat: {"error", "network_error", "insufficient_system_resource", "abort", "MALFORMED_FUNCTION_CALL", "OTHER",
			"ERROR", "engine_error", "TIMEOUT", "canceled", "function_call_filter: MALFORMED_FUNCTION_CALL", "time_limit", "overloaded"},
		wire.FormMessages:  {"error", "network_error", "malformed_tool_use", "timeout"},
		wire.FormResponses: {"failed", "cancelled"},
		wire.FormGemini: {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER",
			"LANGUAGE", "MISSING_THOUGHT_SIGNATURE", "NO_IMAGE", "IMAGE_OTHER", "ABORTED", "DEADLINE_EXCEEDED"},
	} {
		for _, client := range clientForms {
			pair := New(request(t, client, toolRequest(client, "f")), line, pairtest.Identity())
			for _, reason := range reasons {
				for _, o := range []modelOutput{{finish: reason}, {text: "Half", finish: reason}, {thought: "Hm.", finish: reason},
					{text: "Half", tool: "f", arguments: []string{`{"a":1}`}, finish: reason}} {
					whole, err := pair.Read([]byte(o.whole(line)))
					if err != nil || whole.Summary().Err == nil {
						t.Errorf("%s on %s, %s: got %+v, %v, want an error", client, line, o.whole(line), whole, err)
					}
					meter, writer := pair.Events()
					stream := string(pairtest.Flow([]byte(o.stream(line)), writer, meter, wire.Usage{}))
					if !strings.Contains(stream, "The provider failed.") || strings.Contains(stream, `"finish_reason":"`) ||
						strings.Contains(stream, "message_stop") || strings.Contains(stream, "response.completed") ||
						strings.Contains(stream, "response.incomplete") {
						t.Errorf("%s on %s, %s: got the stream %s, want an error at its end", client, line, o.whole(line), stream)
					}
				}
			}
		}
	}
}

// TestEndWords expects the words of vendors for a filtered, a limited and an ordinary end to be the same for all
// clients.
func TestEndWords(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"content_filter: PROHIBITED_CONTENT": "filter", "guardrail_intervened": "filter", "content_filtered": "filter", "MODEL_ARMOR": "filter",
		"MAX_TOKENS": "limit", "token_limit": "limit", "max_output_tokens": "limit", "model_context_window_exceeded": "limit",
		"eos": "stop", "STOP_SEQUENCE": "stop", "COMPLETE": "stop", "normal": "stop",
	} {
		for _, client := range clientForms[1:] {
			pair := New(request(t, client, toolRequest(client, "f")), wire.FormChat, pairtest.Identity())
			whole, _ := answers(t, pair, wire.FormChat, modelOutput{text: "Ha", finish: reason})
			if got, err := wiretest.ReadAnswer(string(client), []byte(whole), true); err != nil || got.End != want {
				t.Errorf("%s, %s: got %+v, %v, want the end %s", client, reason, got, err, want)
			}
		}
	}
}

// TestFailedResponses expects an error for each way in which a response says that it failed.
func TestFailedResponses(t *testing.T) {
	t.Parallel()
	const output = `"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Half"}]}]`
	for event, response := range map[string]string{
		"failed":     `{"status":"in_progress",` + output + `}`,
		"completed":  `{"status":"completed","error":{"code":"server_error","message":"x"},` + output + `}`,
		"incomplete": `{"status":"incomplete","incomplete_details":{"reason":"server_error"},` + output + `}`,
	} {
		pair := New(request(t, wire.FormChat, toolRequest(wire.FormChat, "f")), wire.FormResponses, pairtest.Identity())
		meter, writer := pair.Events()
		stream := string(pairtest.Flow([]byte(`data: {"type":"response.`+event+`","response":`+response+"}\n\n"), writer, meter, wire.Usage{}))
		if !strings.Contains(stream, "The provider failed.") {
			t.Errorf("%s: got %s, want an error", response, stream)
		}
		if whole, err := pair.Read([]byte(response)); event != "failed" && (err != nil || whole.Summary().Err == nil) {
			t.Errorf("%s: got %+v, %v, want an error", response, whole, err)
		}
	}
}
