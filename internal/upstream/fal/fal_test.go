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

	"tollgate/internal/fault"
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

func TestImagesAreMade(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	studio.Expect(fakestudio.Behaviour{Polls: 2})
	a, w := conformance.Line(t, fal.Provider, studio.URL(), nil), image(2)
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil || p.Done || p.Ticket == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	// Any node can continue with only the ticket.
	p, err = conformance.PollToEnd(t, conformance.Line(t, fal.Provider, studio.URL(), nil), w, p.Ticket)
	if err != nil || len(p.Results) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, r := range p.Results {
		if data, kind := conformance.Fetch(t, a, w, r); kind != "image/png" || r.Type != kind || !bytes.Equal(data, fakestudio.Picture(i)) {
			t.Errorf("result %d: %s, %d bytes", i, kind, len(data))
		}
	}
	sent := studio.Submissions()[0]
	want := `{"image_size":{"height":768,"width":1344},"num_images":2,"prompt":"a cat \u0026 a \u003cdog\u003e","seed":12345678901234567890}`
	if string(sent.Body) != want || sent.Path != "/fal-ai/flux/dev" {
		t.Errorf("sent to %s: %s\nwant %s", sent.Path, sent.Body, want)
	}
	if got := sent.Header.Get("X-Fal-Object-Lifecycle-Preference"); !json.Valid([]byte(got)) {
		t.Errorf("life of files: %q", got)
	}
}

func TestClipIsMade(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	a, w := conformance.Line(t, fal.Provider, studio.URL(), nil), video()
	w.References = []jobcall.Reference{task.Reference("image/png", "", string(fakestudio.Picture(1)))}
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = conformance.PollToEnd(t, a, w, p.Ticket); err != nil || len(p.Results) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if data, kind := conformance.Fetch(t, a, w, p.Results[0]); kind != "video/mp4" || !bytes.Equal(data, fakestudio.Clip()) {
		t.Errorf("%s, %d bytes", kind, len(data))
	}
	sent := string(studio.Submissions()[0].Body)
	for _, part := range []string{`"aspect_ratio":"16:9"`, `"duration":"5"`, `"resolution":"720p"`, `"image_url":"data:image/png;base64,`} {
		if !strings.Contains(sent, part) {
			t.Errorf("%s lacks %s", sent, part)
		}
	}
}

func TestReferencesByAddress(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	options := map[string]any{"models": []any{map[string]any{"id": "fal-ai/flux/dev", "references": "fal-ai/flux/dev/edit"}}}
	a := conformance.Line(t, fal.Provider, studio.URL(), options)
	w := image(1)
	w.References = []jobcall.Reference{
		{Type: "image/png", Size: 5, URL: "https://media.example/a"}, {Type: "image/png", Size: 5, URL: "https://media.example/b"},
	}
	w.Mask = &jobcall.Reference{Type: "image/png", Size: 5, URL: "https://media.example/m"}
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conformance.PollToEnd(t, a, w, p.Ticket); err != nil {
		t.Error(err)
	}
	sent := studio.Submissions()[0]
	want := `"image_urls":["https://media.example/a","https://media.example/b"],"mask_url":"https://media.example/m"`
	if sent.Path != "/fal-ai/flux/dev/edit" || !strings.Contains(string(sent.Body), want) {
		t.Errorf("%s: %s", sent.Path, sent.Body)
	}
}

// TestPollsThatSayNothing tests that a response not about the task leaves the task running.
func TestPollsThatSayNothing(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	a, w := conformance.Line(t, fal.Provider, studio.URL(), nil), video()
	for name, body := range map[string]string{"no word of fal": `{"x":1}`, "still at it": `{"detail":"Request is still in progress"}`} {
		studio.Expect(fakestudio.Behaviour{Failed: result(400, "", body)})
		p, err := jobcall.Submit(t.Context(), a, w)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conformance.PollToEnd(t, a, w, p.Ticket)
		if got := conformance.JobFailure(t, err); got.Next != upstream.NextPoll {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLostWorks(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	a := conformance.Line(t, fal.Provider, studio.URL(), nil)
	studio.Expect(fakestudio.Behaviour{Lost: true})
	p, err := jobcall.Submit(t.Context(), a, video())
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Poll(t.Context(), video(), p.Ticket)
	conformance.CheckOutcome(t, "forgotten", err, clips.Gone)
	_, err = a.Poll(t.Context(), image(1), p.Ticket)
	conformance.CheckOutcome(t, "forgotten", err, clips.Broken)
	_, err = a.Poll(t.Context(), video(), "no ticket")
	conformance.CheckOutcome(t, "no ticket", err, clips.Gone)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	a, w := conformance.Line(t, fal.Provider, studio.URL(), nil), video()
	for range 2 {
		p, err := jobcall.Submit(t.Context(), a, w)
		if err != nil {
			t.Fatal(err)
		}
		if len(studio.Cancelled()) == 1 { // the second is completed
			if _, err := conformance.PollToEnd(t, a, w, p.Ticket); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Cancel(t.Context(), w, p.Ticket); err != nil {
			t.Error(err)
		}
	}
	if err := a.Cancel(t.Context(), w, `{"id":"unknown","app":"fal-ai/reel"}`); err != nil {
		t.Error(err)
	}
	if n := len(studio.Cancelled()); n != 1 {
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
	a, w := conformance.Line(t, fal.Provider, own.URL, nil), image(1)
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"abc","app":"fal-ai/flux","response":"` + own.URL + `/elsewhere/abc"}`; p.Ticket != want {
		t.Errorf("ticket %s, want %s", p.Ticket, want)
	}
	forged := `{"id":"abc","app":"fal-ai/flux","status":"` + other.URL + `","response":"` +
		strings.Replace(own.URL, "http://", "http://u:p@", 1) + `/x","cancel":"` + other.URL + `"}`
	for _, ticket := range []string{p.Ticket, forged} {
		if p, err := a.Poll(t.Context(), w, ticket); err != nil || !p.Done {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if err := a.Cancel(t.Context(), w, forged); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"GET /fal-ai/flux/requests/abc/status", "GET /elsewhere/abc", "GET /fal-ai/flux/requests/abc/status",
		"GET /fal-ai/flux/requests/abc", "PUT /fal-ai/flux/requests/abc/cancel"} {
		if got := <-requests; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestUnsuitableWorksAreNotSent(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	big := jobcall.Reference{Type: "video/mp4", Size: 31 << 20}
	for name, change := range map[string]func(*jobcall.Task){
		"no model":   func(w *jobcall.Task) { w.Model = "flux" },
		"dots":       func(w *jobcall.Task) { w.Model = "fal-ai/../flux" },
		"query":      func(w *jobcall.Task) { w.Model = "fal-ai/flux?x=1" },
		"too large":  func(w *jobcall.Task) { w.References = []jobcall.Reference{big} },
		"own field":  func(w *jobcall.Task) { w.Params = json.RawMessage(`{"num_images":4}`) },
		"own field2": func(w *jobcall.Task) { w.Params = json.RawMessage(`{"image_urls":["http://10.0.0.1"]}`) },
	} {
		w := image(1)
		change(&w)
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, fal.Provider, studio.URL(), nil), w)
		conformance.CheckOutcome(t, name, err, pictures.Refused)
	}
	broken := image(1)
	broken.References = []jobcall.Reference{{Type: "image/png", Size: 3, Open: func(context.Context) (io.ReadCloser, error) {
		return nil, io.ErrUnexpectedEOF
	}}}
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, fal.Provider, studio.URL(), nil), broken)
	conformance.CheckOutcome(t, "our store", err, conformance.NewOutcome(fault.UpstreamError, upstream.NextLater, upstream.HealthNone))
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d submissions", n)
	}
}

// TestAcceptedWithoutAName tests a good status without a request ID: the provider may be working.
func TestAcceptedWithoutAName(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"request_id":"../x"}`, `<html>`, `[]`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, fal.Provider, server.URL, nil), image(1))
		if got := conformance.JobFailure(t, err); !got.Lost {
			t.Errorf("%s: %+v", body, got)
		}
		server.Close()
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
		for _, w := range []jobcall.Task{image(2), video()} {
			ticket := `{"id":"a","app":"b/c"}`
			if p, err := jobcall.Submit(t.Context(), a, w); err == nil {
				ticket = p.Ticket
			} else {
				_ = conformance.JobFailure(t, err).UserMessage()
			}
			p, err := a.Poll(t.Context(), w, ticket)
			if err != nil {
				_ = conformance.JobFailure(t, err).UserMessage()
			} else if p.Ticket != ticket || p.Done != (len(p.Results) > 0) || len(p.Results) > w.Count {
				t.Errorf("%+v", p)
			}
		}
	})
}

// answers is a transport with its own responses.
type answers func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
