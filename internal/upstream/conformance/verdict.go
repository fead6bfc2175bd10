package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Verdict is what the failure of a job decides, for an adapter's own tables.
type Verdict struct {
	Job    fault.Code
	Next   upstream.Next
	Health upstream.Health
}

// Verdicts are those that most tables share.
type Verdicts struct {
	Refused       Verdict // a parameter, or a combination of them
	Flagged       Verdict // what went in
	FlaggedOutput Verdict // what came out
	Material      Verdict // a reference
	Account       Verdict // ours: key, balance, permission
	Busy          Verdict // our rate
	Broken        Verdict // the provider failed on a submission
	Failed        Verdict // a task that was accepted failed
	Empty         Verdict // it ended well and brought nothing
	Gone          Verdict // it is no longer known
}

// VerdictsOf are the verdicts of a kind of tasks.
func VerdictsOf(kind string) Verdicts {
	v := Verdicts{
		Refused:  Verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthNone},
		Flagged:  Verdict{fault.ModerationBlocked, upstream.NextNone, upstream.HealthNone},
		Material: Verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthNone},
		Account:  Verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential},
		Busy:     Verdict{fault.UpstreamError, upstream.NextLater, upstream.HealthCool},
		Broken:   Verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail},
		Failed:   Verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail},
		Empty:    Verdict{fault.UpstreamError, upstream.NextSame, upstream.HealthHalf},
		Gone:     Verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail},
	}
	v.FlaggedOutput = v.Flagged
	if kind == upstream.KindVideo {
		v.Refused.Job, v.Flagged.Job, v.Material.Job = fault.InvalidRequest, fault.ContentPolicy, fault.InvalidMaterial
		v.Failed.Job, v.Empty.Job, v.Gone.Job = fault.RenderFailed, fault.RenderFailed, fault.UpstreamUnstable
		v.FlaggedOutput = Verdict{fault.ContentPolicy, upstream.NextSame, upstream.HealthNone}
	}
	return v
}

// VerdictOf is what an error of a generator decides. The test fails for an error
// that is none.
func VerdictOf(t testing.TB, err error) Verdict {
	t.Helper()
	var f *upstream.JobFailure
	if !errors.As(err, &f) || f.Failure == nil {
		t.Fatalf("error %v (%T), want a *upstream.JobFailure", err, err)
	}
	sees(t, "a verdict", f.Error(), f.Told())
	return Verdict{f.Job, f.Next, f.Health}
}

// Line opens a line of a provider of images and video.
func Line(t testing.TB, provider, base string, options map[string]any) jobcall.Generator {
	t.Helper()
	return Making{Provider: provider}.generator(t, base, options)
}

// Answering opens a line whose provider answers everything in the same way.
func Answering(t testing.TB, provider string, status int, body string) jobcall.Generator {
	t.Helper()
	return Line(t, provider, saying(t, document(status, body)), nil)
}

// Reference is one with bytes of its own; url may be empty.
func Reference(kind, url, data string) jobcall.Reference {
	return jobcall.Reference{Type: kind, Size: int64(len(data)), URL: url,
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(data))), nil }}
}

// Polled submits a task and polls it to its end, which may be a failure.
func Polled(t testing.TB, g jobcall.Generator, w jobcall.Task) (*jobcall.TaskStatus, error) {
	t.Helper()
	made, err := jobcall.Submit(t.Context(), g, w)
	for range 20 {
		if err != nil || made.Done {
			return made, err
		}
		made, err = g.Poll(t.Context(), w, made.Ticket)
	}
	t.Fatal("the task does not end")
	return nil, nil
}

// Answers fuzzes what a provider answers with: whatever it is, there is a
// verdict, or something to go on with. Each seed is tried as a good answer and as
// some that are none.
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
			} else if made.Done != (len(made.Results) > 0) || len(made.Results) > max(w.Count, 1) {
				t.Errorf("%d %q: %+v", status, body, made)
			}
		}
	})
}
