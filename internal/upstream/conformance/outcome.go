package conformance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Outcome holds the compared fields of an upstream.JobFailure, for the tables of adapters' tests.
type Outcome struct {
	Job    fault.Code
	Next   upstream.Next
	Health upstream.Health
	Param  string
	Lost   bool
}

// NewOutcome returns an outcome with an empty Param and without Lost.
func NewOutcome(job fault.Code, next upstream.Next, health upstream.Health) Outcome {
	return Outcome{Job: job, Next: next, Health: health}
}

// WithNext returns v with another next step.
func (v Outcome) WithNext(next upstream.Next) Outcome {
	v.Next = next
	return v
}

// Outcomes are the outcomes common to most tables.
type Outcomes struct {
	Refused       Outcome // a rejected parameter, or combination of parameters
	Flagged       Outcome // flagged input
	FlaggedOutput Outcome // flagged output
	Material      Outcome // an unusable reference
	Account       Outcome // the gateway's account: key, balance, permission
	Model         Outcome // the model is missing for the gateway's account
	Busy          Outcome // the gateway's rate limit
	Broken        Outcome // the provider failed on a submission
	Lost          Outcome // the response to a submission was lost
	Failed        Outcome // an accepted task failed
	Empty         Outcome // the task succeeded without a result
	Gone          Outcome // the task is unknown
}

// OutcomesOf returns the outcomes of a kind of tasks.
func OutcomesOf(kind string) Outcomes {
	v := Outcomes{
		Refused:  NewOutcome(fault.UpstreamError, upstream.NextLine, upstream.HealthNone),
		Flagged:  NewOutcome(fault.ModerationBlocked, upstream.NextNone, upstream.HealthNone),
		Material: NewOutcome(fault.UpstreamError, upstream.NextLine, upstream.HealthNone),
		Account:  NewOutcome(fault.UpstreamError, upstream.NextLine, upstream.HealthCredential),
		Model:    NewOutcome(fault.UpstreamError, upstream.NextLine, upstream.HealthModel),
		Busy:     NewOutcome(fault.UpstreamError, upstream.NextLater, upstream.HealthCool),
		Broken:   NewOutcome(fault.UpstreamError, upstream.NextLine, upstream.HealthFail),
		Failed:   NewOutcome(fault.UpstreamError, upstream.NextLine, upstream.HealthFail),
		Empty:    NewOutcome(fault.UpstreamError, upstream.NextSame, upstream.HealthHalf),
		Gone:     NewOutcome(fault.UpstreamError, upstream.NextLine, upstream.HealthFail),
	}
	v.FlaggedOutput, v.Lost = v.Flagged, v.Broken
	v.Lost.Lost = true
	if kind == upstream.KindVideo {
		v.Refused.Job, v.Flagged.Job, v.Material.Job = fault.InvalidRequest, fault.ContentPolicy, fault.InvalidMaterial
		v.Failed.Job, v.Empty.Job, v.Gone.Job = fault.RenderFailed, fault.RenderFailed, fault.UpstreamUnstable
		v.FlaggedOutput = NewOutcome(fault.ContentPolicy, upstream.NextSame, upstream.HealthNone)
	}
	return v
}

// OutcomeOf returns the outcome of a generator's error. The test fails if err is not a valid
// failure.
func OutcomeOf(t testing.TB, err error) Outcome {
	t.Helper()
	f := asJobFailure(t, "outcome", err)
	return Outcome{f.Job, f.Next, f.Health, f.Param, f.Lost}
}

// CheckOutcome fails the test if a generator's error does not have the outcome want.
func CheckOutcome(t testing.TB, what string, err error, want Outcome) {
	t.Helper()
	if got := OutcomeOf(t, err); got != want {
		t.Errorf("%s: outcome %+v, want %+v (%v)", what, got, want, err)
	}
}

// JobFailure returns a generator's error as a failure.
func JobFailure(t testing.TB, err error) *upstream.JobFailure {
	t.Helper()
	return asJobFailure(t, "job call", err)
}

// ChatFailure returns the error of a chat call as a failure.
func ChatFailure(t testing.TB, err error) *upstream.Failure {
	t.Helper()
	return asFailure(t, "chat call", err)
}

// Line opens a line of an image or video provider.
func Line(t testing.TB, provider, base string, options map[string]any) jobcall.Generator {
	t.Helper()
	return MediaProvider{Provider: provider}.generator(t, base, options)
}

// LineWithReply opens a line to a provider with one response to every call.
func LineWithReply(t testing.TB, provider string, status int, body string) jobcall.Generator {
	t.Helper()
	return Line(t, provider, serve(t, document(status, body)), nil)
}

// LineWithScript opens a line without a connection. Every call gets the response last set with answer.
func LineWithScript(t testing.TB, provider string) (g jobcall.Generator, answer func(body []byte, status int)) {
	t.Helper()
	var last script
	a := openWith(t, &last, provider, "http://127.0.0.1", nil)
	return a.(jobcall.Generator), func(body []byte, status int) { last = script{body, status} }
}

// script is a transport with one response for every call.
type script struct {
	body   []byte
	status int
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(s.body)), Request: r}, nil
}

// SubmitAndPoll submits a task and polls until the task is done or has failed.
func SubmitAndPoll(t testing.TB, g jobcall.Generator, task jobcall.Task) (*jobcall.TaskStatus, error) {
	t.Helper()
	status, err := jobcall.Submit(t.Context(), g, task)
	if err != nil || status.Done {
		return status, err
	}
	return PollToEnd(t, g, task, status.Ticket)
}

// PollToEnd polls until the task is done or has failed.
func PollToEnd(t testing.TB, g jobcall.Generator, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	t.Helper()
	for range 20 {
		status, err := g.Poll(t.Context(), task, ticket)
		if err != nil {
			return nil, err
		}
		if checkPolled(t, task, ticket, status); status.Done {
			return status, nil
		}
	}
	t.Fatal("the task is still running after 20 polls")
	return nil, nil
}

// Fetch downloads a result of a task.
func Fetch(t testing.TB, g jobcall.Generator, task jobcall.Task, r jobcall.Result) (data []byte, kind string) {
	t.Helper()
	data, kind, err := fetch(t, g, task, r)
	if err != nil {
		t.Fatal(err)
	}
	return data, kind
}

// OutcomeAfter returns the outcome of a task after a behaviour of a fake. The task must fail, at its
// submission or later.
func OutcomeAfter(t testing.TB, provider string, studio fakestudio.Fake, behaviour fakestudio.Behaviour, task jobcall.Task) Outcome {
	t.Helper()
	studio.Expect(behaviour)
	_, err := SubmitAndPoll(t, Line(t, provider, studio.URL(), nil), task)
	return OutcomeOf(t, err)
}

// Case is a behaviour of a fake and the expected outcome of a task.
type Case = struct {
	Behaviour fakestudio.Behaviour
	Want      Outcome
}

// CheckOutcomes checks the outcome of a task for each behaviour, with a new fake per case. The task
// must be submitted once.
func CheckOutcomes(t *testing.T, provider string, task jobcall.Task, cases map[string]Case) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.ProviderOf(t, provider).Open(t)
			if got := OutcomeAfter(t, provider, studio, tt.Behaviour, task); got != tt.Want {
				t.Errorf("outcome %+v, want %+v", got, tt.Want)
			}
			if n := len(studio.Submissions()); n != 1 {
				t.Errorf("%d submissions, want 1", n)
			}
		})
	}
}

// CheckFailures is CheckOutcomes for cases named by their bodies.
func CheckFailures(t *testing.T, provider string, task jobcall.Task, cases []Case) {
	t.Helper()
	named := map[string]Case{}
	for _, tt := range cases {
		name := fmt.Sprintf("%d %s%s", tt.Behaviour.Status, tt.Behaviour.Body, tt.Behaviour.Failure)
		if _, twice := named[name]; twice {
			t.Fatalf("two cases are called %q", name)
		}
		named[name] = tt
	}
	CheckOutcomes(t, provider, task, named)
}

// Reply is a provider's response to a submission, the expected outcome and a part of the message for
// the client.
type Reply = struct {
	Status  int
	Body    string
	Want    Outcome
	Message string
}

// CheckReplies checks the outcome of a submission for each response.
func CheckReplies(t *testing.T, provider string, task jobcall.Task, replies []Reply) {
	t.Helper()
	for _, r := range replies {
		_, err := jobcall.Submit(t.Context(), LineWithReply(t, provider, r.Status, r.Body), task)
		got, message := OutcomeOf(t, err), JobFailure(t, err).UserMessage()
		if got != r.Want || !strings.Contains(message, r.Message) {
			t.Errorf("%s, %d %s: outcome %+v, want %+v; message %q, want %q", task.Kind, r.Status, r.Body, got, r.Want, message, r.Message)
		}
	}
}

// KindsCase is a behaviour of a fake and the expected outcomes of an image and a video.
type KindsCase = struct {
	Behaviour    fakestudio.Behaviour
	Image, Video Outcome
}

// CheckKinds is CheckOutcomes for an image and a video.
func CheckKinds(t *testing.T, provider string, image, video jobcall.Task, cases map[string]KindsCase) {
	t.Helper()
	images, videos := map[string]Case{}, map[string]Case{}
	for name, tt := range cases {
		images["image, "+name], videos["video, "+name] = Case{tt.Behaviour, tt.Image}, Case{tt.Behaviour, tt.Video}
	}
	CheckOutcomes(t, provider, image, images)
	CheckOutcomes(t, provider, video, videos)
}

// FuzzAnswers fuzzes the responses of a provider. Every response must lead to a valid failure or a valid
// status. Each seed is tried with a good status and with error statuses.
func FuzzAnswers(f *testing.F, provider, ticket string, tasks []jobcall.Task, seeds ...string) {
	for _, seed := range append(seeds, ``, `{`, `<html>`, `{"error":{"code":5}}`, `{"detail":[{"msg":7}]}`) {
		for _, code := range []int{200, 400, 403, 422, 503} {
			f.Add(code, seed)
		}
	}
	f.Fuzz(func(t *testing.T, code int, body string) {
		if code < 200 || code > 599 {
			return
		}
		g := LineWithReply(t, provider, code, body)
		for _, task := range tasks {
			status, err := jobcall.Submit(t.Context(), g, task)
			if err == nil {
				checkAccepted(t, g, task, status)
			} else {
				_ = asJobFailure(t, body, err)
			}
			if g.Blocks(task) {
				continue
			}
			if status, err = g.Poll(t.Context(), task, ticket); err != nil {
				_ = asJobFailure(t, body, err)
			} else {
				checkPolled(t, task, ticket, status)
			}
		}
	})
}
