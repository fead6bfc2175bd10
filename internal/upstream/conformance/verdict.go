package conformance

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Verdict holds the decisions of a job's failure, for an adapter's own tables.
type Verdict struct {
	Job    fault.Code
	Next   upstream.Next
	Health upstream.Health
	Param  string
	Lost   bool
}

// Decides returns a verdict without a param and without Lost.
func Decides(job fault.Code, next upstream.Next, health upstream.Health) Verdict {
	return Verdict{Job: job, Next: next, Health: health}
}

// Then returns v with another next step.
func (v Verdict) Then(next upstream.Next) Verdict {
	v.Next = next
	return v
}

// Verdicts are the verdicts common to most tables.
type Verdicts struct {
	Refused       Verdict // a parameter, or a combination of them
	Flagged       Verdict // input
	FlaggedOutput Verdict // output
	Material      Verdict // a reference
	Account       Verdict // ours: key, balance, permission
	Model         Verdict // ours: the account does not have the model
	Busy          Verdict // our rate
	Broken        Verdict // the provider failed on a submission
	Lost          Verdict // the answer to a submission was lost
	Failed        Verdict // an accepted task failed
	Empty         Verdict // it ended well and brought nothing
	Gone          Verdict // it is no longer known
}

// VerdictsOf are the verdicts of a kind of tasks.
func VerdictsOf(kind string) Verdicts {
	v := Verdicts{
		Refused:  Decides(fault.UpstreamError, upstream.NextLine, upstream.HealthNone),
		Flagged:  Decides(fault.ModerationBlocked, upstream.NextNone, upstream.HealthNone),
		Material: Decides(fault.UpstreamError, upstream.NextLine, upstream.HealthNone),
		Account:  Decides(fault.UpstreamError, upstream.NextLine, upstream.HealthCredential),
		Model:    Decides(fault.UpstreamError, upstream.NextLine, upstream.HealthModel),
		Busy:     Decides(fault.UpstreamError, upstream.NextLater, upstream.HealthCool),
		Broken:   Decides(fault.UpstreamError, upstream.NextLine, upstream.HealthFail),
		Failed:   Decides(fault.UpstreamError, upstream.NextLine, upstream.HealthFail),
		Empty:    Decides(fault.UpstreamError, upstream.NextSame, upstream.HealthHalf),
		Gone:     Decides(fault.UpstreamError, upstream.NextLine, upstream.HealthFail),
	}
	v.FlaggedOutput, v.Lost = v.Flagged, v.Broken
	v.Lost.Lost = true
	if kind == upstream.KindVideo {
		v.Refused.Job, v.Flagged.Job, v.Material.Job = fault.InvalidRequest, fault.ContentPolicy, fault.InvalidMaterial
		v.Failed.Job, v.Empty.Job, v.Gone.Job = fault.RenderFailed, fault.RenderFailed, fault.UpstreamUnstable
		v.FlaggedOutput = Decides(fault.ContentPolicy, upstream.NextSame, upstream.HealthNone)
	}
	return v
}

// VerdictOf returns the verdict of a generator's error. The test fails if err is not a valid
// failure.
func VerdictOf(t testing.TB, err error) Verdict {
	t.Helper()
	f := failedJob(t, "a verdict", err)
	return Verdict{f.Job, f.Next, f.Health, f.Param, f.Lost}
}

// Judged fails the test if a generator's error has another verdict.
func Judged(t testing.TB, what string, err error, want Verdict) {
	t.Helper()
	if got := VerdictOf(t, err); got != want {
		t.Errorf("%s: %+v, want %+v (%v)", what, got, want, err)
	}
}

// JobFailure returns a generator's error as a failure.
func JobFailure(t testing.TB, err error) *upstream.JobFailure {
	t.Helper()
	return failedJob(t, "an error", err)
}

// ChatFailure returns the error of a chat call as a failure.
func ChatFailure(t testing.TB, err error) *upstream.Failure {
	t.Helper()
	return failed(t, "call", err)
}

// Line opens a line of a provider of images and video.
func Line(t testing.TB, provider, base string, options map[string]any) jobcall.Generator {
	t.Helper()
	return Making{Provider: provider}.generator(t, base, options)
}

// Answering opens a line to a provider with one response to every call.
func Answering(t testing.TB, provider string, status int, body string) jobcall.Generator {
	t.Helper()
	return Line(t, provider, saying(t, document(status, body)), nil)
}

// Scripted opens a line without a connection. The provider responds with the last arguments of
// answer.
func Scripted(t testing.TB, provider string) (g jobcall.Generator, answer func(body []byte, status int)) {
	t.Helper()
	var last script
	a := openBy(t, &last, provider, "http://127.0.0.1", nil)
	return a.(jobcall.Generator), func(body []byte, status int) { last = script{body, status} }
}

// script is a provider with one response to every call.
type script struct {
	body   []byte
	status int
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(s.body)), Request: r}, nil
}

// Polled submits a task and polls it to its end, possibly a failure.
func Polled(t testing.TB, g jobcall.Generator, w jobcall.Task) (*jobcall.TaskStatus, error) {
	t.Helper()
	made, err := jobcall.Submit(t.Context(), g, w)
	if err != nil || made.Done {
		return made, err
	}
	return Finished(t, g, w, made.Ticket)
}

// Finished polls a task to its end, possibly a failure.
func Finished(t testing.TB, g jobcall.Generator, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	t.Helper()
	for range 20 {
		made, err := g.Poll(t.Context(), w, ticket)
		if err != nil || made.Done {
			return made, err
		}
		if made.Ticket != ticket {
			t.Fatalf("ticket %q became %q", ticket, made.Ticket)
		}
	}
	t.Fatal("the task does not end")
	return nil, nil
}

// Fetched downloads a result of a task.
func Fetched(t testing.TB, g jobcall.Generator, w jobcall.Task, r jobcall.Result) (data []byte, kind string) {
	t.Helper()
	data, kind, err := fetched(t, g, w, r)
	if err != nil {
		t.Fatal(err)
	}
	return data, kind
}

// Fate returns the verdict of a task after a behaviour of a fake. The task must fail, at its
// submission or later.
func Fate(t testing.TB, provider string, studio Studio, how fakestudio.Behaviour, w jobcall.Task) Verdict {
	t.Helper()
	studio.Expect(how)
	_, err := Polled(t, Line(t, provider, studio.URL(), nil), w)
	return VerdictOf(t, err)
}

// Answers fuzzes the responses of a provider: every response must lead to a failure or a valid
// status. Each seed is tried with a good status and with error statuses.
func Answers(f *testing.F, provider, ticket string, tasks []jobcall.Task, seeds ...string) {
	for _, seed := range append(seeds, ``, `{`, `<html>`, `{"error":{"code":5}}`, `{"detail":[{"msg":7}]}`) {
		for _, status := range []int{200, 400, 403, 422, 503} {
			f.Add(status, seed)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			return
		}
		g := Answering(t, provider, status, body)
		for _, w := range tasks {
			made, err := jobcall.Submit(t.Context(), g, w)
			if err == nil {
				accepted(t, g, w, made)
			} else {
				_ = failedJob(t, body, err)
			}
			if g.Blocks(w) {
				continue
			}
			if made, err = g.Poll(t.Context(), w, ticket); err != nil {
				_ = failedJob(t, body, err)
			} else if made.Ticket != ticket || made.Done != (len(made.Results) > 0) || len(made.Results) > max(w.Count, 1) {
				t.Errorf("%d %q: %+v", status, body, made)
			}
		}
	})
}
