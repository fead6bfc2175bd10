package errormap

import (
	"fmt"

	"tollgate/internal/gatewaytest/fakeprovider"
)

// anthropic and gemini return the members of a line of these providers, with the members of more.
func anthropic(more map[string]any) map[string]any { return withProvider("anthropic", more) }
func gemini(more map[string]any) map[string]any    { return withProvider("gemini", more) }

func withProvider(provider string, more map[string]any) map[string]any {
	line := map[string]any{"provider": provider}
	for k, v := range more {
		line[k] = v
	}
	return line
}

// native returns a stream of events in the messages form.
func native(raw ...string) *fakeprovider.Reply {
	return &fakeprovider.Reply{ContentType: "text/event-stream", Raw: raw}
}

// candidate returns an answer of Gemini, complete and as a stream.
func candidate(finish string, parts ...string) (whole, stream *fakeprovider.Reply) {
	event := fakeprovider.GeminiEvent(finish, 10, 5, parts...)
	r := fakeprovider.JSON(200, event)
	return &r, fakeprovider.Events(event)
}

// foreignRows returns chat completions on lines of other forms.
func foreignRows() []row {
	small := refused(400, "max_tokens_too_small", "invalid_request_error")
	thought := fakeprovider.JSON(200,
		`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[{"type":"thinking","thinking":"hm",`+
			`"signature":"s"}],`+
			`"stop_reason":"max_tokens","usage":{"input_tokens":10,"output_tokens":50}}`)
	rows := []row{
		{name: "Anthropic: empty, refused", want: withheld(), whole: stoppedBy("refusal"),
			stream: native(append(messageBegin(10), messageEnd("refusal", 1)...)...)},
		{name: "Anthropic: empty", want: empty(), whole: stoppedBy("end_turn"),
			stream: native(append(messageBegin(10), messageEnd("end_turn", 1)...)...)},
		{name: "Anthropic: partial, refused", want: answered(),
			stream: native(append(append(messageBegin(10), fakeprovider.NativeText("half")), messageEnd("refusal", 5)...)...)},
		{name: "Anthropic: only thinking", want: small, param: "max_tokens", whole: &thought},
		{name: "Anthropic: ended before a token", want: broken(), stream: native(messageBegin(10)...)},
		{name: "Anthropic: pings, no token", want: timedOut(), line: impatient(),
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", Raw: messageBegin(10), End: fakeprovider.Stall}},
	}
	for _, tt := range []struct {
		kind string
		want want
	}{
		{"overloaded_error", busy()}, {"rate_limit_error", busy()}, {"api_error", outOfOrder()}, {"timeout_error", timedOut()},
		{"authentication_error", unavailable(cred)}, {"not_found_error", unavailable(pair)},
	} {
		whole := fakeprovider.NativeError(200, tt.kind, "x")
		rows = append(rows, row{name: "Anthropic: " + tt.kind, want: tt.want, whole: &whole,
			stream: native(append(messageBegin(10), fakeprovider.NativeFailure(tt.kind, "x"))...)})
	}
	for i := range rows {
		rows[i].status, rows[i].line = 200, anthropic(rows[i].line)
	}
	return append(rows, geminiRows()...)
}

// geminiRows returns the rows of foreignRows for Gemini.
func geminiRows() []row {
	var rows []row
	for _, reason := range []string{"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT"} {
		whole := fakeprovider.GeminiBlocked(reason, 10)
		rows = append(rows, row{name: "prompt blocked for " + reason, want: stopped(), whole: &whole, stream: fakeprovider.Events(whole.Body)})
	}
	finished := func(reason string, w want, parts ...string) row {
		whole, stream := candidate(reason, parts...)
		return row{name: fmt.Sprintf("%d parts, %s", len(parts), reason), want: w, whole: whole, stream: stream}
	}
	for _, reason := range []string{"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"} {
		rows = append(rows, finished(reason, withheld()), finished(reason, answered(), fakeprovider.GeminiText("half")))
	}
	for _, reason := range []string{"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "OTHER"} {
		rows = append(rows, finished(reason, outOfOrder()))
	}
	used := finished("MAX_TOKENS", refused(400, "max_tokens_too_small", "invalid_request_error"), fakeprovider.GeminiThought("hm"))
	used.stream, used.param = nil, "max_tokens"
	missing, none := fakeprovider.JSON(200, `{"usageMetadata":{"promptTokenCount":10}}`),
		fakeprovider.JSON(200, `{"candidates":[],"promptFeedback":{"safetyRatings":[]}}`)
	rows = append(rows,
		row{name: "candidates missing", want: empty(), whole: &missing},
		row{name: "no candidates", want: empty(), whole: &none})
	limited := fakeprovider.GeminiErrorObject(429, "RESOURCE_EXHAUSTED", "x", fakeprovider.GeminiRetry("30s"))
	whole := fakeprovider.JSON(200, limited)
	rows = append(rows, used, finished("STOP", empty()),
		row{name: "error inside", want: busy(), whole: &whole, stream: fakeprovider.Events(limited)})
	for i := range rows {
		rows[i].name, rows[i].status, rows[i].line = "Gemini: "+rows[i].name, 200, gemini(rows[i].line)
	}
	for _, tt := range []struct {
		status  int
		name    string
		details []string
		want    want
	}{
		{429, "RESOURCE_EXHAUSTED", []string{fakeprovider.GeminiRetry("30s")}, busy()},
		{503, "UNAVAILABLE", nil, outOfOrder()},
		{504, "DEADLINE_EXCEEDED", nil, timedOut()},
		{404, "NOT_FOUND", nil, unavailable(pair)},
		{403, "PERMISSION_DENIED", nil, unavailable(cred)},
		{400, "FAILED_PRECONDITION", nil, unavailable(cred)},
		{400, "INVALID_ARGUMENT", []string{fakeprovider.GeminiReason("API_KEY_INVALID")}, unavailable(cred)},
		{400, "INVALID_ARGUMENT", nil, refused(400, "400", "invalid_request_error")},
	} {
		r := both(fmt.Sprintf("Gemini: %d %s %d details", tt.status, tt.name, len(tt.details)),
			fakeprovider.GeminiError(tt.status, tt.name, "x", tt.details...), tt.want)
		r.line = gemini(nil)
		rows = append(rows, r)
	}
	return rows
}

// foreignBrokenRows returns streams of other forms with a failure after the first byte.
func foreignBrokenRows() []row {
	after := func(code string) want { return want{code: code, kind: "upstream_error", health: broke} }
	var rows []row
	for _, r := range nativeBrokenRows() {
		r.name, r.line = "Anthropic: "+r.name, anthropic(r.line)
		rows = append(rows, r)
	}
	first := "data: " + fakeprovider.GeminiEvent("", 700, 6, fakeprovider.GeminiText("Once upon a time, ")) + "\n\n"
	for _, tt := range []struct {
		name string
		want want
		rest string
		end  fakeprovider.Break
	}{
		{"reset", after("upstream_connection_error"), "", fakeprovider.Reset},
		{"ended without a finish", after("upstream_connection_error"), "", fakeprovider.None},
		{"idle", after("upstream_timeout"), "", fakeprovider.Stall},
		{"rate limit", after("upstream_busy"), "data: " + fakeprovider.GeminiErrorObject(429, "RESOURCE_EXHAUSTED", "x") + "\n\n",
			fakeprovider.None},
		{"internal", after("upstream_unavailable"), "data: " + fakeprovider.GeminiErrorObject(500, "INTERNAL", "x") + "\n\n", fakeprovider.None},
	} {
		line := gemini(nil)
		if tt.end == fakeprovider.Stall { // the other replies may take longer on a slow machine
			line = gemini(impatientlyIdle())
		}
		rows = append(rows, row{name: "Gemini: " + tt.name, want: tt.want, text: "Once upon a time, ", pieces: 1, prompt: 700, completion: 6,
			line:   line,
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", Raw: []string{first, tt.rest}, End: tt.end}})
	}
	return rows
}
