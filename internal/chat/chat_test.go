package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
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
	tr := newTrial(t, reply{pieces: []string{whole1[:40], whole1[40:]}})
	tr.opts.ExposeLine = true
	if out := tr.run(ask); out.err != nil || out.cut {
		t.Fatalf("%+v", out)
	}
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
		"empty":      {ask, reply{pieces: []string{answer(`{"content":""}`, "stop")}}, fault.EmptyCompletion, 2},
		"no choices": {ask, reply{pieces: []string{`{"choices":[]}`}}, fault.EmptyCompletion, 2},
		"filtered":   {ask, reply{pieces: []string{answer(`{"content":""}`, "content_filter")}}, fault.ContentFilter, 1},
		"only thinking, own limit": {limited, reply{pieces: []string{answer(`{"content":"","reasoning_content":"hm"}`, "length")}},
			fault.MaxTokensTooSmall, 1},
		"only thinking": {ask, reply{pieces: []string{answer(`{"content":"","reasoning_content":"hm"}`, "length")}}, fault.EmptyCompletion, 2},
		"error inside": {ask, reply{pieces: []string{`{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`}},
			fault.UpstreamBusy, 2},
		"rejection inside": {ask,
			reply{pieces: []string{`{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`}},
			"context_length_exceeded", 1},
		"failed finish":  {ask, reply{pieces: []string{answer(`{"content":""}`, "network_error")}}, fault.UpstreamUnavailable, 2},
		"error sentence": {ask, reply{pieces: []string{answer(`{"content":"service overloaded, come back"}`, "stop")}}, fault.UpstreamError, 2},
		"no JSON":        {ask, reply{pieces: []string{`<html>`}}, fault.UpstreamUnavailable, 2},
		"cut":            {ask, reply{pieces: []string{whole1[:50]}}, fault.UpstreamUnavailable, 2},
		"reset":          {ask, reply{pieces: []string{whole1[:50]}, err: errors.New("reset")}, fault.UpstreamConnectionError, 2},
		"refused":        {ask, reply{failure: upstream.Fail(fault.UpstreamBusy, errors.New("429"))}, fault.UpstreamBusy, 2},
		"too deep":       {ask, reply{pieces: []string{`{"choices":` + strings.Repeat("[", 15_000)}}, fault.UpstreamUnavailable, 2},
		"deep": {ask, reply{pieces: []string{`{"x":` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + `,` + whole1[1:]}},
			fault.UpstreamUnavailable, 2},
		"too long": {ask, reply{pieces: []string{answer(`{"content":"`+strings.Repeat("x", 30_000)+`"}`, "stop")}}, fault.UpstreamUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := test.reply
			tr := newTrial(t, test.reply, again)
			tr.opts.MaxAnswer, tr.opts.ExposeLine = 20_000, true
			if test.lines == 2 && name == "error sentence" { // the second line knows no sentences
				tr.provider.replies[1] = reply{failure: upstream.Fail(fault.UpstreamError, errors.New("again"))}
			}
			f := faultOf(t, tr.run(test.body), test.code)
			tr.want(ledger.Failed, "0", f.Status(), test.code)
			if len(tr.provider.calls) != test.lines || tr.client.status != 0 || tr.client.body() != "" {
				t.Errorf("%d lines asked, client got %d %q", len(tr.provider.calls), tr.client.status, tr.client.body())
			}
			if last := []string{"first", "second"}[test.lines-1]; tr.end().Line != last || tr.client.header.Get("x-tollgate-line") != last {
				t.Errorf("line %s, header %v", tr.end().Line, tr.client.header)
			}
			a := tr.end().Attempts.([]attemptRow)[0]
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
		return reply{failure: upstream.Classify(400, "application/json", fmt.Appendf(nil,
			`{"error":{"message":%q,"type":"invalid_request_error","param":%q,"code":%q}}`, message, param, code), nil)}
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
			f := faultOf(t, tr.run(test.body), test.code)
			tr.want(ledger.Failed, "0", f.Status(), test.code)
			if test.code == fault.UpstreamUnavailable && f.Param != "" {
				t.Errorf("param %s", f.Param)
			}
			for _, a := range tr.end().Attempts.([]attemptRow) {
				if a.Status != 400 || a.Cause == "" {
					t.Errorf("attempt %+v", a)
				}
			}
		})
	}
}

func TestSecondLineAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body    string
		first   reply
		second  reply
		answer  string
		charged string
	}{
		"whole": {ask, reply{failure: upstream.Fail(fault.UpstreamUnavailable, nil)}, reply{pieces: []string{whole1}},
			toClient(whole1), costUsage},
		"stream": {askStream, reply{pieces: []string{role, ": queued\n\n"}}, reply{pieces: []string{role, hello, stop, usage, doneEvent}},
			toClient(role, hello, stop, doneEvent), costUsage},
		"sentence": {askStream, reply{pieces: []string{role, strings.Replace(hello, "Hello", "service overloaded", 1), stop, doneEvent}},
			reply{pieces: []string{hello, stop, usage, doneEvent}}, toClient(hello, stop, doneEvent), costUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, test.first, test.second)
			if out := tr.run(test.body); out.err != nil || out.cut {
				t.Fatalf("%+v", out)
			}
			tr.want(ledger.Billed, test.charged, 200, "")
			if got := tr.client.body(); got != test.answer || tr.end().Line != "second" || len(tr.end().Attempts.([]attemptRow)) != 2 {
				t.Errorf("got %s from %s after %+v", got, tr.end().Line, tr.end().Attempts)
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
			r := reply{pieces: []string{whole1}}
			if strings.Contains(test.in, `"stream":true`) {
				r = reply{pieces: []string{hello, stop, usage, doneEvent}}
			}
			tr := newTrial(t, r)
			if out := tr.run(test.in); out.err != nil || out.cut {
				t.Fatalf("%+v", out)
			}
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
		if f := faultOf(t, tr.run(body), fault.InvalidRequest); f.Param != param {
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
	wantFault(t, tr.run(ask), fault.InsufficientQuota)
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

func TestWholeAnswerThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, reply{pieces: []string{whole1}})
	tr.books.failing = ledger.ErrNotSettled
	if f := faultOf(t, tr.run(ask), fault.ServiceUnavailable); f.RetryAfter == 0 {
		t.Error("no time to retry after")
	}
	tr = newTrial(t, reply{pieces: []string{whole1}})
	tr.books.failing = ledger.ErrUnknown
	if out := tr.run(ask); !out.cut || tr.client.status != 0 || tr.client.body() != "" {
		t.Errorf("%+v, client got %d %q", out, tr.client.status, tr.client.body())
	}
}

// TestBudgetForWholeAnswers checks that an answer beyond the budget moves the request to another
// line, and that ordinary answers need no budget.
func TestBudgetForWholeAnswers(t *testing.T) {
	t.Parallel()
	long := reply{pieces: []string{strings.Replace(whole1, "Hello", strings.Repeat("x", 200_000), 1)}}
	tr := newTrial(t, long, long)
	tr.opts.AnswerBudget = 100_000
	wantFault(t, tr.run(ask), fault.UpstreamUnavailable)
	tr.want(ledger.Failed, "0", 502, fault.UpstreamUnavailable)
	for _, lines := range [][]reply{{long, {pieces: []string{whole1}}}, {{pieces: []string{whole1}}}} {
		tr := newTrial(t, lines...)
		tr.opts.AnswerBudget = 1
		if out := tr.run(ask); out.err != nil || out.cut || tr.client.status != 200 {
			t.Errorf("an ordinary answer after %d long ones: %+v", len(lines)-1, out)
		}
	}
}

// TestDeeplyNestedEvent checks that an event of endless nesting ends its attempt, not the process.
func TestDeeplyNestedEvent(t *testing.T) {
	t.Parallel()
	brackets := reply{pieces: []string{"data: " + strings.Repeat("[", maxEvent-100) + "\n\n"}}
	tr := newTrial(t, brackets, brackets)
	wantFault(t, tr.run(askStream), fault.UpstreamUnavailable)
	tr.want(ledger.Failed, "0", 502, fault.UpstreamUnavailable)
	line := strings.Replace(hello, "Hello", `Hello\n`, 1) // too long for an error sentence
	tr = newTrial(t, reply{pieces: []string{role, line, "data: " + strings.Repeat("[", maxEvent-100) + "\n\n"}})
	if out := tr.run(askStream); out.err != nil || !strings.Contains(tr.client.body(), `"code":"upstream_unavailable"`) {
		t.Errorf("%v, cut %v, client got %.300s", out.err, out.cut, tr.client.body())
	}
}

// TestBudgetForStreams checks that streams with events beyond the ordinary length share the memory
// budget of whole answers.
func TestBudgetForStreams(t *testing.T) {
	t.Parallel()
	long := strings.Replace(hello, "Hello", strings.Repeat("x", 200_000), 1)
	for most, code := range map[int64]fault.Code{100_000: fault.UpstreamUnavailable, 2_000_000: ""} {
		tr := newTrial(t, reply{pieces: []string{role, long, stop, usage, doneEvent}},
			reply{pieces: []string{role, long, stop, usage, doneEvent}})
		tr.opts.AnswerBudget = most
		out := tr.run(askStream)
		if code == "" {
			if out.err != nil || out.cut {
				t.Errorf("%+v", out)
			}
			continue
		}
		wantFault(t, out, code)
	}
	tr := newTrial(t, reply{pieces: []string{role, hello, stop, usage, doneEvent}})
	tr.opts.AnswerBudget = 1
	if out := tr.run(askStream); out.err != nil || out.cut {
		t.Errorf("an ordinary stream: %+v", out)
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
				wantFault(t, tr.run(ask), fault.UpstreamTimeout)
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
		ctx, leave := context.WithCancel(context.Background())
		tr.ctx = ctx
		time.AfterFunc(time.Second, leave)
		if out := tr.run(ask); !out.cut {
			t.Errorf("%+v", out)
		}
		tr.want(ledger.Closed, "0", 499, fault.ClientClosed)
		if tr.provider.left != 1 || len(tr.provider.calls) != 1 {
			t.Error("the upstream call was not cancelled, or another one made")
		}
	})
	// Settled, it stays charged.
	tr := newTrial(t, reply{pieces: []string{whole1}})
	ctx, leave := context.WithCancel(context.Background())
	tr.ctx, tr.books.settling = ctx, leave
	if out := tr.run(ask); out.err != nil || out.cut {
		t.Errorf("%+v", out)
	}
	tr.want(ledger.Billed, costUsage, 200, "")
}

func TestPanicReleasesTheHold(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, reply{pieces: []string{whole1}})
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
		"whole":    {ask, reply{pieces: []string{whole}}},
		"streamed": {askStream, reply{pieces: []string{strings.Replace(hello, "Hello", long, 1), stop, usage, doneEvent}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, test.reply)
				tr.client.onWrite = func(size int) { time.Sleep(time.Duration(size) * time.Second / 50_000) }
				if out := tr.run(test.ask); out.err != nil || out.cut {
					t.Fatalf("%+v", out)
				}
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
