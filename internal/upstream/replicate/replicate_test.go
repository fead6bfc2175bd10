package replicate_test

import (
	"bytes"
	"fmt"
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
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/replicate"
)

const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Outcomes of both kinds.
var pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

func image(count int) jobcall.Task {
	return task.Image("easel/flux", task.Count(count), task.Params(`{"seed":7}`))
}

func video() jobcall.Task { return task.Video("reel/one:" + version) }

func TestImagesAreMade(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	studio.Expect(fakestudio.Behaviour{Polls: 2})
	a, w := conformance.Line(t, replicate.Provider, studio.URL(), nil), image(3)
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil || p.Done || p.Ticket == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	// Any node can continue with only the ticket.
	p, err = conformance.PollToEnd(t, conformance.Line(t, replicate.Provider, studio.URL(), nil), w, p.Ticket)
	if err != nil || len(p.Results) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, r := range p.Results {
		if data, kind := conformance.Fetch(t, a, w, r); kind != "image/png" || !bytes.Equal(data, fakestudio.Picture(i)) {
			t.Errorf("result %d: %s, %d bytes", i, kind, len(data))
		}
	}
	sent := studio.Submissions()[0]
	want := `{"input":{"aspect_ratio":"16:9","num_outputs":3,"prompt":"a lighthouse","resolution":"1K","seed":7}}`
	if string(sent.Body) != want || sent.Path != "/v1/models/easel/flux/predictions" {
		t.Errorf("sent to %s: %s\nwant %s", sent.Path, sent.Body, want)
	}
}

// TestClipIsMade checks a pinned version, and references by address, inline and uploaded.
func TestClipIsMade(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	a, w := conformance.Line(t, replicate.Provider, studio.URL(), nil), video()
	large := bytes.Repeat([]byte("large"), 60_000)
	w.References = []jobcall.Reference{task.Reference("image/png", "", string(fakestudio.Picture(1))),
		{Type: "image/png", Size: 9 << 30, URL: "https://media.example/a"},
		task.Reference("image/png", "", string(large))}
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
	sent := studio.Submissions()
	if len(sent) != 1 || sent[0].Path != "/v1/predictions" {
		t.Fatalf("%d submissions to %s", len(sent), sent[0].Path)
	}
	for _, part := range []string{`"version":"` + version + `"`, `"duration":5`, `"resolution":"720p"`,
		`"input_images":["data:image/png;base64,`, `","https://media.example/a","` + studio.URL() + `/files/file000001"]`} {
		if !strings.Contains(string(sent[0].Body), part) {
			t.Errorf("%s lacks %s", sent[0].Body, part)
		}
	}
	if files := studio.Uploaded(); len(files) != 1 || !bytes.Equal(files[0], large) {
		t.Errorf("%d files uploaded", len(files))
	}
}

func TestModelsAreFound(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	a := conformance.Line(t, replicate.Provider, studio.URL(), nil)
	for model, want := range map[string]string{
		"owner/name":             "/v1/models/owner/name/predictions",
		"deployments/owner/name": "/v1/deployments/owner/name/predictions",
		"owner/name:" + version:  "/v1/predictions",
		version:                  "/v1/predictions",
	} {
		w := image(1)
		w.Model = model
		if _, err := jobcall.Submit(t.Context(), a, w); err != nil {
			t.Errorf("%s: %v", model, err)
		}
		sent := studio.Submissions()
		if got := sent[len(sent)-1].Path; got != want {
			t.Errorf("%s went to %s, want %s", model, got, want)
		}
	}
	before := len(studio.Submissions())
	for _, model := range []string{"", "name", "owner/name/more", "../name", "owner/name:latest", "owner/na?me"} {
		w := image(1)
		w.Model = model
		_, err := jobcall.Submit(t.Context(), a, w)
		conformance.CheckOutcome(t, model, err, pictures.Refused)
	}
	if n := len(studio.Submissions()); n != before {
		t.Errorf("%d submissions", n-before)
	}
}

func TestRefusedSubmissions(t *testing.T) {
	t.Parallel()
	same := func(v conformance.Outcome) [2]conformance.Outcome { return [2]conformance.Outcome{v, v} }
	for name, tt := range map[string]struct {
		status int
		body   string
		want   [2]conformance.Outcome // of an image, of a video
	}{
		"token": {401, `{"title":"Unauthenticated","detail":"Bad token ` + conformance.Secret + `","status":401}`,
			same(clips.Account)},
		"billing": {402, `{"title":"Insufficient credit","detail":"You have insufficient credit","status":402}`,
			same(clips.Account)},
		"model": {404, `{"title":"Not found","detail":"The requested resource could not be found.","status":404}`,
			same(clips.Model)},
		"throttled": {429, `{"title":"Too many requests","detail":"Request was throttled. Expected available in 1 second.","status":429}`,
			same(clips.Busy)},
		"own fault": {500, `{"title":"Internal","detail":"Oops","status":500}`,
			same(clips.Broken)},
		"page": {503, `<html>away</html>`, same(clips.Broken)},
		"input": {422, `{"title":"Input validation failed","detail":"- input.duration: must be one of 4, 8","status":422,` +
			`"invalid_fields":[{"field":"input.duration"}]}`, [2]conformance.Outcome{pictures.Refused, clips.Refused}},
		"bad request": {400, `{"title":"Bad request","detail":"Malformed","status":400}`,
			[2]conformance.Outcome{pictures.Refused, clips.Refused}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewReplicate(t)
			how := fakestudio.Behaviour{Status: tt.status, Body: tt.body, Header: http.Header{"Retry-After": {"3"}}}
			studio.Expect(how, how)
			a := conformance.Line(t, replicate.Provider, studio.URL(), nil)
			for i, w := range []jobcall.Task{image(1), video()} {
				_, err := jobcall.Submit(t.Context(), a, w)
				got := conformance.JobFailure(t, err)
				conformance.CheckOutcome(t, w.Kind, err, tt.want[i])
				if got.Lost || got.RetryAfter == 0 {
					t.Errorf("lost %v, wait %s", got.Lost, got.RetryAfter)
				}
			}
			if n := len(studio.Submissions()); n != 2 {
				t.Errorf("%d submissions", n)
			}
		})
	}
}

func TestFailedWorks(t *testing.T) {
	t.Parallel()
	const (
		no   = upstream.HealthNone
		fail = upstream.HealthFail
		half = upstream.HealthHalf
		line = upstream.NextLine
		same = upstream.NextSame
		none = upstream.NextNone
	)
	failed := func(text string) string { return fmt.Sprintf(`{"status":"failed","error":%q}`, text) }
	for name, tt := range map[string]struct {
		failed string
		image  conformance.Outcome
		video  conformance.Outcome
	}{
		"sensitive": {failed("The input or output was flagged as sensitive. Please try again with different inputs. (E005)"),
			pictures.Flagged, clips.Flagged},
		"sensitive clip": {failed("The output was flagged as sensitive (E005)"), pictures.Flagged,
			clips.FlaggedOutput},
		"code alone": {failed("Rejected (E005)"), pictures.Flagged, clips.Flagged},
		"nsfw": {failed("NSFW content detected. Try running it again, or try a different prompt."),
			pictures.Flagged, clips.FlaggedOutput},
		"memory": {failed("CUDA out of memory (E001)"), clips.Broken, clips.Failed},
		"demand": {failed("Service is currently unavailable due to high demand. Please try again later. (E003)"),
			clips.Busy,
			clips.Busy},
		"slow": {failed("Request timed out (E004)"), clips.Broken, conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"slow start": {failed("E6716: timed out while starting"), clips.Broken,
			conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"interrupted": {failed("Prediction interrupted; please retry (code: PA)"), conformance.NewOutcome(fault.UpstreamError, same, fail),
			conformance.NewOutcome(fault.RenderFailed, same, fail)},
		"picture": {failed("cannot identify image file '/tmp/x'"), pictures.Refused,
			clips.Material},
		"no reason":  {`{"status":"failed","error":null}`, clips.Broken, clips.Failed},
		"credential": {failed("weird " + conformance.Secret), clips.Broken, clips.Failed},
		"canceled":   {`{"status":"canceled"}`, clips.Broken, clips.Failed},
		"aborted":    {`{"status":"aborted"}`, clips.Broken, conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"nothing":    {`{"status":"succeeded","output":[]}`, pictures.Empty, clips.Empty},
		"a text": {`{"status":"succeeded","output":"just words"}`, pictures.Empty,
			clips.Empty},
		"removed": {`{"status":"succeeded","output":null,"data_removed":true}`, clips.Broken,
			clips.Gone},
		"other status": {`{"status":"dreaming"}`, conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, fail),
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, fail)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewReplicate(t)
			studio.Expect(fakestudio.Behaviour{Failed: tt.failed}, fakestudio.Behaviour{Failed: tt.failed})
			a := conformance.Line(t, replicate.Provider, studio.URL(), nil)
			for i, w := range []jobcall.Task{image(1), video()} {
				p, err := jobcall.Submit(t.Context(), a, w)
				if err != nil {
					t.Fatal(err)
				}
				_, err = conformance.PollToEnd(t, a, w, p.Ticket)
				conformance.CheckOutcome(t, w.Kind, err, []conformance.Outcome{tt.image, tt.video}[i])
			}
		})
	}
}

// TestOutputs checks answers with a text, a list and an object of addresses.
func TestOutputs(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	a := conformance.Line(t, replicate.Provider, studio.URL(), nil)
	for output, want := range map[string]string{
		`"https://x/0"`:                                "https://x/0",
		`["https://x/0","https://x/1"]`:                "https://x/0 https://x/1",
		`["https://x/0","https://x/1","http://x"]`:     "https://x/0 https://x/1",
		`{"text":"a","files":[{"url":"https://x/0"}]}`: "https://x/0",
		`[null,7,"file:///x","https://x/0"]`:           "https://x/0",
	} {
		studio.Expect(fakestudio.Behaviour{Failed: `{"status":"succeeded","output":` + output + `}`})
		w := image(2)
		p, err := jobcall.Submit(t.Context(), a, w)
		if err != nil {
			t.Fatal(err)
		}
		p, err = conformance.PollToEnd(t, a, w, p.Ticket)
		if err != nil {
			t.Errorf("%s: %v", output, err)
			continue
		}
		var got []string
		for _, r := range p.Results {
			got = append(got, r.Ref)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", output, got)
		}
	}
}

func TestLostWorks(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	a := conformance.Line(t, replicate.Provider, studio.URL(), nil)
	studio.Expect(fakestudio.Behaviour{Lost: true})
	p, err := jobcall.Submit(t.Context(), a, video())
	if err != nil {
		t.Fatal(err)
	}
	for _, ticket := range []string{p.Ticket, "unknown", "../files", ""} {
		_, err = a.Poll(t.Context(), video(), ticket)
		conformance.CheckOutcome(t, ticket, err, clips.Gone)
		_, err = a.Poll(t.Context(), image(1), ticket)
		conformance.CheckOutcome(t, ticket, err, clips.Broken)
	}
	for _, body := range []string{`{}`, `{"id":"../x"}`, `[]`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, replicate.Provider, server.URL, nil), image(1))
		if got := conformance.JobFailure(t, err); !got.Lost {
			t.Errorf("%s: %+v", body, got)
		}
		server.Close()
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	a, w := conformance.Line(t, replicate.Provider, studio.URL(), nil), video()
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	for _, ticket := range []string{p.Ticket, "unknown"} {
		if err := a.Cancel(t.Context(), w, ticket); err != nil {
			t.Error(err)
		}
	}
	if got := studio.Cancelled(); len(got) != 1 || got[0] != p.Ticket {
		t.Errorf("cancelled %v", got)
	}
}

// TestUploadsThatFail checks that Lost is not set after a failed upload, because nothing was
// submitted.
func TestUploadsThatFail(t *testing.T) {
	t.Parallel()
	w := image(1)
	w.References = []jobcall.Reference{task.Reference("image/png", "", string(make([]byte, 300<<10)))}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   conformance.Outcome
	}{
		"busy": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
			clips.Busy},
		"token": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
			clips.Account},
		"no file": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) },
			clips.Broken},
		"hung up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			clips.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/files" {
					t.Errorf("a call to %s", r.URL.Path)
				}
				tt.answer(w, r)
			}))
			t.Cleanup(server.Close)
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, replicate.Provider, server.URL, nil), w)
			got := conformance.JobFailure(t, err)
			conformance.CheckOutcome(t, name, err, tt.want)
			if got.Lost {
				t.Error("it is called lost")
			}
		})
	}
	studio := fakestudio.NewReplicate(t)
	short := w
	short.References = []jobcall.Reference{task.Reference("image/png", "", string(make([]byte, 300<<10)))}
	short.References[0].Size++
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, replicate.Provider, studio.URL(), nil), short)
	conformance.CheckOutcome(t, "our store", err, conformance.NewOutcome(fault.UpstreamError, upstream.NextLater, upstream.HealthNone))
	short.References[0].Size = 101 << 20
	_, err = jobcall.Submit(t.Context(), conformance.Line(t, replicate.Provider, studio.URL(), nil), short)
	conformance.CheckOutcome(t, "too large", err, pictures.Refused)
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d submissions", n)
	}
}

// FuzzPrediction tests that every error is a failure, and every done task has results with valid
// addresses.
func FuzzPrediction(f *testing.F) {
	conformance.FuzzAnswers(f, replicate.Provider, "abc", []jobcall.Task{image(2), video()},
		`{"id":"a","status":"starting"}`, `{"status":"succeeded","output":["https://x/1"]}`,
		`{"status":"failed","error":"(E005)"}`, `{"status":"failed","error":{"a":1}}`,
		`{"status":"succeeded","output":[[[[[["https://x"]]]]]]}`, `{"detail":"x","status":404}`, `{"id":"`+"\x00"+`"}`)
}
