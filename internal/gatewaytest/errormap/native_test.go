package errormap

import (
	"fmt"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// stoppedBy returns a whole answer of the messages form without content.
func stoppedBy(reason string) *fakeprovider.Reply {
	r := fakeprovider.JSON(200, fmt.Sprintf(`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[],`+
		`"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}`, reason))
	return &r
}

// messageBegin returns the first events of a stream in the messages form.
func messageBegin(input int) []string {
	return []string{
		fakeprovider.NativeStart(input),
		fakeprovider.NativeEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`),
		fakeprovider.NativePing(),
	}
}

// messageEnd returns the last events of a stream in the messages form.
func messageEnd(reason string, output int) []string {
	return []string{
		fakeprovider.NativeEvent("content_block_stop", `"index":0`),
		fakeprovider.NativeEnd(reason, output),
		fakeprovider.NativeStop(),
	}
}

// nativeForm returns the messages form of /native.
func nativeForm() form {
	return form{
		name: "messages", in: scene.Messages, provider: "anthropic", native: true,
		good: "messages",
		kind: func(w want) string {
			switch {
			case w.status >= 500, w.kind == "upstream_error":
				return "api_error"
			case w.kind == "request_too_large":
				return w.kind
			}
			return "invalid_request_error"
		},
	}
}

// nativeRows returns the rows of statusRows, each with one kind of request, and rows of the
// messages form.
func nativeRows(t testing.TB) []row {
	var rows []row
	for i, r := range statusRows(t) {
		if r.ask != nil { // fields of the chat form
			continue
		}
		if r.name == "400 context too long" { // words that Claude Code knows
			r.message = "prompt is too long: " + r.message
		}
		if r.provider == nil {
			if i%2 == 0 {
				r.stream = nil
			} else {
				r.probe, r.whole = r.whole, nil
			}
		}
		rows = append(rows, r)
	}
	reported := func(kind string, w want) row {
		whole := fakeprovider.NativeError(200, kind, "x")
		return row{name: "200 " + kind, want: w, status: 200, whole: &whole,
			stream: native(append(messageBegin(10), fakeprovider.NativeFailure(kind, "x"))...)}
	}
	rejected := reported("invalid_request_error", refused(400, "invalid_request", "invalid_request_error"))
	rejected.message = "x"
	nothing := fakeprovider.JSON(200,
		`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[],`+
			`"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":0}}`)
	return append(rows, rejected,
		reported("overloaded_error", busy()),
		reported("rate_limit_error", busy()),
		reported("api_error", outOfOrder()),
		reported("timeout_error", timedOut()),
		reported("authentication_error", unavailable(cred)),
		reported("not_found_error", unavailable(pair)),
		row{name: "neither content nor an end", want: empty(), status: 200, whole: &nothing},
		// /native returns an answer with a stop_reason unchanged.
		row{name: "no content, but an end", want: answered(), status: 200, whole: stoppedBy("end_turn"),
			stream: native(append(messageBegin(10), messageEnd("end_turn", 1)...)...)},
		row{name: "no content, refused", want: answered(), status: 200, whole: stoppedBy("refusal"),
			stream: native(append(messageBegin(10), messageEnd("refusal", 1)...)...)},
		row{name: "pings, no token", want: timedOut(), status: 200, line: impatient(),
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", Raw: messageBegin(10), End: fakeprovider.Stall}},
		row{name: "reset before a token", want: broken(), status: 200,
			stream: &fakeprovider.Reply{ContentType: "text/event-stream", Raw: messageBegin(10), End: fakeprovider.Reset}},
		row{name: "ended before a token", want: broken(), status: 200, stream: native(messageBegin(10)...)},
	)
}

// nativeBrokenRows returns streams of the messages form with a failure after the first byte, and some
// complete streams.
func nativeBrokenRows() []row {
	breaking := func(name string, w want, end fakeprovider.Break, rest ...string) row {
		raw := append(messageBegin(700), fakeprovider.NativeText("Once upon a time, "))
		r := row{name: name, want: w, text: "Once upon a time, ", pieces: len(raw), prompt: 700}
		if len(rest) == 0 {
			rest = []string{""}
		}
		r.stream = &fakeprovider.Reply{ContentType: "text/event-stream", Raw: append(raw, rest...), End: end}
		return r
	}
	after := func(code string) want { return want{code: code, kind: "upstream_error", health: broke} }
	failure := func(kind string) string { return fakeprovider.NativeFailure(kind, "x") }
	rejected := breaking("invalid_request_error", want{code: "invalid_request", kind: "invalid_request_error", health: good},
		fakeprovider.None, failure("invalid_request_error"))
	rejected.message = "x"
	whole := breaking("finished, then reset", answered(), fakeprovider.Reset, append(messageEnd("end_turn", 30)[:2], "")...)
	whole.completion = 30
	return []row{rejected, whole,
		breaking("reset", after("upstream_connection_error"), fakeprovider.Reset),
		breaking("cut", after("upstream_connection_error"), fakeprovider.Cut),
		breaking("ended", after("upstream_connection_error"), fakeprovider.None),
		// message_stop alone completes a stream (interface.md, Errors in a stream).
		breaking("stop without a reason", answered(), fakeprovider.None, fakeprovider.NativeStop()),
		breaking("idle", after("upstream_timeout"), fakeprovider.Stall).with(impatientlyIdle()),
		breaking("text among the events", after("upstream_unavailable"), fakeprovider.None, "data: oops\n\n"),
		breaking("overloaded_error", after("upstream_busy"), fakeprovider.None, failure("overloaded_error")),
		breaking("rate_limit_error", after("upstream_busy"), fakeprovider.None, failure("rate_limit_error")),
		breaking("api_error", after("upstream_unavailable"), fakeprovider.None, failure("api_error")),
		breaking("timeout_error", after("upstream_timeout"), fakeprovider.None, failure("timeout_error")),
	}
}
