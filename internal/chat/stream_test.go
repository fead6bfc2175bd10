package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
)

func TestStream(t *testing.T) {
	t.Parallel()
	ownUsage := func(prompt, completion int) string {
		return fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","created":7,"model":"swift-1","choices":[],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":0},`+
			`"completion_tokens_details":{"reasoning_tokens":0}}}`+"\n\n",
			prompt, completion, prompt+completion)
	}
	stopUsage := strings.Replace(stop, `"stop"}]`, `"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10}`, 1)
	groqUsage := strings.Replace(stop, `"stop"}]`, `"stop"}],"x_groq":{"usage":{"prompt_tokens":100,"completion_tokens":10}}`, 1)
	second := strings.ReplaceAll(hello, `"index":0`, `"index":1`)
	stopSecond := strings.ReplaceAll(stop, `"index":0`, `"index":1`)
	two := strings.Replace(askStream, `{"model"`, `{"n":2,"model"`, 1)
	call1 := strings.Replace(hello, `{"content":"Hello"}`,
		`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`, 1)
	call2 := strings.Replace(hello, `{"content":"Hello"}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, 1)
	stopCall := strings.Replace(stop, `"stop"`, `"tool_calls"`, 1)
	thought := strings.Replace(hello, `"content"`, `"reasoning_content"`, 1)
	atLimit := strings.Replace(stop, `"stop"`, `"length"`, 1)
	for name, test := range map[string]struct {
		body   string
		pieces []string
		want   string
		cost   string
	}{
		"usage not asked": {askStream, []string{role, hello, world, stop, usage, doneEvent}, toClient(role, hello, world, stop, doneEvent),
			costUsage},
		"usage asked": {askUsage, []string{role, hello, world, stop, usage, doneEvent},
			toClient(role, hello, world, stop, usage, doneEvent), costUsage},
		"no usage": {askStream, []string{role, hello, world, stop, doneEvent},
			toClient(role, hello, world, stop, doneEvent), costBoth},
		"no usage, asked": {askUsage, []string{role, hello, world, stop, doneEvent},
			toClient(role, hello, world, stop) + ownUsage(8, 2) + doneEvent, costBoth},
		"usage with the finish": {askUsage, []string{hello, stopUsage, doneEvent}, toClient(hello, stopUsage, doneEvent), costUsage},
		"usage where none looks": {askUsage, []string{hello, groqUsage, doneEvent}, toClient(hello, groqUsage) + ownUsage(100, 10) + doneEvent,
			costUsage},
		"without [DONE]": {askStream, []string{role, hello, stop, usage}, toClient(role, hello, stop, doneEvent), costUsage},
		"one piece": {askStream, []string{role + hello + world + stop + usage + doneEvent},
			toClient(role, hello, world, stop, doneEvent), costUsage},
		"split in events": {askStream, strings.SplitAfter(role+hello+stop+usage+doneEvent, "o"), toClient(role, hello, stop, doneEvent),
			costUsage},
		"comments": {askStream, []string{": queued\n\n", role, ": queued\n\n", hello, ": wait\n\n", stop, usage, doneEvent},
			toClient(role, hello, ": wait\n\n", stop, doneEvent), costUsage},
		"empty events": {askStream, []string{"data:\n\n", role, hello, "data: \n\n", stop, usage, doneEvent},
			toClient(role, hello, stop, doneEvent), costUsage},
		"two choices": {two, []string{hello, second, stop, second, stopSecond, usage, doneEvent},
			toClient(hello, second, stop, second, stopSecond, doneEvent), costUsage},
		"more after the finish": {askStream, []string{hello, stop, ": x\n\n", usage, doneEvent, hello},
			toClient(hello, stop, ": x\n\n", doneEvent), costUsage},
		"tool calls": {askStream, []string{role, call1, call2, stopCall, usage, doneEvent},
			toClient(role, call1, call2, stopCall, doneEvent), costUsage},
		"only thinking, limit": {askStream, []string{role, thought, atLimit, usage, doneEvent}, toClient(role, thought, atLimit, doneEvent),
			costUsage},
		"nothing shown, limit": {askStream, []string{role, atLimit, usage, doneEvent}, toClient(role, atLimit, doneEvent), costUsage},
		"not a sentence after all": {askStream, []string{strings.Replace(hello, "Hello", "not service overloaded", 1), stop, usage, doneEvent},
			toClient(strings.Replace(hello, "Hello", "not service overloaded", 1), stop, doneEvent), costUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, reply{pieces: test.pieces})
			tr.mustRun(test.body)
			tr.want(ledger.Billed, test.cost, 200, "")
			if got := tr.client.body(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if strings.Contains(tr.client.early, "finish_reason\":\"") && !strings.Contains(test.body, `"n":2`) ||
				strings.Contains(tr.client.early, "[DONE]") {
				t.Errorf("sent before the settlement: %s", tr.client.early)
			}
			for _, sent := range tr.client.writes {
				if !strings.HasSuffix(sent, "\n\n") {
					t.Errorf("an event was split: %q", sent)
				}
			}
			if h := tr.client.header; h.Get("Content-Type") != "text/event-stream; charset=utf-8" || h.Get("x-tollgate-line") != "" ||
				tr.client.status != 200 {
				t.Errorf("status %d, header %v", tr.client.status, h)
			}
		})
	}
}

func TestStreamGoesOutAsItComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{pieces: []string{role, firstLine + world + world, world, stop, usage, doneEvent},
			delays: []time.Duration{time.Second}})
		var got []string
		start := time.Now()
		tr.client.onFlush = func(sent string) { got = append(got, time.Since(start).String()+" "+sent) }
		tr.mustRun(askStream)
		// The events before the first token are sent with it, and the finish waits for the end.
		want := []string{"2s " + toClient(role, firstLine, world, world), "3s " + toClient(world), "6s " + toClient(stop, doneEvent)}
		if !slices.Equal(got, want) {
			t.Errorf("writes %q\nwant   %q", got, want)
		}
	})
}

// TestFirstTokenIsReported checks that FirstToken is called once for a stream, however it ends, and
// never for a whole answer.
func TestFirstTokenIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body   string
		pieces []string
		calls  []string
	}{
		"a stream":                       {askStream, []string{role, hello, stop, usage, doneEvent}, []string{"swift-1 5s"}},
		"a stream that breaks off":       {askStream, []string{firstLine, world}, []string{"swift-1 5s"}},
		"a stream without an answer":     {askStream, []string{role}, nil},
		"an answer that is not a stream": {ask, []string{whole1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, reply{pieces: test.pieces}, reply{failure: upstream.Fail(fault.UpstreamError, errors.New("no"))})
				var calls []string
				tr.observed.FirstToken = func(model string, took time.Duration) { calls = append(calls, model+" "+took.String()) }
				c := chatCall(t, snapshot(t), test.body)
				time.Sleep(5 * time.Second) // on the bubble's clock
				tr.send(c)
				if !slices.Equal(calls, test.calls) {
					t.Errorf("calls %q, want %q", calls, test.calls)
				}
			})
		})
	}
}

// TestBursts checks that buffered events are sent in few writes, each small enough for one system
// call, and that no write splits an event.
func TestBursts(t *testing.T) {
	t.Parallel()
	large := strings.Replace(world, "world", strings.Repeat("w", 3*packet), 1)
	const words = 100
	tr := newTrial(t, pieces(firstLine+strings.Repeat(world, words)+large+world+stop+usage+doneEvent))
	tr.mustRun(askStream)
	if got, want := tr.client.body(), toClient(firstLine, strings.Repeat(world, words), large, world, stop, doneEvent); got != want {
		t.Errorf("got %s", got)
	}
	if n, most := len(tr.client.writes), words*len(world)/3000+5; n > most {
		t.Errorf("%d writes, want at most %d", n, most)
	}
	for i, sent := range tr.client.writes {
		if !strings.HasSuffix(sent, "\n\n") || len(sent) > packet && strings.Count(sent, "\n\n") > 1 {
			t.Errorf("write %d has %d bytes and %d events", i, len(sent), strings.Count(sent, "\n\n"))
		}
	}
}

// TestSlowClientIsNoIdleProvider checks that the client's time does not count as idle time of the
// line.
func TestSlowClientIsNoIdleProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, pieces(firstLine, world, world+world+stop+usage+doneEvent))
		tr.client.onFlush = func(string) { time.Sleep(25 * time.Second) } // idle is 20s
		tr.mustRun(askStream)
		tr.want(ledger.Billed, costUsage, 200, "")
	})
}

func TestStreamFailsBeforeItBegins(t *testing.T) {
	t.Parallel()
	filtered := strings.Replace(stop, `"stop"`, `"content_filter"`, 1)
	for name, test := range map[string]struct {
		reply reply
		code  fault.Code
		lines int
	}{
		"nothing":       {reply{}, fault.UpstreamConnectionError, 2},
		"only a role":   {pieces(role), fault.UpstreamConnectionError, 2},
		"only done":     {pieces(doneEvent), fault.UpstreamConnectionError, 2},
		"role and done": {pieces(role, doneEvent), fault.UpstreamConnectionError, 2},
		"no content":    {pieces(role, stop, usage, doneEvent), fault.EmptyCompletion, 2},
		"filtered":      {pieces(role, filtered, doneEvent), fault.ContentFilter, 1},
		"error":         {pieces(role, busyEvent), fault.UpstreamBusy, 2},
		"no JSON":       {pieces("data: oops\n\n"), fault.UpstreamUnavailable, 2},
		"cut event":     {pieces(role, hello[:20]), fault.UpstreamConnectionError, 2},
		"reset":         {reply{pieces: []string{role}, err: errors.New("reset")}, fault.UpstreamConnectionError, 2},
		"at the limit":  {pieces(role + strings.Replace(stop, `"stop"`, `"length"`, 1) + busyEvent), fault.UpstreamBusy, 1},
		"too large":     {pieces("data: " + strings.Repeat("x", maxEvent+1)), fault.UpstreamUnavailable, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, test.reply, test.reply)
			f := wantFault(t, tr.run(askStream), test.code)
			tr.want(ledger.Failed, "0", f.Status(), test.code)
			if len(tr.provider.calls) != test.lines || tr.client.status != 0 || tr.client.body() != "" {
				t.Errorf("%d lines asked, client got %d %q", len(tr.provider.calls), tr.client.status, tr.client.body())
			}
		})
	}
}

// TestStreamBreaksOff checks that a stream has started with its first token, and that the number of
// events received in one piece with the failure changes neither the client's answer nor the charge.
func TestStreamBreaksOff(t *testing.T) {
	t.Parallel()
	withheld := "data: {\"error\":{\"message\":\"Output blocked by content filtering policy\"}}\n\n"
	early := strings.Replace(firstLine, `}]}`, `}],"usage":{"prompt_tokens":100,"completion_tokens":10}}`, 1)
	named := "event: error\ndata: {\"message\":\"overloaded\",\"type\":\"overloaded_error\"}\n\n"
	begun := toClient(role, firstLine)
	for name, test := range map[string]struct {
		pieces []string
		err    error
		code   fault.Code
		sent   string
		cost   string
	}{
		"end":                   {[]string{role, firstLine}, nil, fault.UpstreamConnectionError, begun, costBoth},
		"done":                  {[]string{role, firstLine, doneEvent}, nil, fault.UpstreamConnectionError, begun, costBoth},
		"half a frame":          {[]string{role, firstLine, world[:30]}, nil, fault.UpstreamConnectionError, begun, costBoth},
		"reset":                 {[]string{role, firstLine}, errors.New("reset"), fault.UpstreamConnectionError, begun, costBoth},
		"error":                 {[]string{role, firstLine, busyEvent}, nil, fault.UpstreamBusy, begun, costBoth},
		"error at once":         {[]string{role + firstLine + busyEvent}, nil, fault.UpstreamBusy, begun, costBoth},
		"named error":           {[]string{role, firstLine, named}, nil, fault.UpstreamBusy, begun, costBoth},
		"withheld":              {[]string{role, firstLine, withheld}, nil, fault.ContentFilter, begun, costBoth},
		"no JSON":               {[]string{role, firstLine, "data: oops\n\n"}, nil, fault.UpstreamUnavailable, begun, costBoth},
		"no JSON at once":       {[]string{role + firstLine + "data: oops\n\n"}, nil, fault.UpstreamUnavailable, begun, costBoth},
		"usage seen":            {[]string{role, early, world}, nil, fault.UpstreamConnectionError, toClient(role, early, world), costUsage},
		"after finish":          {[]string{role, firstLine, stop, busyEvent}, nil, fault.UpstreamBusy, begun, costBoth},
		"after finish, at once": {[]string{role + firstLine + stop + busyEvent}, nil, fault.UpstreamBusy, begun, costBoth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, reply{pieces: test.pieces, err: test.err})
			tr.mustRun(askStream)
			tr.want(ledger.Billed, test.cost, 200, test.code)
			if !tr.end().Streamed {
				t.Error("the end does not say that the client saw a part")
			}
			if got, want := tr.client.body(), test.sent+errorEvent(test.code); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if len(tr.provider.calls) != 1 {
				t.Error("another line was asked after the first byte")
			}
		})
	}
}

func TestMissingEndAfterTheFinish(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]reply{"stalls": {stall: true}, "reset": {err: errors.New("reset")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				last.pieces = []string{role, hello, stop}
				tr := newTrial(t, last)
				start := time.Now()
				tr.mustRun(askStream)
				tr.want(ledger.Billed, costHello, 200, "")
				if got := tr.client.body(); got != toClient(role, hello, stop, doneEvent) || time.Since(start) > finishWait {
					t.Errorf("got %s after %s", got, time.Since(start))
				}
			})
		})
	}
}

// TestCommentsAfterTheFinish checks that keep-alives without an end after the finish do not delay
// the client.
func TestCommentsAfterTheFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{pieces: append([]string{role, hello, stop}, slices.Repeat([]string{": x\n\n"}, 1000)...),
			delays: []time.Duration{time.Second}})
		start := time.Now()
		tr.mustRun(askStream)
		if took := time.Since(start); took > 3*time.Second+finishWait {
			t.Errorf("it took %s", took)
		}
		tr.want(ledger.Billed, costHello, 200, "")
		if got := tr.client.body(); !strings.HasPrefix(got, toClient(role, hello, stop)) || !strings.HasSuffix(got, toClient(doneEvent)) {
			t.Errorf("got %s", got)
		}
	})
}

func TestStreamTimeouts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		replies []reply
		request time.Duration
		took    time.Duration
		fail    bool
	}{
		"first token":               {[]reply{{pieces: []string{role, ": x\n\n"}, stall: true}, {stall: true}}, 0, 20 * time.Second, true},
		"idle":                      {[]reply{{pieces: []string{firstLine, world}, stall: true}}, 0, 20 * time.Second, false},
		"request, before the token": {[]reply{{stall: true}}, 5 * time.Second, 5 * time.Second, true},
		"request, after the token":  {[]reply{{pieces: []string{firstLine}, stall: true}}, 5 * time.Second, 5 * time.Second, false},
		"second line within the time": {[]reply{{stall: true}, {pieces: []string{firstLine}, stall: true}}, 15 * time.Second,
			15 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, test.replies...)
				tr.opts.RequestTimeout = test.request
				start := time.Now()
				out := tr.run(askStream)
				if took := time.Since(start); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
				if test.fail {
					_ = wantFault(t, out, fault.UpstreamTimeout)
					tr.want(ledger.Failed, "0", 502, fault.UpstreamTimeout)
					return
				}
				if e := tr.end(); out.err != nil || out.cut || e.Outcome != ledger.Billed || e.Code != "upstream_timeout" || e.Cost == 0 {
					t.Errorf("%+v, end %+v", out, e)
				}
				if got := tr.client.body(); !strings.HasSuffix(got, errorEvent(fault.UpstreamTimeout)) {
					t.Errorf("got %s", got)
				}
				// A silent line is at fault, but not a line whose request ran out of time.
				good := 0.0
				if test.request > 0 {
					good = 1
				}
				if s := tr.lines.Statuses()[len(test.replies)-1]; *s.SuccessRate != good {
					t.Errorf("success rate %g, want %g", *s.SuccessRate, good)
				}
			})
		})
	}
}

func TestStreamThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	for _, failing := range []error{ledger.ErrUnknown, ledger.ErrNotSettled} {
		tr := newTrial(t, pieces(firstLine, stop, usage, doneEvent))
		tr.books.failing = failing
		out := tr.run(askUsage)
		got := tr.client.body()
		if !out.cut || strings.Contains(got, "stop") || strings.Contains(got, "usage\"") || strings.Contains(got, "[DONE]") ||
			!strings.Contains(got, `"code":"service_unavailable"`) {
			t.Errorf("%+v, client got %s", out, got)
		}
		// All of it came at once, so nothing was sent yet.
		tr = newTrial(t, pieces(firstLine+stop+usage+doneEvent))
		tr.books.failing = failing
		out = tr.run(askStream)
		if errors.Is(failing, ledger.ErrNotSettled) {
			_ = wantFault(t, out, fault.ServiceUnavailable)
		} else if !out.cut {
			t.Errorf("%+v", out)
		}
		if tr.client.status != 0 {
			t.Error("a status was written")
		}
	}
}

func TestClientLeavesAStream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pieces  []string
		outcome ledger.Outcome
		status  int
		cost    string
	}{
		"before the head":  {nil, ledger.Closed, 499, "0"},
		"before the token": {[]string{role}, ledger.Closed, 499, "0"},
		"after the token":  {[]string{role, firstLine}, ledger.Billed, 200, costBoth},
		"after the finish": {[]string{role, firstLine, stop}, ledger.Billed, 200, costBoth},
		"after the usage":  {[]string{role, firstLine, stop, usage}, ledger.Billed, 200, costUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, reply{pieces: test.pieces, stall: true})
				tr.leaveAfter(time.Second)
				if out := tr.run(askStream); !out.cut {
					t.Errorf("%+v", out)
				}
				tr.want(test.outcome, test.cost, test.status, fault.ClientClosed)
				if tr.provider.left != 1 || len(tr.provider.calls) != 1 {
					t.Error("the upstream call was not cancelled, or another one made")
				}
				if got := tr.client.body(); strings.Contains(got, "error") || strings.Contains(got, "stop") {
					t.Errorf("client got %s", got)
				}
			})
		})
	}
}

func TestClientThatStopsReading(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, pieces(firstLine, world, world, stop))
	tr.client.failing = errors.New("i/o timeout")
	if out := tr.run(askStream); !out.cut {
		t.Errorf("%+v", out)
	}
	tr.want(ledger.Billed, "0.000038", 200, fault.ClientClosed)
}
