package errormap

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// streamStart returns the first events of broken streams: a role and some text.
func streamStart() []string {
	return []string{
		"data: " + fakeprovider.Frame(`{"role":"assistant","content":""}`, "") + "\n\n",
		"data: " + fakeprovider.Text("Once upon a time, ") + "\n\n",
	}
}

// breaking returns the row of a stream that continues with rest and end after the client has
// received text.
func breaking(name string, w want, end fakeprovider.Break, rest ...string) row {
	r := row{name: name, want: w, text: "Once upon a time, ", pieces: len(streamStart())}
	if len(rest) == 0 {
		rest = []string{""} // the end also waits until the client has received text
	}
	r.stream = &fakeprovider.Reply{ContentType: "text/event-stream", Raw: append(streamStart(), rest...), End: end}
	return r
}

// reporting returns the row of a stream with an error in a frame after some text.
func reporting(name, data string, w want) row {
	return breaking(name, w, fakeprovider.None, "data: "+data+"\n\n")
}

// withUsage returns the row with usage from the provider before the failure.
func (r row) withUsage(prompt, completion int64) row {
	r.prompt, r.completion = prompt, completion
	frame := "data: " + fakeprovider.UsageFrame(int(prompt), int(completion)) + "\n\n"
	reply := *r.stream
	reply.Raw = append([]string{reply.Raw[0], frame}, reply.Raw[1:]...)
	r.stream, r.pieces = &reply, r.pieces+1
	return r
}

// brokenRows returns streams with a failure after the first byte. Such a stream counts as a failure
// of the line, unless the client is at fault.
func brokenRows() []row {
	after := func(code string) want { return want{code: code, kind: "upstream_error", health: broke} }
	const invalid = "invalid_request_error"
	var (
		unavailable = after("upstream_unavailable")
		connection  = after("upstream_connection_error")
		timeout     = after("upstream_timeout")
		busy        = after("upstream_busy")
		rejected    = want{code: "invalid_request", kind: invalid, health: good}
	)
	more := "data: " + fakeprovider.Text("there was") + "\n\n"
	failure := func(code string) string { return `{"error":` + fakeprovider.ErrorObject(code, "", "x") + `}` }
	numbered := func(code int) string { return fmt.Sprintf(`{"error":{"code":%d,"message":"x"}}`, code) }
	rows := []row{
		breaking("idle", timeout, fakeprovider.Stall).with(impatientlyIdle()),
		breaking("idle within an event", timeout, fakeprovider.Stall, `data: {"id":`).with(impatientlyIdle()),
		breaking("idle, usage known", timeout, fakeprovider.Stall).with(impatientlyIdle()).withUsage(700, 30),
		breaking("reset", connection, fakeprovider.Reset),
		breaking("cut", connection, fakeprovider.Cut),
		breaking("reset, usage known", connection, fakeprovider.Reset).withUsage(700, 30),
		breaking("cut within an event", connection, fakeprovider.Cut, `data: {"id":"x","choi`),
		breaking("end without a finish", connection, fakeprovider.None),
		breaking("done without a finish", connection, fakeprovider.None, "data: [DONE]\n\n"),
		breaking("end within an event", connection, fakeprovider.None, `data: {"id":"x","choi`),
		breaking("text among the frames", unavailable, fakeprovider.None, "data: oops\n\n"),
		breaking("truncated frame", unavailable, fakeprovider.None, "data: {\"id\":\n\n"),
		breaking("a page among the frames", unavailable, fakeprovider.None, "data: <html>no</html>\n\n"),
		reporting("server_error", failure("server_error"), unavailable),
		reporting("server_error, usage known", failure("server_error"), unavailable).withUsage(700, 30),
		reporting("api_error", failure("api_error"), unavailable),
		reporting("overloaded_error", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, busy),
		reporting("rate_limit_error", failure("rate_limit_error"), busy),
		reporting("timeout_error", failure("timeout_error"), timeout),
		reporting("authentication_error", failure("authentication_error"), unavailable),
		reporting("credential in it", `{"error":{"type":"server_error","message":"at `+scene.Credential+`"}}`, unavailable),
		reporting("not_found_error", failure("not_found_error"), unavailable),
		reporting("OpenRouter 429", numbered(429), busy),
		reporting("OpenRouter 502", numbered(502), unavailable),
		reporting("OpenRouter 524", numbered(524), timeout),
		reporting("MiniMax 1002", `{"choices":[],"base_resp":{"status_code":1002,"status_msg":"x"}}`, busy),
		reporting("code and message", `{"code":"InternalError","message":"x"}`, unavailable),
		reporting("x_groq.error", `{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":null}],"x_groq":{"error":"x"}}`, unavailable),
		reporting("finish network_error", fakeprovider.RawFrame(`{}`, `"network_error"`), unavailable),
		reporting("finish insufficient_system_resource", fakeprovider.RawFrame(`{}`, `"insufficient_system_resource"`), unavailable),
		breaking("event overloaded_error", busy, fakeprovider.None,
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n"),
		breaking("event api_error", unavailable, fakeprovider.None,
			"event: error\ndata: {\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}\n\n"),
		breaking("event text", unavailable, fakeprovider.None, "event: error\ndata: broken\n\n"),
		reporting("DashScope data_inspection_failed", `{"error":{"code":"data_inspection_failed","message":"x"}}`,
			want{code: "upstream_prompt_filter", kind: "upstream_error", health: good}),
	}
	reject := reporting("invalid_request_error", failure(invalid), rejected)
	reject.message = "x"
	event := breaking("event invalid_request_error", rejected, fakeprovider.None,
		"event: error\ndata: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"x\"}}\n\n")
	event.message = "x"
	longer := breaking("reset after more text", connection, fakeprovider.Reset, more, ": ping\n\n", more, "")
	longer.text = "" // the delivered length varies
	return append(rows, reject, event, longer)
}

// impatientlyIdle returns a short idle timeout with time for the first token.
func impatientlyIdle() map[string]any {
	return map[string]any{"timeouts": map[string]any{"first_token": "30s", "idle": "300ms", "total": "30s"}}
}

// wholeRows returns complete streams with an unusual end.
func wholeRows() []row {
	finish := "data: " + fakeprovider.Frame(`{}`, "stop") + "\n\n"
	usage := "data: " + fakeprovider.UsageFrame(700, 30) + "\n\n"
	rows := []row{
		breaking("finished, then reset", answered(), fakeprovider.Reset, usage, finish, ""),
		breaking("finished, then cut", answered(), fakeprovider.Cut, usage, finish),
		breaking("finished, no done", answered(), fakeprovider.None, finish, usage),
		breaking("finished, then a stall", answered(), fakeprovider.Stall, usage, finish).with(
			map[string]any{"timeouts": map[string]any{"first_token": "30s", "idle": "2s", "total": "30s"}}),
		breaking("usage after done", answered(), fakeprovider.None, usage, finish, "data: [DONE]\n\n", usage),
		breaking("comments among the frames", answered(), fakeprovider.None, ": ping\n\n", "data:\n\n", usage, finish, "data: [DONE]\n\n"),
	}
	for i := range rows {
		rows[i].prompt, rows[i].completion = 700, 30
	}
	return rows
}

// breakRow plays a broken stream. The client gets an error event and no end, the other line gets no
// request, and exactly the delivered part is charged.
func breakRow(t *testing.T, f *fixture, e entry, c *customer) {
	sent := time.Now()
	a := f.Send(t, f.form.in, c.key, f.request(e, e.duo()), e.resume)
	f.checkSecrets(t, e, a)
	f.checkRequests(t, e, e.duo(), 0)
	f.checkEnd(t, e, a)
	f.checkProduced(t, e, c, a)
	f.checkHealth(t, e, e.duo(), sent)
}

// checkEnd checks the end of a stream at the client.
func (f *fixture) checkEnd(t *testing.T, e entry, a scene.Answer) {
	t.Helper()
	if a.Status != 200 || a.ContentType != "text/event-stream" || a.Cut || e.text != "" && a.Text != e.text {
		t.Errorf("the client got %+v", a)
	}
	if e.want.code == "" {
		if !a.Complete || a.Finish == "" && !f.form.native || a.Err.Type != "" {
			t.Errorf("the client got an incomplete stream: %s", a.Raw)
		}
		return
	}
	if a.Complete || a.Finish != "" {
		t.Errorf("the stream looks complete to the client: %s", a.Raw)
	}
	f.checkObject(t, e, a, "")
	frames := strings.Split(strings.TrimSpace(a.Raw), "\n\n")
	begins := `data: {"error":{`
	if f.form.native {
		begins = "event: error\n"
	}
	if last := frames[len(frames)-1]; !strings.HasPrefix(last, begins) {
		t.Errorf("the last event is %s", last)
	}
}

// checkProduced checks the receipt of a broken stream.
func (f *fixture) checkProduced(t *testing.T, e entry, c *customer, a scene.Answer) {
	t.Helper()
	r := f.receipt(t, c, a)
	if r.Status != 200 || r.Code != e.want.code || r.Line != e.duo() || len(r.Attempts) != 1 || r.Attempts[0].FirstByteMS == nil {
		t.Errorf("receipt %+v", r)
	}
	switch {
	case e.prompt > 0 && r.Prompt != e.prompt, e.completion > 0 && r.Completion != e.completion:
		t.Errorf("%d and %d tokens are on the receipt; the provider reported %d and %d", r.Prompt, r.Completion, e.prompt, e.completion)
	case r.Prompt <= 0 || r.Completion <= 0:
		t.Errorf("%d and %d tokens are on the receipt of a stream with text", r.Prompt, r.Completion)
	}
	if want := money.Amount(r.Prompt*1000 + r.Completion*2000); r.Cost != want {
		t.Errorf("charged %s, want %s", r.Cost, want)
	}
}

// leavingRows returns rows with a provider that stalls until the client disconnects.
func leavingRows() []row {
	closed := want{code: "client_closed"}
	whole := fakeprovider.Reply{Before: fakeprovider.Stall}
	early := row{name: "before a byte", want: closed, whole: &whole, stream: &fakeprovider.Reply{
		ContentType: "text/event-stream", Events: []string{fakeprovider.Frame(`{"role":"assistant"}`, "")}, End: fakeprovider.Stall}}
	return []row{early,
		breaking("after text", closed, fakeprovider.Stall),
		breaking("after text and usage", closed, fakeprovider.Stall).withUsage(700, 30)}
}

// leaveRow disconnects a client. The gateway must cancel the request to the provider, charge exactly
// the delivered part, release the hold, and count no failure for the line.
func leaveRow(t *testing.T, f *fixture, e entry, c *customer) {
	entries := len(f.Receipts(c.account))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := e.left()
	if e.text == "" {
		go func() {
			defer cancel()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for e.requests(e.solo()) == 0 && ctx.Err() == nil {
				<-tick.C
			}
		}()
	}
	if a, err := scene.SendChat(ctx, f.Client, f.Process.URL+f.form.in.Path(), c.key, f.request(e, e.solo()), cancel); err == nil {
		t.Fatalf("the client got %+v", a)
	}
	scene.Eventually(t, "the request to the provider is canceled", func() bool { return e.left() > before })
	var r scene.Receipt
	scene.Eventually(t, "the request is in the log", func() bool {
		all := f.Receipts(c.account)
		if len(all) > entries {
			r = all[0]
		}
		return len(all) == entries+1
	})
	if r.Code != e.want.code || (r.Cost > 0) != (e.text != "") || r.Cost != money.Amount(r.Prompt*1000+r.Completion*2000) {
		t.Errorf("receipt %+v", r)
	}
	if e.prompt > 0 && (r.Prompt != e.prompt || r.Completion != e.completion) {
		t.Errorf("%d and %d tokens are on the receipt; the provider reported %d and %d", r.Prompt, r.Completion, e.prompt, e.completion)
	}
	c.balance = f.CheckMoney(t, c.account, c.balance, scene.Answer{ID: r.ID, Status: r.Status})
	if s := f.state(t, e.solo()); s.State != "in_service" || s.SuccessRate != nil && *s.SuccessRate != 1 {
		t.Errorf("line: %s", s)
	}
}
