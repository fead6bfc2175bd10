package chat

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// The costs of the replies: 100 tokens in and 10 out, and the gateway's own count of a prompt of 8
// tokens (3 + 4 + 1) and 1 or 2 tokens of "Hello" and " world".
const (
	costUsage = "0.0002"
	costHello = "0.000018"
	costBoth  = "0.000028"
)

func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, pieces(whole1[:40], whole1[40:]))
	tr.opts.ExposeLine = true
	tr.mustRun(ask)
	tr.want(ledger.Billed, costUsage, 200, "")
	if got, want := tr.client.body(), strings.Replace(whole1, "vendor-model", "swift-1", 1); got != want {
		t.Errorf("answer %s", got)
	}
	h := tr.client.header
	if tr.client.status != 200 || h.Get("Content-Type") != "application/json" || h.Get("Content-Length") == "" ||
		h.Get("x-tollgate-line") != "first" {
		t.Errorf("status %d, header %v", tr.client.status, h)
	}
	e, a := tr.end(), tr.books.amounts[0]
	if e.Line != "first" || e.Tokens != (ledger.Tokens{Prompt: 100, Completion: 10}) || e.Streamed {
		t.Errorf("end %+v", e)
	}
	// The body and a thousand bytes in, a thousand tokens out.
	if want := "0.011063"; a.Amount.String() != want || a.Endpoint != "/v1/chat/completions" || a.Revision != 1 || a.KeyVersion != 1 ||
		a.Model != "swift-1" {
		t.Errorf("admission %+v, want amount %s", a, want)
	}
	sent := tr.provider.calls[0]
	if string(sent.Body.Bytes()) != strings.Replace(ask, "swift-1", "vendor-model", 1) || sent.IdempotencyKey != "req_1-1" || sent.Stream {
		t.Errorf("sent %s, %+v", sent.Body, sent)
	}
}

func TestDisguisedFailures(t *testing.T) {
	t.Parallel()
	answer := func(message, finish string) string {
		return `{"model":"vendor-model","choices":[{"message":` + message + `,"finish_reason":"` + finish +
			`"}],"usage":{"prompt_tokens":100,"completion_tokens":10}}`
	}
	limited := strings.Replace(ask, `{"model"`, `{"max_completion_tokens":5,"model"`, 1)
	for name, test := range map[string]struct {
		body  string
		reply reply
		code  fault.Code
		lines int // how many were asked
	}{
		"empty":      {ask, pieces(answer(`{"content":""}`, "stop")), fault.EmptyCompletion, 2},
		"no choices": {ask, pieces(`{"choices":[]}`), fault.EmptyCompletion, 2},
		"filtered":   {ask, pieces(answer(`{"content":""}`, "content_filter")), fault.ContentFilter, 1},
		"only thinking, own limit": {limited, pieces(answer(`{"content":"","reasoning_content":"hm"}`, "length")),
			fault.MaxTokensTooSmall, 1},
		"only thinking": {ask, pieces(answer(`{"content":"","reasoning_content":"hm"}`, "length")), fault.EmptyCompletion, 2},
		"error inside": {ask, reply{pieces: []string{`{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`}},
			fault.UpstreamBusy, 2},
		"rejection inside": {ask,
			reply{pieces: []string{`{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`}},
			"context_length_exceeded", 1},
		"failed finish":  {ask, pieces(answer(`{"content":""}`, "network_error")), fault.UpstreamUnavailable, 2},
		"error sentence": {ask, pieces(answer(`{"content":"service overloaded, come back"}`, "stop")), fault.UpstreamError, 2},
		"no JSON":        {ask, pieces(`<html>`), fault.UpstreamUnavailable, 2},
		"cut":            {ask, pieces(whole1[:50]), fault.UpstreamUnavailable, 2},
		"reset":          {ask, reply{pieces: []string{whole1[:50]}, err: errors.New("reset")}, fault.UpstreamConnectionError, 2},
		"refused":        {ask, failing(fault.UpstreamBusy), fault.UpstreamBusy, 2},
		"too deep":       {ask, reply{pieces: []string{`{"choices":` + strings.Repeat("[", 15_000)}}, fault.UpstreamUnavailable, 2},
		"deep": {ask, reply{pieces: []string{`{"x":` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + `,` + whole1[1:]}},
			fault.UpstreamUnavailable, 2},
		"too long": {ask, pieces(answer(`{"content":"`+strings.Repeat("x", 30_000)+`"}`, "stop")), fault.UpstreamUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, test.reply, test.reply)
			tr.opts.MaxAnswer, tr.opts.ExposeLine = 20_000, true
			if test.lines == 2 && name == "error sentence" { // the second line knows no sentences
				tr.provider.replies[1] = failing(fault.UpstreamError)
			}
			f := wantFault(t, tr.run(test.body), test.code)
			tr.want(ledger.Failed, "0", f.Status(), test.code)
			if len(tr.provider.calls) != test.lines || tr.client.status != 0 || tr.client.body() != "" {
				t.Errorf("%d lines asked, client got %d %q", len(tr.provider.calls), tr.client.status, tr.client.body())
			}
			if last := []string{"first", "second"}[test.lines-1]; tr.end().Line != last || tr.client.header.Get("x-tollgate-line") != last {
				t.Errorf("line %s, header %v", tr.end().Line, tr.client.header)
			}
			a := tr.attempts()[0]
			if headless := test.reply.failure != nil || name == "too long"; (a.Status == 200) == headless { // or given up
				t.Errorf("attempt %+v", a)
			}
			if test.code == fault.MaxTokensTooSmall &&
				(f.Param != "max_completion_tokens" || strings.Count(f.Message(), f.Param) != 2 || strings.Contains(f.Message(), "max_tokens")) {
				t.Errorf("param %s, %q", f.Param, f.Message())
			}
			if name == "too long" && (!strings.Contains(f.Message(), "20000 bytes") || !strings.Contains(f.Message(), "stream")) {
				t.Errorf("%q", f.Message())
			}
		})
	}
}

// TestRejectedAddedFields checks that the rejection of a field added by the gateway counts against
// the line, and that the client gets the rejection of its own field.
func TestRejectedAddedFields(t *testing.T) {
	t.Parallel()
	const list = `"messages":[{"role":"user","content":"hi"}]`
	rejected := func(param, code, message string) reply {
		return rejecting(`"message":%q,"type":"invalid_request_error","param":%q,"code":%q`, message, param, code)
	}
	for name, test := range map[string]struct {
		body  string
		reply reply
		code  fault.Code
	}{
		"stream options": {askStream, rejected("stream_options", "unknown_parameter", "Unknown"), fault.UpstreamUnavailable},
		"a part of them": {askStream, rejected("stream_options.include_usage", "", "Unknown"), fault.UpstreamUnavailable},
		"in words":       {askStream, rejected("", "", "property 'stream_options' is unsupported"), fault.UpstreamUnavailable},
		"another field": {askStream, rejected("temperature", "unknown_parameter", "Unknown, unlike stream_options"),
			"unknown_parameter"},
		"the client's options": {strings.Replace(askStream, `{"model"`, `{"stream_options":{},"model"`, 1),
			rejected("stream_options", "unknown_parameter", "Unknown"), "unknown_parameter"},
		"not streamed": {ask, rejected("stream_options", "unknown_parameter", "Unknown"), "unknown_parameter"},
		"limit": {`{"model":"default-1",` + list + `}`, rejected("max_completion_tokens", "unsupported_parameter", "No"),
			fault.UpstreamUnavailable},
		"the client's limit": {`{"model":"default-1","max_completion_tokens":5,` + list + `}`,
			rejected("max_completion_tokens", "unsupported_parameter", "No"), "unsupported_parameter"},
		"limit and prompt too long": {`{"model":"default-1",` + list + `}`, rejected("max_completion_tokens", "context_length_exceeded", "No"),
			"context_length_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, test.reply, test.reply)
			f := wantFault(t, tr.run(test.body), test.code)
			tr.want(ledger.Failed, "0", f.Status(), test.code)
			if test.code == fault.UpstreamUnavailable && f.Param != "" {
				t.Errorf("param %s", f.Param)
			}
			for _, a := range tr.attempts() {
				if a.Status != 400 || a.Cause == "" {
					t.Errorf("attempt %+v", a)
				}
			}
		})
	}
}

func TestSecondLineAnswers(t *testing.T) {
	t.Parallel()
	sentence := strings.Replace(hello, "Hello", "service overloaded", 1)
	good := pieces(role, hello, world, stop, usage, doneEvent)
	for name, test := range map[string]struct {
		body          string
		first, second reply
		answer        string
	}{
		"whole":    {ask, failing(fault.UpstreamUnavailable), pieces(whole1), toClient(whole1)},
		"stream":   {askStream, pieces(role, ": queued\n\n"), good, toClient(role, hello, world, stop, doneEvent)},
		"sentence": {askStream, pieces(role, sentence, stop, doneEvent), good, toClient(role, hello, world, stop, doneEvent)},
		// The gateway holds back the token, because it may begin an error sentence.
		"error after a token": {askStream, pieces(role + hello + busyEvent), good, toClient(role, hello, world, stop, doneEvent)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, test.first, test.second)
			tr.mustRun(test.body)
			tr.want(ledger.Billed, costUsage, 200, "")
			if got := tr.client.body(); got != test.answer || tr.end().Line != "second" || len(tr.attempts()) != 2 {
				t.Errorf("got %s from %s after %+v", got, tr.end().Line, tr.attempts())
			}
			if key := tr.provider.calls[1].IdempotencyKey; key != "req_1-2" {
				t.Errorf("second key %s", key)
			}
		})
	}
}

func TestRequestBodies(t *testing.T) {
	t.Parallel()
	const list = `"messages":[{"role":"user","content":"hi"}]`
	for name, test := range map[string]struct{ in, want, amount string }{
		"usage is asked for": {askStream, `{"model":"vendor-model",` + list + `,"stream":true,"stream_options":{"include_usage":true}}`,
			"0.011077"},
		"default limit": {`{"model":"default-1",` + list + `}`, `{"model":"vendor-model",` + list + `,"max_tokens":100}`, "0.002065"},
		"smaller limit": {`{"model":"swift-1","max_tokens":500,` + list + `,"max_completion_tokens":10}`,
			`{"model":"vendor-model","max_tokens":10,` + list + `}`, "0.001207"},
		"own limit": {`{"model":"default-1","max_tokens":7,` + list + `}`, `{"model":"vendor-model","max_tokens":7,` + list + `}`,
			"0.00115"},
		"several choices": {`{"model":"swift-1","n":3,"max_tokens":10,` + list + `}`,
			`{"model":"vendor-model","n":3,"max_tokens":10,` + list + `}`, "0.001385"},
		"predicted text": {`{"model":"swift-1","prediction":{"type":"content","content":"1234"},"max_tokens":10,` + list + `}`,
			`{"model":"vendor-model","prediction":{"type":"content","content":"1234"},"max_tokens":10,` + list + `}`,
			"0.001578"},
		"budget of thinking": {`{"model":"swift-1","thinking_budget":1000,"max_tokens":10,` + list + `}`,
			`{"model":"vendor-model","thinking_budget":1000,"max_tokens":10,` + list + `}`, "0.011202"},
		"priced tier": {`{"model":"swift-1","service_tier":"priority","max_tokens":10,` + list + `}`,
			`{"model":"vendor-model","service_tier":"priority","max_tokens":10,` + list + `}`, "0.00241"},
		"priced tool, window": {`{"model":"swift-1","web_search_options":{},"max_tokens":10,` + list + `}`,
			`{"model":"vendor-model","web_search_options":{},"max_tokens":10,` + list + `}`, "0.2001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pieces(whole1)
			if strings.Contains(test.in, `"stream":true`) {
				r = pieces(hello, stop, usage, doneEvent)
			}
			tr := newTrial(t, r)
			tr.mustRun(test.in)
			if got := string(tr.provider.calls[0].Body.Bytes()); got != test.want {
				t.Errorf("sent %s\nwant %s", got, test.want)
			}
			if got := tr.books.amounts[0].Amount.String(); got != test.amount {
				t.Errorf("held %s, want %s", got, test.amount)
			}
		})
	}
}

func TestUnpricedIsRefusedBeforeTheHold(t *testing.T) {
	t.Parallel()
	for body, param := range map[string]string{
		strings.Replace(ask, `{"model"`, `{"service_tier":"scale","model"`, 1):                `service_tier`,
		strings.Replace(ask, `{"model"`, `{"speed":"fast","model"`, 1):                        `speed`,
		strings.Replace(ask, `{"model"`, `{"models":["gpt-6-astra"],"model"`, 1):              `models`,
		strings.Replace(ask, `{"model"`, `{"tools":[{"type":"code_interpreter"}],"model"`, 1): `tools[0].type`,
	} {
		tr := newTrial(t)
		if f := wantFault(t, tr.run(body), fault.InvalidRequest); f.Param != param {
			t.Errorf("%s: param %s", body, f.Param)
		}
		if len(tr.books.refusals) != 1 || tr.books.refusals[0].Status != 400 || tr.books.refusals[0].Code != "invalid_request" {
			t.Errorf("logged %+v", tr.books.refusals)
		}
	}
}

func TestAdmissionRefuses(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.books.admitError = fault.New(fault.InsufficientQuota, "no")
	_ = wantFault(t, tr.run(ask), fault.InsufficientQuota)
	tr = newTrial(t)
	tr.books.admitError = ledger.ErrKeyChanged
	if out := tr.run(ask); !errors.Is(out.err, ledger.ErrKeyChanged) {
		t.Errorf("%+v", out)
	}
	tr = newTrial(t)
	ctx, leave := context.WithCancel(context.Background())
	leave()
	tr.ctx, tr.books.admitError = ctx, ctx.Err()
	if out := tr.run(ask); !out.cut || len(tr.books.refusals) != 0 { // the ledger has logged it
		t.Errorf("%+v, logged %+v", out, tr.books.refusals)
	}
}

// TestAnswerBudget checks that a whole answer or a stream beyond the budget moves the request to
// another line, and that ordinary ones need no budget.
func TestAnswerBudget(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	longWhole := pieces(strings.Replace(whole1, "Hello", long, 1))
	longStream := pieces(role, strings.Replace(hello, "Hello", long, 1), stop, usage, doneEvent)
	for _, test := range []struct {
		body    string
		budget  int64
		replies []reply
		code    fault.Code
	}{
		{ask, 100_000, []reply{longWhole, longWhole}, fault.UpstreamUnavailable},
		{ask, 1, []reply{longWhole, pieces(whole1)}, ""},
		{ask, 1, []reply{pieces(whole1)}, ""},
		{askStream, 100_000, []reply{longStream, longStream}, fault.UpstreamUnavailable},
		{askStream, 2_000_000, []reply{longStream}, ""},
		{askStream, 1, []reply{pieces(role, hello, stop, usage, doneEvent)}, ""},
	} {
		tr := newTrial(t, test.replies...)
		tr.opts.AnswerBudget = test.budget
		if test.code == "" {
			tr.mustRun(test.body)
			continue
		}
		_ = wantFault(t, tr.run(test.body), test.code)
		tr.want(ledger.Failed, "0", 502, test.code)
	}
}

// TestDeeplyNestedEvent checks that an event of endless nesting ends its attempt, not the process.
func TestDeeplyNestedEvent(t *testing.T) {
	t.Parallel()
	brackets := "data: " + strings.Repeat("[", maxEvent-100) + "\n\n"
	tr := newTrial(t, pieces(brackets), pieces(brackets))
	_ = wantFault(t, tr.run(askStream), fault.UpstreamUnavailable)
	tr.want(ledger.Failed, "0", 502, fault.UpstreamUnavailable)
	tr = newTrial(t, pieces(role, firstLine, brackets))
	if out := tr.run(askStream); out.err != nil || !strings.Contains(tr.client.body(), `"code":"upstream_unavailable"`) {
		t.Errorf("%v, cut %v, client got %.300s", out.err, out.cut, tr.client.body())
	}
}

func TestWholeAnswerTakesTooLong(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"the line's total": 0, "the request's timeout": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, reply{pieces: []string{whole1[:9]}, stall: true}, reply{stall: true})
				tr.opts.RequestTimeout = timeout
				start := time.Now()
				_ = wantFault(t, tr.run(ask), fault.UpstreamTimeout)
				tr.want(ledger.Failed, "0", 502, fault.UpstreamTimeout)
				took, want := time.Since(start), 60*time.Second // both lines
				if timeout > 0 {
					want = timeout
				}
				if took != want {
					t.Errorf("took %s, want %s", took, want)
				}
			})
		})
	}
}

func TestClientLeavesAWholeAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{pieces: []string{whole1[:9]}, stall: true})
		tr.leaveAfter(time.Second)
		if out := tr.run(ask); !out.cut {
			t.Errorf("%+v", out)
		}
		tr.want(ledger.Closed, "0", 499, fault.ClientClosed)
		if tr.provider.left != 1 || len(tr.provider.calls) != 1 {
			t.Error("the upstream call was not cancelled, or another one made")
		}
	})
	// Settled, it stays charged.
	tr := newTrial(t, pieces(whole1))
	ctx, leave := context.WithCancel(context.Background())
	tr.ctx, tr.books.settling = ctx, leave
	tr.mustRun(ask)
	tr.want(ledger.Billed, costUsage, 200, "")
}

func TestPanicReleasesTheHold(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, pieces(whole1))
	tr.opts.Now = func() time.Time {
		if len(tr.books.amounts) > 0 && len(tr.provider.calls) > 0 && len(tr.books.ends) == 0 && !tr.books.isSettled {
			tr.books.isSettled = true
			panic(http.ErrAbortHandler)
		}
		return time.Now()
	}
	if out := tr.run(ask); !out.cut {
		t.Errorf("%+v", out)
	}
	tr.want(ledger.Failed, "0", 503, fault.ServiceUnavailable)
}

// TestLongAnswersOfSlowClients checks that a client gets the whole of a long answer while it keeps
// reading, and that the connection of a client too slow is cut, because it occupies shared memory.
func TestLongAnswersOfSlowClients(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 6<<20)
	whole := `{"id":"c","model":"vendor-model","choices":[{"index":0,"message":{"role":"assistant","content":"` + long +
		`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10}}`
	for name, test := range map[string]struct {
		ask   string
		reply reply
	}{
		"whole":    {ask, pieces(whole)},
		"streamed": {askStream, pieces(strings.Replace(hello, "Hello", long, 1), stop, usage, doneEvent)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, test.reply)
				tr.client.onWrite = func(size int) { time.Sleep(time.Duration(size) * time.Second / 50_000) }
				tr.mustRun(test.ask)
				tr.want(ledger.Billed, costUsage, 200, "")
				if got := tr.client.body(); !strings.Contains(got, long) || !strings.Contains(got, `"stop"`) {
					t.Errorf("the client got %d bytes", len(got))
				}
			})
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, test.reply)
				tr.client.onWrite = func(size int) { time.Sleep(time.Duration(size) * time.Second / 10_000) }
				began := time.Now()
				tr.run(test.ask)
				if took, got := time.Since(began), len(tr.client.body()); took > 2*time.Minute || got > 1<<20 {
					t.Errorf("the client was given %s, and got %d bytes", took, got)
				}
			})
		})
	}
}

// TestTimeThatARequestTakes checks that a timeout is unproven if the request may need so much time
// by itself.
func TestTimeThatARequestTakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream   bool
		bound    wire.PromptBound
		unproven bool
	}{
		"a stream":                   {true, wire.PromptBound{TextBytes: longPrompt}, false},
		"a whole answer":             {false, wire.PromptBound{TextBytes: 10}, true},
		"a stream of a long prompt":  {true, wire.PromptBound{TextBytes: longPrompt + 1}, true},
		"a stream with an image":     {true, wire.PromptBound{Images: 1}, true},
		"a stream with files beside": {true, wire.PromptBound{Unbounded: true}, true},
	} {
		x := &chatRequest{params: &wire.Parameters{Stream: tt.stream, Bound: tt.bound}}
		for code, want := range map[fault.Code]bool{fault.UpstreamTimeout: tt.unproven, fault.UpstreamConnectionError: false} {
			f := upstream.Fail(code, errors.New("x"))
			if err := x.markUnproven(f); !errors.Is(err, error(f)) || f.Unproven != want {
				t.Errorf("%s, %s: unproven %t", name, code, f.Unproven)
			}
		}
	}
	if err := (&chatRequest{}).markUnproven(nil); err != nil {
		t.Error(err)
	}
}

// TestAdviceNamesTheLimitField checks that the advice of a 402 names the limit field of the client's
// request, or the usual field of the form if the request has no limit.
func TestAdviceNamesTheLimitField(t *testing.T) {
	t.Parallel()
	const prompt = `{"model":"swift-1","messages":[{"role":"user","content":"hi"}]`
	for name, test := range map[string]struct {
		form  wire.Form
		body  string
		field string
	}{
		"chat, max_tokens":            {wire.FormChat, prompt + `,"max_tokens":50}`, "max_tokens"},
		"chat, max_completion_tokens": {wire.FormChat, prompt + `,"max_completion_tokens":50}`, "max_completion_tokens"},
		"chat, no limit":              {wire.FormChat, prompt + `}`, "max_tokens"},
		"responses":                   {wire.FormResponses, `{"model":"swift-1","input":"hi","max_output_tokens":50}`, "max_output_tokens"},
		"responses, no limit":         {wire.FormResponses, `{"model":"swift-1","input":"hi"}`, "max_output_tokens"},
		"messages":                    {wire.FormMessages, prompt + `,"max_tokens":50}`, "max_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := accepted(t, snapshotOf(t, formDocument, wire.FormChat), test.form, test.body)
			tr := newTrial(t, pieces(whole1))
			tr.send(c)
			if want := "lower " + test.field; len(tr.books.amounts) != 1 || tr.books.amounts[0].Advice != want {
				t.Errorf("admissions %+v, want the advice %q", tr.books.amounts, want)
			}
			if strings.Contains(test.body, "tokens") && !strings.Contains(test.body, test.field) {
				t.Fatal("the request lacks the field")
			}
		})
	}
}
