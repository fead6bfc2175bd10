package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// tokensOfAttempts returns the token counts of the request's attempts.
func (tr *testRequest) tokensOfAttempts() (counts []upstream.TokenCounts) {
	tr.t.Helper()
	for _, a := range tr.attempts() {
		counts = append(counts, a.TokenCounts)
	}
	return counts
}

// TestFailedAttemptsAreCounted checks that an attempt's record has its uncharged usage at the
// provider, without the request's own tokens.
func TestFailedAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	const usageMember = `"usage":{"prompt_tokens":70,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens":7}`
	used := upstream.TokenCounts{Prompt: 70, Cached: 40, Completion: 7}
	answer := func(content, usage string) string {
		return `{"choices":[{"index":0,"message":{"role":"assistant","content":` + content + `},"finish_reason":"stop"}]` + usage + `}`
	}
	withText := func(words string) string { return strings.Replace(hello, "Hello", words, 1) }
	report := `data: {"choices":[],` + usageMember + "}\n\n"
	rejected := upstream.Fail(fault.UpstreamBusy, errors.New("busy"))
	rejected.Tokens = used
	for name, test := range map[string]struct {
		first  reply
		stream bool
		want   upstream.TokenCounts
	}{
		"error status":           {first: reply{failure: rejected}, want: used},
		"error status, streamed": {first: reply{failure: rejected}, stream: true, want: used},
		"empty":                  {first: pieces(answer(`""`, ","+usageMember)), want: used},
		"empty, no usage":        {first: pieces(answer(`""`, ""))},
		"error sentence":         {first: pieces(answer(`"service overloaded"`, ","+usageMember)), want: used},
		"error inside":           {first: reply{pieces: []string{`{"error":{"message":"x","code":503},` + usageMember + `}`}}, want: used},
		"no JSON":                {first: pieces("oops")},
		"stream, empty":          {first: pieces(role, stop, report, doneEvent), stream: true},
		"stream, empty with usage": {
			first:  pieces(role, strings.Replace(stop, `"choices"`, usageMember+`,"choices"`, 1), doneEvent),
			stream: true, want: used},
		"stream, error sentence": {first: pieces(role, withText("service overloaded"), stop), stream: true,
			want: upstream.TokenCounts{Prompt: 8, Completion: 2}},
		"stream, error behind a token": {first: pieces(role + hello + busyEvent), stream: true,
			want: upstream.TokenCounts{Prompt: 8, Completion: 1}},
		"stream, error behind usage": {first: pieces(role + report + hello + busyEvent), stream: true, want: used},
		"stream, breaks behind a token": {first: reply{pieces: []string{role, hello}, err: errors.New("reset")}, stream: true,
			want: upstream.TokenCounts{Prompt: 8, Completion: 1}},
		"stream, breaks before a token": {first: reply{pieces: []string{role}, err: errors.New("reset")}, stream: true},
		"stream, breaks behind a prompt": {first: reply{pieces: []string{`data: {"choices":[],"usage":{"prompt_tokens":70}}` + "\n\n"}},
			stream: true, want: upstream.TokenCounts{Prompt: 70}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, good := ask, pieces(whole1)
			if test.stream {
				body, good = askStream, pieces(role, hello, world, stop, usage, doneEvent)
			}
			tr := newTrial(t, test.first, good)
			tr.mustRun(body)
			tr.want(ledger.Billed, costUsage, 200, "")
			if got := tr.tokensOfAttempts(); len(got) != 2 || got[0] != test.want || got[1] != (upstream.TokenCounts{}) {
				t.Errorf("attempts %+v; want %+v for the first and none for the second", got, test.want)
			}
		})
	}
}

// TestFailedAttemptsOfAllForms checks the counts of a failed attempt for lines of each form.
func TestFailedAttemptsOfAllForms(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, client, on wire.Form) {
		if client != wire.FormChat && client == on {
			return // an empty answer passes through unchanged
		}
		body := strings.Replace(withUsage(t, on, reportedUsage(on, 70, 40, 7)), `"all is well"`, `""`, 1)
		tr := newTrial(t, pieces(body))
		_ = wantFault(t, tr.send(formCall(t, client, on, false)), fault.EmptyCompletion)
		if got := tr.tokensOfAttempts(); len(got) != 1 || got[0] != (upstream.TokenCounts{Prompt: 70, Cached: 40, Completion: 7}) {
			t.Errorf("attempts %+v", got)
		}
	})
}

// disconnectedContext is the context of a disconnected client. Only Err reports the disconnect; Done
// does not.
type disconnectedContext struct{ context.Context }

// Err implements context.Context.
func (disconnectedContext) Err() error { return context.Canceled }

// TestDiscardedAnswers checks that an answer to a disconnected client costs the client nothing,
// and that the provider's cost is recorded.
func TestDiscardedAnswers(t *testing.T) {
	t.Parallel()
	used := upstream.TokenCounts{Prompt: 100, Completion: 10}
	for name, test := range map[string]struct {
		body   string
		pieces []string
		want   upstream.TokenCounts
	}{
		"whole": {ask, []string{whole1}, used},
		// the gateway does not wait for the usage
		"a whole stream":   {askStream, []string{role, firstLine, stop, usage, doneEvent}, upstream.TokenCounts{Prompt: 8, Completion: 2}},
		"part of a stream": {askStream, []string{role, firstLine}, upstream.TokenCounts{Prompt: 8, Completion: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, reply{pieces: test.pieces})
			tr.ctx = disconnectedContext{t.Context()}
			if out := tr.run(test.body); !out.cut {
				t.Fatalf("%+v", out)
			}
			tr.want(ledger.Closed, "0", 499, fault.ClientClosed)
			if got := tr.tokensOfAttempts(); len(got) != 1 || got[0] != test.want {
				t.Errorf("attempts %+v; want %+v", got, test.want)
			}
		})
	}
}

// TestDisconnectBeforeTheAnswer checks the same for a stream whose client disconnects while the
// gateway holds back the beginning of the stream.
func TestDisconnectBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{pieces: []string{role, hello}, stall: true})
		tr.leaveAfter(time.Second)
		if out := tr.run(askStream); !out.cut {
			t.Fatalf("%+v", out)
		}
		tr.want(ledger.Closed, "0", 499, fault.ClientClosed)
		if got := tr.tokensOfAttempts(); len(got) != 1 || got[0] != (upstream.TokenCounts{Prompt: 8, Completion: 1}) {
			t.Errorf("attempts %+v", got)
		}
	})
}
