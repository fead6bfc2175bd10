package fal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/fal"
	"tollgate/internal/upstream/jobcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Outcomes of both kinds.
var pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

func image(count int) jobcall.Task {
	return task.Image("fal-ai/flux/dev", task.Count(count), task.Prompt("a cat & a <dog>"), task.Params(`{"seed":12345678901234567890}`))
}

func video() jobcall.Task { return task.Video("fal-ai/reel/v2/text-to-video") }

// TestSubmissions tests the path and body of each submission.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	const prompt = `"prompt":"a cat \u0026 a \u003cdog\u003e","seed":12345678901234567890`
	conformance.CheckSubmissions(t, fal.Provider, nil, map[string]conformance.Submission{
		"images": {image(2), "/fal-ai/flux/dev", `{"image_size":{"height":768,"width":1344},"num_images":2,` + prompt + `}`},
		"clip": {video(), "/fal-ai/reel/v2/text-to-video",
			`{"aspect_ratio":"16:9","duration":"5","prompt":"waves","resolution":"720p"}`},
		"clip from a picture": {task.ApplyChanges(video(), task.Refs("inline")), "/fal-ai/reel/v2/text-to-video",
			`{"duration":"5","image_url":"data:image/png;base64,YWJj","prompt":"waves","resolution":"720p"}`},
	})
	edits := map[string]any{"models": []any{map[string]any{"id": "fal-ai/flux/dev", "references": "fal-ai/flux/dev/edit"}}}
	conformance.CheckSubmissions(t, fal.Provider, edits, map[string]conformance.Submission{
		"an edit": {task.ApplyChanges(image(1), task.Refs("a", "b"), task.Mask(task.ParseReference("m"))), "/fal-ai/flux/dev/edit",
			`{"image_urls":["https://media.example/a","https://media.example/b"],"mask_url":"https://media.example/m",` + prompt + `}`},
	})
}

// TestResults tests the order and the types of results, and the lifetime of files at fal.
func TestResults(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	a, task := conformance.Line(t, fal.Provider, studio.URL(), nil), image(2)
	p, err := conformance.SubmitAndPoll(t, a, task)
	if err != nil || len(p.Results) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, r := range p.Results {
		if data, kind := conformance.Fetch(t, a, task, r); kind != "image/png" || r.Type != kind || !bytes.Equal(data, fakestudio.Picture(i)) {
			t.Errorf("result %d: %s, %d bytes", i, kind, len(data))
		}
	}
	if got := studio.Submissions()[0].Header.Get("X-Fal-Object-Lifecycle-Preference"); !json.Valid([]byte(got)) {
		t.Errorf("lifetime of files: %q", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	a, task := conformance.Line(t, fal.Provider, studio.URL(), nil), video()
	for range 2 {
		p, err := jobcall.Submit(t.Context(), a, task)
		if err != nil {
			t.Fatal(err)
		}
		if len(studio.CancelledTickets()) == 1 { // the second request is completed
			if _, err := conformance.PollToEnd(t, a, task, p.Ticket); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Cancel(t.Context(), task, p.Ticket); err != nil {
			t.Error(err)
		}
	}
	if err := a.Cancel(t.Context(), task, `{"id":"unknown","app":"fal-ai/reel"}`); err != nil {
		t.Error(err)
	}
	if n := len(studio.CancelledTickets()); n != 1 {
		t.Errorf("%d cancelled", n)
	}
}

// TestCredentialStaysOnTheOwnHost tests that addresses on another host are not used, neither from a
// response nor from a ticket.
func TestCredentialStaysOnTheOwnHost(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a call came to another host: %s %v", r.URL, r.Header)
	}))
	t.Cleanup(other.Close)
	var own *httptest.Server
	requests := make(chan string, 8)
	own = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Key "+conformance.Secret {
			t.Errorf("credential %q", r.Header.Get("Authorization"))
		}
		if r.Method == http.MethodPost {
			fmt.Fprintf(w, `{"request_id":"abc","status_url":"%s/steal","response_url":"%s/elsewhere/abc","cancel_url":"ftp://x/y"}`,
				other.URL, own.URL)
			return
		}
		requests <- r.Method + " " + r.URL.Path
		fmt.Fprint(w, `{"status":"COMPLETED","images":[{"url":"https://x/0"}]}`)
	}))
	t.Cleanup(own.Close)
	a, task := conformance.Line(t, fal.Provider, own.URL, nil), image(1)
	p, err := jobcall.Submit(t.Context(), a, task)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"abc","app":"fal-ai/flux","response":"` + own.URL + `/elsewhere/abc"}`; p.Ticket != want {
		t.Errorf("ticket %s, want %s", p.Ticket, want)
	}
	forged := `{"id":"abc","app":"fal-ai/flux","status":"` + other.URL + `","response":"` +
		strings.Replace(own.URL, "http://", "http://u:p@", 1) + `/x","cancel":"` + other.URL + `"}`
	for _, ticket := range []string{p.Ticket, forged} {
		if p, err := a.Poll(t.Context(), task, ticket); err != nil || !p.Done {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if err := a.Cancel(t.Context(), task, forged); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"GET /fal-ai/flux/requests/abc/status", "GET /elsewhere/abc", "GET /fal-ai/flux/requests/abc/status",
		"GET /fal-ai/flux/requests/abc", "PUT /fal-ai/flux/requests/abc/cancel"} {
		if got := <-requests; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestUnsuitable tests that tasks impossible for fal are not sent.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	of := func(change task.Change) jobcall.Task { return task.ApplyChanges(image(1), change) }
	conformance.CheckUnsuitable(t, fal.Provider, map[string]jobcall.Task{
		"no model":   of(task.Model("flux")),
		"dots":       of(task.Model("fal-ai/../flux")),
		"query":      of(task.Model("fal-ai/flux?x=1")),
		"too large":  of(task.References(jobcall.Reference{Type: "video/mp4", Size: 31 << 20})),
		"own field":  of(task.Params(`{"num_images":4}`)),
		"own field2": of(task.Params(`{"image_urls":["http://10.0.0.1"]}`)),
	})
	unreadable := task.Reference("image/png", "", "abc")
	unreadable.Open = func(context.Context) (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF }
	conformance.CheckUnsent(t, fal.Provider, fakestudio.NewFal(t), map[string]conformance.UnsentTask{
		"our store": {Task: of(task.References(unreadable)), Want: pictures.Refused.WithNext(upstream.NextLater)},
	})
}

// TestAcceptedWithoutAName tests a good status without a request ID: the provider may be working.
func TestAcceptedWithoutAName(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"request_id":"../x"}`, `<html>`, `[]`} {
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, fal.Provider, 200, body), image(1))
		if got := conformance.JobFailure(t, err); !got.Lost {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// FuzzAnswers tests that every error is a failure, and every done task has results with valid
// addresses.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{`{"status":"COMPLETED"}`, `{"images":[{"url":"https://x/1"}],"has_nsfw_concepts":[false,1]}`,
		detail("no_media_generated"), `{"detail":"x","error_type":"runner_error"}`, `{"video":"https://x","has_nsfw_concepts":true}`,
		`{"request_id":"a","status_url":"http://[::1"}`, `[1]`, ``} {
		f.Add([]byte(seed), 200, "", true)
		f.Add([]byte(seed), 422, "true", false)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int, retryable string, still bool) {
		if status < 200 || status > 599 {
			status = 500
		}
		a, err := fal.New(upstream.Target{Line: "main", Key: conformance.Secret}, answers(func(r *http.Request) *http.Response {
			answer := body
			if still && strings.HasSuffix(r.URL.Path, "/status") {
				answer = []byte(`{"status":"COMPLETED"}`)
			}
			return &http.Response{StatusCode: status, Header: http.Header{"X-Fal-Retryable": {retryable}},
				Body: io.NopCloser(bytes.NewReader(answer))}
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range []jobcall.Task{image(2), video()} {
			ticket := `{"id":"a","app":"b/c"}`
			if p, err := jobcall.Submit(t.Context(), a, task); err == nil {
				ticket = p.Ticket
			} else {
				_ = conformance.JobFailure(t, err).UserMessage()
			}
			p, err := a.Poll(t.Context(), task, ticket)
			if err != nil {
				_ = conformance.JobFailure(t, err).UserMessage()
			} else if p.Ticket != ticket || p.Done != (len(p.Results) > 0) || len(p.Results) > task.Count {
				t.Errorf("%+v", p)
			}
		}
	})
}

// answers is a transport that returns the function's responses.
type answers func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
