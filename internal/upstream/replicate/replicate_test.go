package replicate_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

// TestSubmissions tests the path and body of each submission.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	const easel = `{"input":{"aspect_ratio":"16:9","num_outputs":3,"prompt":"a lighthouse","resolution":"1K","seed":7}}`
	pinned := strings.Replace(easel, "{", `{"version":"`+version+`",`, 1)
	of := func(model string) jobcall.Task { return task.ApplyChanges(image(3), task.Model(model)) }
	conformance.CheckSubmissions(t, replicate.Provider, nil, map[string]conformance.Submission{
		"newest version":     {of("owner/name"), "/v1/models/owner/name/predictions", easel},
		"deployment":         {of("deployments/owner/name"), "/v1/deployments/owner/name/predictions", easel},
		"version of a model": {of("owner/name:" + version), "/v1/predictions", pinned},
		"version":            {of(version), "/v1/predictions", pinned},
	})
	conformance.CheckUnsuitable(t, replicate.Provider, map[string]jobcall.Task{
		"no model":            of(""),
		"no owner":            of("name"),
		"a path":              of("owner/name/more"),
		"dots":                of("../name"),
		"version with a name": of("owner/name:latest"),
		"query":               of("owner/na?me"),
	})
}

// TestClipIsMade checks a pinned version, and references by address, inline and uploaded.
func TestClipIsMade(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	large := bytes.Repeat([]byte("large"), 60_000)
	job := task.ApplyChanges(video(), task.References(task.ParseReference("inline"),
		jobcall.Reference{Type: "image/png", Size: 9 << 30, URL: "https://media.example/a"},
		task.Reference("image/png", "", string(large))))
	if _, err := conformance.SubmitAndPoll(t, conformance.Line(t, replicate.Provider, studio.URL(), nil), job); err != nil {
		t.Fatal(err)
	}
	want := `{"version":"` + version + `","input":{"duration":5,"input_images":["data:image/png;base64,YWJj","https://media.example/a","` +
		studio.URL() + `/files/file000001"],"prompt":"waves","resolution":"720p"}}`
	if sent := studio.Submissions(); len(sent) != 1 || sent[0].Path != "/v1/predictions" || string(sent[0].Body) != want {
		t.Fatalf("sent %+v\nwant %s", sent, want)
	}
	if files := studio.Uploads(); len(files) != 1 || !bytes.Equal(files[0], large) {
		t.Errorf("%d files uploaded", len(files))
	}
}

// TestRefusedSubmissions tests the failure for each response to a submission.
func TestRefusedSubmissions(t *testing.T) {
	t.Parallel()
	conformance.CheckKinds(t, replicate.Provider, image(1), video(), map[string]conformance.KindsCase{
		"token": {fakestudio.Refusal(401, `{"title":"Unauthenticated","detail":"Bad token `+conformance.Secret+`","status":401}`),
			clips.Account, clips.Account},
		"billing": {fakestudio.Refusal(402, `{"title":"Insufficient credit","detail":"You have insufficient credit","status":402}`),
			clips.Account, clips.Account},
		"model": {fakestudio.Refusal(404, `{"title":"Not found","detail":"The requested resource could not be found.","status":404}`),
			clips.Model, clips.Model},
		"throttled": {fakestudio.Refusal(429, `{"title":"Too many requests","detail":"Request was throttled.","status":429}`),
			clips.Busy, clips.Busy},
		"own fault": {fakestudio.Refusal(500, `{"title":"Internal","detail":"Oops","status":500}`), clips.Broken, clips.Broken},
		"input": {fakestudio.Refusal(422, `{"title":"Input validation failed","detail":"- input.duration: must be one of 4, 8","status":422,`+
			`"invalid_fields":[{"field":"input.duration"}]}`), pictures.Refused, clips.Refused},
		"bad request": {fakestudio.Refusal(400, `{"title":"Bad request","detail":"Malformed","status":400}`), pictures.Refused, clips.Refused},
	})
	studio := fakestudio.NewReplicate(t)
	studio.Expect(fakestudio.Behaviour{Status: 429, Body: `{"status":429}`, Header: http.Header{"Retry-After": {"3"}}})
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, replicate.Provider, studio.URL(), nil), image(1))
	if f := conformance.JobFailure(t, err); f.RetryAfter != 3*time.Second {
		t.Errorf("wait %s", f.RetryAfter)
	}
}

func TestFailedWorks(t *testing.T) {
	t.Parallel()
	const (
		fail = upstream.HealthFail
		line = upstream.NextLine
		same = upstream.NextSame
	)
	failed := func(text string) fakestudio.Behaviour {
		return fakestudio.Failure(fmt.Sprintf(`{"status":"failed","error":%q}`, text))
	}
	conformance.CheckKinds(t, replicate.Provider, image(1), video(), map[string]conformance.KindsCase{
		"sensitive": {failed("The input or output was flagged as sensitive. Please try again with different inputs. (E005)"),
			pictures.Flagged, clips.Flagged},
		"sensitive clip": {failed("The output was flagged as sensitive (E005)"), pictures.Flagged, clips.FlaggedOutput},
		"code alone":     {failed("Rejected (E005)"), pictures.Flagged, clips.Flagged},
		"nsfw": {failed("NSFW content detected. Try running it again, or try a different prompt."),
			pictures.Flagged, clips.FlaggedOutput},
		"memory": {failed("CUDA out of memory (E001)"), clips.Broken, clips.Failed},
		"demand": {failed("Service is currently unavailable due to high demand. Please try again later. (E003)"), clips.Busy, clips.Busy},
		"slow":   {failed("Request timed out (E004)"), clips.Broken, conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"slow start": {failed("E6716: timed out while starting"), clips.Broken,
			conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"interrupted": {failed("Prediction interrupted; please retry (code: PA)"), conformance.NewOutcome(fault.UpstreamError, same, fail),
			conformance.NewOutcome(fault.RenderFailed, same, fail)},
		"picture":    {failed("cannot identify image file '/tmp/x'"), pictures.Refused, clips.Material},
		"no reason":  {fakestudio.Failure(`{"status":"failed","error":null}`), clips.Broken, clips.Failed},
		"credential": {failed("weird " + conformance.Secret), clips.Broken, clips.Failed},
		"canceled":   {fakestudio.Failure(`{"status":"canceled"}`), clips.Broken, clips.Failed},
		"aborted":    {fakestudio.Failure(`{"status":"aborted"}`), clips.Broken, conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"nothing":    {fakestudio.Failure(`{"status":"succeeded","output":[]}`), pictures.Empty, clips.Empty},
		"a text":     {fakestudio.Failure(`{"status":"succeeded","output":"just words"}`), pictures.Empty, clips.Empty},
		"removed":    {fakestudio.Failure(`{"status":"succeeded","output":null,"data_removed":true}`), clips.Broken, clips.Gone},
		"other status": {fakestudio.Failure(`{"status":"dreaming"}`), conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, fail),
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, fail)},
		"lost": {fakestudio.Behaviour{Lost: true}, clips.Broken, clips.Gone},
	})
}

// TestOutputs checks outputs with a text, a list and an object of addresses.
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
		studio.Expect(fakestudio.Failure(`{"status":"succeeded","output":` + output + `}`))
		p, err := conformance.SubmitAndPoll(t, a, image(2))
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

// TestAcceptedWithoutAName tests a good status without an ID: the provider may be working.
func TestAcceptedWithoutAName(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"id":"../x"}`, `[]`} {
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, replicate.Provider, 200, body), image(1))
		if got := conformance.JobFailure(t, err); !got.Lost {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewReplicate(t)
	a, task := conformance.Line(t, replicate.Provider, studio.URL(), nil), video()
	p, err := jobcall.Submit(t.Context(), a, task)
	if err != nil {
		t.Fatal(err)
	}
	for _, ticket := range []string{p.Ticket, "unknown"} {
		if err := a.Cancel(t.Context(), task, ticket); err != nil {
			t.Error(err)
		}
	}
	if got := studio.CancelledTickets(); len(got) != 1 || got[0] != p.Ticket {
		t.Errorf("cancelled %v", got)
	}
}

// TestUploadsThatFail checks that Lost is not set after a failed upload, because nothing was
// submitted.
func TestUploadsThatFail(t *testing.T) {
	t.Parallel()
	job := image(1)
	job.References = []jobcall.Reference{task.Reference("image/png", "", string(make([]byte, 300<<10)))}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   conformance.Outcome
	}{
		"busy":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, clips.Busy},
		"token":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, clips.Account},
		"no file": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }, clips.Broken},
		"hung up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, clips.Broken},
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
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, replicate.Provider, server.URL, nil), job)
			conformance.CheckOutcome(t, name, err, tt.want)
		})
	}
	short, large := task.Reference("image/png", "", string(make([]byte, 300<<10))), task.Reference("image/png", "", "")
	short.Size++
	large.Size = 101 << 20
	conformance.CheckUnsent(t, replicate.Provider, fakestudio.NewReplicate(t), map[string]conformance.UnsentTask{
		"our store": {Task: task.ApplyChanges(job, task.References(short)), Want: pictures.Refused.WithNext(upstream.NextLater)},
		"too large": {Task: task.ApplyChanges(job, task.References(large)), Want: pictures.Refused},
	})
}

// FuzzPrediction tests that every error is a failure, and every done task has results with valid
// addresses.
func FuzzPrediction(f *testing.F) {
	conformance.FuzzAnswers(f, replicate.Provider, "abc", []jobcall.Task{image(2), video()},
		`{"id":"a","status":"starting"}`, `{"status":"succeeded","output":["https://x/1"]}`,
		`{"status":"failed","error":"(E005)"}`, `{"status":"failed","error":{"a":1}}`,
		`{"status":"succeeded","output":[[[[[["https://x"]]]]]]}`, `{"detail":"x","status":404}`, `{"id":"`+"\x00"+`"}`)
}
