package errormap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
)

// inside returns the rows for an error body with status 200: as a complete answer, as the first frame
// of a stream, and instead of a stream.
func inside(name, body string, w want) []row {
	whole := fakeprovider.JSON(200, body)
	return []row{
		{name: "200 " + name, want: w, status: 200, whole: &whole, stream: fakeprovider.Events(body, "[DONE]")},
		{name: "200 in place of a stream: " + name, want: w, status: 200, stream: &whole, probe: &whole},
	}
}

// event returns the row of a stream that begins with an event named error.
func event(name, data string, w want) row {
	return row{name: "event error: " + name, want: w, status: 200, stream: &fakeprovider.Reply{
		ContentType: "text/event-stream", Raw: []string{"event: error\ndata: " + data + "\n\n"}}}
}

func withMessage(rows []row, message string) []row {
	for i := range rows {
		rows[i].message = message
	}
	return rows
}

// answerRows returns failures with status 200.
func answerRows(t testing.TB) []row {
	var rows []row
	for _, group := range [][]row{insideRows(t), emptyRows(), filteredRows(), finishRows(), oddRows(), sentenceRows()} {
		rows = append(rows, group...)
	}
	return rows
}

// insideRows returns error objects with status 200.
func insideRows(t testing.TB) []row {
	var rows []row
	for _, s := range readErrors(t, "inside200.txtar") {
		rows = append(rows, withMessage(inside(s.name, s.body, s.want), s.message)...)
	}
	rejected := event("invalid_request_error", `{"error":{"type":"invalid_request_error","message":"x"}}`,
		refused(400, "invalid_request", "invalid_request_error"))
	rejected.message = "x"
	return append(rows, rejected,
		event("overloaded_error", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, busy()),
		event("api_error", `{"type":"error","error":{"type":"api_error","message":"x"}}`, outOfOrder()),
		event("rate_limit_error", `{"error":{"type":"rate_limit_error","message":"x"}}`, busy()),
		event("text", `something broke`, outOfOrder()),
	)
}

// emptyRows returns answers without content.
func emptyRows() []row {
	choices := func(list string) *fakeprovider.Reply {
		r := fakeprovider.JSON(200,
			`{"id":"x","object":"chat.completion","choices":`+list+`,"usage":{"prompt_tokens":10,"completion_tokens":0,"total_tokens":10}}`)
		return &r
	}
	missing := fakeprovider.JSON(200,
		`{"id":"x","object":"chat.completion","usage":{"prompt_tokens":10,"completion_tokens":0,"total_tokens":10}}`)
	usage := fakeprovider.UsageFrame(10, 0)
	const role = `{"role":"assistant","content":""}`
	rows := []row{
		{name: "no choices", whole: choices(`[]`)},
		{name: "choices null", whole: choices(`null`)},
		{name: "choices missing", whole: &missing},
		{name: "message null", whole: choices(`[{"index":0,"message":null,"finish_reason":"stop"}]`)},
		{name: "content empty", whole: fakeprovider.Completion(role, `"stop"`),
			stream: fakeprovider.Events(fakeprovider.RawFrame(role, `null`), fakeprovider.RawFrame(`{}`, `"stop"`), usage, "[DONE]")},
		{name: "content empty, no finish", whole: fakeprovider.Completion(role, `null`)},
		{name: "content null", whole: fakeprovider.Completion(`{"role":"assistant","content":null}`, `"stop"`),
			stream: fakeprovider.Events(fakeprovider.RawFrame(`{"content":null}`, `"stop"`), "[DONE]")},
		{name: "content and calls empty", whole: fakeprovider.Completion(`{"role":"assistant","content":null,"tool_calls":[]}`, `"stop"`),
			stream: fakeprovider.Events(fakeprovider.RawFrame(`{"content":"","tool_calls":[]}`, `"stop"`), "[DONE]")},
		{name: "the gateway's limit exhausted",
			whole: fakeprovider.Completion(`{"role":"assistant","content":"","reasoning_content":"hm"}`, `"length"`),
			ask:   map[string]any{"max_tokens": nil}, model: map[string]any{"default_output_tokens": 500}},
	}
	for i := range rows {
		rows[i].want, rows[i].status = empty(), 200
	}
	return rows
}

// filteredRows returns answers blocked or cut by a filter.
func filteredRows() []row {
	var rows []row
	for _, reason := range []string{"content_filter", "sensitive", "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION",
		"refusal"} {
		quoted := fmt.Sprintf("%q", reason)
		rows = append(rows,
			row{name: "empty, ended by " + reason, want: withheld(), status: 200,
				whole: fakeprovider.Completion(`{"role":"assistant","content":""}`, quoted),
				stream: fakeprovider.Events(fakeprovider.RawFrame(`{"role":"assistant","content":""}`, `null`), fakeprovider.RawFrame(`{}`, quoted),
					"[DONE]")},
			row{name: "partial, ended by " + reason, want: answered(), status: 200,
				whole: fakeprovider.Completion(`{"role":"assistant","content":"half"}`, quoted),
				stream: fakeprovider.Events(fakeprovider.RawFrame(`{"content":"half"}`, `null`), fakeprovider.RawFrame(`{}`, quoted),
					fakeprovider.UsageFrame(10, 5), "[DONE]")})
	}
	sensitive := fakeprovider.JSON(200, `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}],"output_sensitive":true}`)
	return append(rows, row{name: "empty, output_sensitive", want: withheld(), status: 200, whole: &sensitive})
}

// finishRows returns answers whose finish_reason means a failure or an exhausted limit.
func finishRows() []row {
	var rows []row
	for _, reason := range []string{"insufficient_system_resource", "network_error", "error", "MALFORMED_FUNCTION_CALL",
		"MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "LANGUAGE", "NO_IMAGE", "OTHER", "UNEXPECTED_TOOL_CALL"} {
		quoted := fmt.Sprintf("%q", reason)
		rows = append(rows,
			row{name: "empty, finished with " + reason, want: outOfOrder(), status: 200,
				whole: fakeprovider.Completion(`{"role":"assistant","content":""}`, quoted),
				stream: fakeprovider.Events(fakeprovider.RawFrame(`{"role":"assistant","content":""}`, `null`), fakeprovider.RawFrame(`{}`, quoted),
					"[DONE]")},
			row{name: "partial, finished with " + reason, want: outOfOrder(), status: 200,
				whole: fakeprovider.Completion(`{"role":"assistant","content":"half"}`, quoted)})
	}
	thought := fakeprovider.Completion(`{"role":"assistant","content":"","reasoning_content":"hm"}`, `"length"`)
	small := refused(400, "max_tokens_too_small", "invalid_request_error")
	xgroq := `{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":null}],"x_groq":{"id":"y","error":"over capacity"}}`
	return append(rows,
		row{name: "x_groq.error", want: outOfOrder(), status: 200, stream: fakeprovider.Events(xgroq, "[DONE]")},
		row{name: "the client's limit exhausted", want: small, status: 200, whole: thought, param: "max_tokens"},
		row{name: "the client's limit exhausted, new field name", want: small, status: 200, whole: thought, param: "max_completion_tokens",
			ask: map[string]any{"max_tokens": nil, "max_completion_tokens": 50}},
		row{name: "limit exhausted, reasoning streamed", want: answered(), status: 200,
			stream: fakeprovider.Events(fakeprovider.RawFrame(`{"reasoning_content":"hm"}`, `null`), fakeprovider.RawFrame(`{}`, `"length"`),
				fakeprovider.UsageFrame(10, 5), "[DONE]")},
		row{name: "limit exhausted, no content streamed", want: answered(), status: 200,
			stream: fakeprovider.Events(fakeprovider.RawFrame(`{"role":"assistant","content":""}`, `null`), fakeprovider.RawFrame(`{}`, `"length"`),
				fakeprovider.UsageFrame(10, 5), "[DONE]")},
	)
}

// oddRows returns bodies without an answer, and unusual but valid answers.
func oddRows() []row {
	w := outOfOrder()
	answer := fakeprovider.Answer("hi", 10, 5)
	typeless, text, zipped, event := answer, answer, answer, answer
	typeless.ContentType, text.ContentType, event.ContentType = "-", "text/plain", "text/event-stream"
	zipped.Header = map[string]string{"Content-Encoding": "gzip"}
	streamed := fakeprovider.Stream(10, 5, "hi")
	zippedStream := streamed
	zippedStream.Header = zipped.Header
	half := fakeprovider.JSON(200, `{"id":"x","choices":[{"index":0,"message":{"content":"hal`)
	list := fakeprovider.JSON(200, `[{"id":"x"}]`)
	cut := fakeprovider.Reply{Body: half.Body, Length: 4096}
	call := `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f",` +
		`"arguments":"{\"a\":"}}]}`
	return []row{
		both("200 page", fakeprovider.Page(200), w),
		both("200 empty", fakeprovider.JSON(200, ""), w),
		both("200 text", fakeprovider.Reply{ContentType: "text/plain", Body: "OK"}, w),
		both("204", fakeprovider.JSON(204, ""), w).logged(anyStatus),
		{name: "an answer without a content type", want: w, status: 200, whole: &typeless},
		{name: "an answer with content type text", want: w, status: 200, whole: &text},
		{name: "a stream and an answer exchanged", want: w, status: 200, whole: &streamed, stream: &answer},
		{name: "an answer with content type event-stream", want: broken(), status: 200, stream: &event},
		{name: "compressed", want: w, status: 200, whole: &zipped, stream: &zippedStream},
		{name: "truncated JSON", want: w, status: 200, whole: &half},
		{name: "a list", want: w, status: 200, whole: &list},
		{name: "text among the frames", want: w, status: 200, stream: fakeprovider.Events("hello", "[DONE]")},
		{name: "a page among the frames", want: w, status: 200, stream: fakeprovider.Events("<html>no</html>")},
		{name: "truncated frame", want: w, status: 200, stream: fakeprovider.Events(`{"id":"x","choices":[`, "[DONE]")},
		{name: "an answer cut off", want: broken(), status: 200, whole: &cut},
		{name: "an answer reset", want: broken(), status: 200, whole: &fakeprovider.Reply{Body: half.Body, End: fakeprovider.Reset}},
		{name: "call with broken arguments", want: answered(), status: 200, whole: fakeprovider.Completion(call, `"tool_calls"`),
			stream: fakeprovider.Events(fakeprovider.RawFrame(call, `null`), fakeprovider.RawFrame(`{}`, `"tool_calls"`),
				fakeprovider.UsageFrame(10, 5), "[DONE]")},
		{name: "a refusal", want: answered(), status: 200,
			whole: fakeprovider.Completion(`{"role":"assistant","content":null,"refusal":"No."}`, `"stop"`),
			stream: fakeprovider.Events(fakeprovider.RawFrame(`{"refusal":"No."}`, `null`), fakeprovider.RawFrame(`{}`, `"stop"`),
				fakeprovider.UsageFrame(10, 5), "[DONE]")},
	}
}

// sentenceRows returns error sentences as answers, on lines with error_sentences.
func sentenceRows() []row {
	withSentences := map[string]any{"error_sentences": []string{`^\[ERROR\]`, `当前分组上游负载已饱和`, `(?i)^upstream error\b`}}
	var rows []row
	for _, text := range []string{"[ERROR] no channel", "当前分组上游负载已饱和，请稍后再试", "Upstream error: 503"} {
		whole, stream := fakeprovider.Answer(text, 0, 0), fakeprovider.Stream(0, 0, text[:3], text[3:])
		rows = append(rows, row{name: "sentence " + text, want: upstream("upstream_error", fail), status: 200, line: withSentences, whole: &whole,
			stream: &stream})
	}
	lines := fakeprovider.Stream(0, 0, "[ERROR] no channel\n", "and more")
	late := fakeprovider.Stream(10, 5, strings.Repeat("All is well. ", 40), "[ERROR] no channel")
	quoted := fakeprovider.Answer("The log says: [ERROR] no channel", 10, 5)
	plain := fakeprovider.Answer("[ERROR] no channel", 10, 5)
	return append(rows,
		row{name: "sentence before more text", want: upstream("upstream_error", fail), status: 200, line: withSentences, stream: &lines},
		row{name: "sentence after a long text", want: answered(), status: 200, line: withSentences, stream: &late},
		row{name: "sentence inside an answer", want: answered(), status: 200, line: withSentences, whole: &quoted},
		row{name: "sentence on a line without error_sentences", want: answered(), status: 200, whole: &plain})
}

// beginningRows returns streams with a failure before the first token.
func beginningRows() []row {
	ping := func(text string) *fakeprovider.Reply {
		r := &fakeprovider.Reply{ContentType: "text/event-stream", Gap: 50 * time.Millisecond}
		for range 100 {
			r.Raw = append(r.Raw, text)
		}
		return r
	}
	waiting := func(name string, stream *fakeprovider.Reply) row {
		return row{name: name, want: timedOut(), status: 200, line: impatient(), stream: stream}
	}
	role := fakeprovider.Frame(`{"role":"assistant","content":""}`, "")
	ended := func(name string, end fakeprovider.Break, frames ...string) row {
		return row{name: name, want: broken(), status: 200,
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", Events: frames, End: end}}
	}
	return []row{
		{name: "head, no body", want: timedOut(), status: 200, line: impatient(),
			whole:  &fakeprovider.Reply{AfterHead: fakeprovider.Stall},
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", AfterHead: fakeprovider.Stall}},
		{name: "truncated answer, then a stall", want: timedOut(), status: 200, line: impatient(),
			whole: &fakeprovider.Reply{Body: `{"id":"x","choices":[{"ind`, End: fakeprovider.Stall}},
		waiting("comments, no token", ping(": OPENROUTER PROCESSING\n\n")),
		waiting("empty data, no token", ping("data:\n\n")),
		waiting("roles, no token", ping("data: "+role+"\n\n")),
		waiting("truncated event, then a stall",
			&fakeprovider.Reply{ContentType: "text/event-stream", Raw: []string{`data: {"id":`}, End: fakeprovider.Stall}),
		ended("empty stream", fakeprovider.None),
		ended("reset before a token", fakeprovider.Reset, role),
		ended("cut before a token", fakeprovider.Cut, role),
		ended("ended before a token", fakeprovider.None, role),
		// A stream without a finish_reason is cut (interface.md, Errors in a stream).
		ended("done before a token", fakeprovider.None, role, "[DONE]"),
		ended("usage and done, no choices", fakeprovider.None, fakeprovider.UsageFrame(10, 0), "[DONE]"),
		{name: "truncated event, cut", want: broken(), status: 200,
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", Raw: []string{`data: {"id":`}, End: fakeprovider.Cut}},
		{name: "truncated event, ended", want: broken(), status: 200,
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", Raw: []string{`data: {"id":`}}},
		{name: "truncated chunk", want: broken(), status: 200, stream: &fakeprovider.Reply{
			Wire: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n40\r\ndata: {"}},
		{name: "invalid chunk size", want: broken(), status: 200,
			whole: &fakeprovider.Reply{Wire: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"},
			stream: &fakeprovider.Reply{
				Wire: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ndata: {"}},
	}
}
