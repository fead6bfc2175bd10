package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/jobcall"
)

// picture returns a task for one square image.
func picture(change ...task.Change) jobcall.Task {
	return task.With(task.Image("gemini-nano-banana-2.1", task.Prompt("a fox"), task.Shape("1:1", 1024, 1024)), change...)
}

// Outcomes that several tables expect.
var (
	pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

	busy, cred, noModel = clips.Busy, clips.Account, clips.Model
	broken, lost        = clips.Broken, clips.Lost

	unsuitable, blocked, nothing       = pictures.Refused, pictures.Flagged, pictures.Empty
	field, material, policy, rendering = clips.Refused, clips.Material, clips.Flagged, clips.Failed
)

func TestImages(t *testing.T) {
	t.Parallel()
	ref := task.Reference("image/png", "https://media.example/1", string(fakestudio.Picture(9)))
	for name, tt := range map[string]struct {
		work jobcall.Task
		sent string // of the first call
	}{
		"one image": {picture(),
			`{"contents":[{"parts":[{"text":"a fox"}],"role":"user"}],"generationConfig":{"imageConfig":{"aspectRatio":"1:1","imageSize":"1K"},` +
				`"responseModalities":["IMAGE"]}}`},
		"an edit": {picture(func(w *jobcall.Task) { w.References, w.Tier, w.Ratio = []jobcall.Reference{ref, ref}, "4K", "" }),
			`{"contents":[{"parts":[{"text":"a fox"},{"inlineData":{"data":"…","mimeType":"image/png"}},` +
				`{"inlineData":{"data":"…","mimeType":"image/png"}}],"role":"user"}],` +
				`"generationConfig":{"imageConfig":{"imageSize":"4K"},"responseModalities":["IMAGE"]}}`},
		"the old model": {picture(func(w *jobcall.Task) { w.Model, w.Ratio = "models/gemini-2.5-flash-image", "21:9" }),
			`{"contents":[{"parts":[{"text":"a fox"}],"role":"user"}],"generationConfig":{"imageConfig":{"aspectRatio":"21:9"},` +
				`"responseModalities":["IMAGE"]}}`},
		"a small and very wide image": {picture(func(w *jobcall.Task) { w.Tier, w.Ratio = "512p", "8:1" }),
			`{"contents":[{"parts":[{"text":"a fox"}],"role":"user"}],"generationConfig":{"imageConfig":{"aspectRatio":"8:1","imageSize":"512"},` +
				`"responseModalities":["IMAGE"]}}`},
		"six images with params": {picture(func(w *jobcall.Task) {
			w.Count = 6
			w.Params = json.RawMessage(`{"temperature":0.5,"personGeneration":"ALLOW_ADULT",` +
				`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}]}`)
		}), `{"contents":[{"parts":[{"text":"a fox"}],"role":"user"}],"generationConfig":{"imageConfig":{"aspectRatio":"1:1","imageSize":"1K",` +
			`"personGeneration":"ALLOW_ADULT"},"responseModalities":["IMAGE"],"temperature":0.5},` +
			`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewGemini(t)
			a := conformance.Line(t, gemini.Provider, studio.URL(), nil)
			if !a.Blocks(tt.work) {
				t.Error("images do not block")
			}
			p, err := jobcall.Submit(t.Context(), a, tt.work)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Done || p.Ticket != "" || len(p.Results) != tt.work.Count || studio.Accepted() != tt.work.Count {
				t.Fatalf("%d results of %d calls, %q", len(p.Results), studio.Accepted(), p.Ticket)
			}
			var seen [][]byte
			for _, r := range p.Results {
				data, _ := conformance.Fetch(t, a, tt.work, r)
				if bytes.Equal(data, fakestudio.Picture(0)) {
					t.Error("the result is the draft instead of the image")
				}
				if r.Type != "image/png" || slices.ContainsFunc(seen, func(b []byte) bool { return bytes.Equal(b, data) }) {
					t.Errorf("type %q, or the same image twice", r.Type)
				}
				seen = append(seen, data)
			}
			sent := string(studio.Submissions()[0].Body)
			for _, part := range gjson.Get(sent, "contents.0.parts.#.inlineData.data").Array() {
				if part.Str == "" {
					t.Error("a reference without bytes")
				}
				sent = strings.ReplaceAll(sent, part.Str, "…")
			}
			if sent != tt.sent {
				t.Errorf("sent %s\nwant %s", sent, tt.sent)
			}
		})
	}
}

// TestSeeds checks that the seed grows with each call. With equal seeds, all images would be equal.
func TestSeeds(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	w := picture(func(w *jobcall.Task) { w.Count, w.Params = 3, json.RawMessage(`{"seed":41}`) })
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), w)
	if err != nil {
		t.Fatal(err)
	}
	var seeds []int64
	for _, s := range studio.Submissions() {
		seeds = append(seeds, gjson.GetBytes(s.Body, "generationConfig.seed").Int())
	}
	slices.Sort(seeds)
	if !slices.Equal(seeds, []int64{41, 42, 43}) {
		t.Errorf("seeds %v", seeds)
	}
}

// TestSomeCallsFail tests that the result has the images of the successful calls even if other calls
// failed.
func TestSomeCallsFail(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	studio.Expect(fakestudio.Behaviour{Failed: `{"finishReason":"IMAGE_SAFETY"}`}, fakestudio.Behaviour{},
		fakestudio.Behaviour{Failed: `{"finishReason":"NO_IMAGE"}`}, fakestudio.Behaviour{})
	p, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), picture(task.Count(4)))
	if err != nil || len(p.Results) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
}

// TestAllCallsFail checks that a task without any image fails with the most serious failure of its
// calls, and that the task counts as lost if one answer was lost.
func TestAllCallsFail(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	studio.Expect(fakestudio.Behaviour{Failed: `{"finishReason":"NO_IMAGE"}`},
		fakestudio.Behaviour{Failed: `{"finishReason":"IMAGE_SAFETY"}`}, fakestudio.Behaviour{LoseAnswer: true})
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), picture(task.Count(3)))
	want := blocked
	want.Lost = true
	if got := conformance.OutcomeOf(t, err); got != want {
		t.Errorf("%+v", got)
	}
}

// TestBounded tests that at most four calls of a task run at the same time, and that no more calls
// begin after a busy response.
func TestBounded(t *testing.T) {
	t.Parallel()
	var (
		mu        sync.Mutex
		now, most int
	)
	four := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		if most = max(most, now); now == 4 {
			close(four)
		}
		mu.Unlock()
		<-four // the first four calls wait for each other, so a fifth concurrent call would raise most
		mu.Lock()
		now--
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slowly"}}`)
	}))
	t.Cleanup(server.Close)
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, server.URL, nil), picture(task.Count(10)))
	if got := conformance.OutcomeOf(t, err); got != busy {
		t.Errorf("%+v", got)
	}
	if most != 4 {
		t.Errorf("%d concurrent calls, want 4", most)
	}
}

// TestBusyStops tests that no more calls begin after a rejection of the line.
func TestBusyStops(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	for range 10 {
		studio.Expect(fakestudio.Behaviour{Status: 429, Body: googleError(429, "RESOURCE_EXHAUSTED", "x")})
	}
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), picture(task.Count(10)))
	_ = conformance.JobFailure(t, err)
	if n := len(studio.Submissions()); n > 7 { // four at once, and the calls begun before the first response was read
		t.Errorf("%d calls", n)
	}
}

func googleError(code int, status, message string) string {
	message += " " + conformance.Secret
	data, _ := json.Marshal(map[string]any{"error": map[string]any{"code": code, "status": status, "message": message}})
	return string(data)
}

func TestImageFailures(t *testing.T) {
	t.Parallel()
	table := map[string]struct {
		how  fakestudio.Behaviour
		want conformance.Outcome
	}{
		"argument": {fakestudio.Behaviour{Status: 400, Body: googleError(400, "INVALID_ARGUMENT", "Unable to process input image.")},
			unsuitable},
		"key": {fakestudio.Behaviour{Status: 400,
			Body: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"x","details":[{"reason":"API_KEY_INVALID"}]}}`}, cred},
		"billing":   {fakestudio.Behaviour{Status: 400, Body: googleError(400, "FAILED_PRECONDITION", "x")}, cred},
		"leaked":    {fakestudio.Behaviour{Status: 403, Body: googleError(403, "PERMISSION_DENIED", "x")}, cred},
		"model":     {fakestudio.Behaviour{Status: 404, Body: googleError(404, "NOT_FOUND", "x")}, noModel},
		"exhausted": {fakestudio.Behaviour{Status: 429, Body: googleError(429, "RESOURCE_EXHAUSTED", "x")}, busy},
		"overload":  {fakestudio.Behaviour{Status: 503, Body: googleError(503, "UNAVAILABLE", "The model is overloaded.")}, busy},
		"internal":  {fakestudio.Behaviour{Status: 500, Body: googleError(500, "INTERNAL", "x")}, broken},
		"deadline":  {fakestudio.Behaviour{Status: 504, Body: googleError(504, "DEADLINE_EXCEEDED", "x")}, broken},
		"page":      {fakestudio.Behaviour{Status: 200, Body: "<html>"}, broken},
		"prompt":    {fakestudio.Behaviour{Status: 200, Body: `{"promptFeedback":{"blockReason":"OTHER"}}`}, blocked},
		"lost":      {fakestudio.Behaviour{LoseAnswer: true}, lost},
		"text only": {fakestudio.Behaviour{Failed: `{"finishReason":"STOP","content":{"parts":[{"text":"I would rather not."}]}}`}, nothing},
		"no base64": {fakestudio.Behaviour{
			Failed: `{"finishReason":"STOP","content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"*"}}]}}`}, nothing},
		"empty": {fakestudio.Behaviour{Status: 200, Body: `{}`}, nothing},
	}
	for _, reason := range []string{"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"} {
		table[reason] = struct {
			how  fakestudio.Behaviour
			want conformance.Outcome
		}{fakestudio.Behaviour{Failed: `{"finishReason":"` + reason + `"}`}, blocked}
	}
	for _, reason := range []string{"LANGUAGE", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "MALFORMED_RESPONSE", "MAX_TOKENS"} {
		table[reason] = struct {
			how  fakestudio.Behaviour
			want conformance.Outcome
		}{fakestudio.Behaviour{Failed: `{"finishReason":"` + reason + `"}`}, nothing}
	}
	for name, tt := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewGemini(t)
			studio.Expect(tt.how)
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), picture())
			conformance.CheckOutcome(t, "a submission", err, tt.want)
		})
	}
}

// TestUnsuitable tests that tasks impossible for the provider are rejected before a call.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	a := conformance.Line(t, gemini.Provider, studio.URL(), nil)
	ref := task.Reference("image/png", "https://media.example/1", string(fakestudio.Picture(1)))
	large := jobcall.Reference{Type: "image/jpeg", Size: 16 << 20}
	for name, change := range map[string]task.Change{
		"too many images":     task.Count(11),
		"too many references": func(w *jobcall.Task) { w.References = slices.Repeat([]jobcall.Reference{ref}, 15) },
		"a gif": func(w *jobcall.Task) {
			w.References = []jobcall.Reference{task.Reference("image/gif", "https://media.example/1", "GIF89a")}
		},
		"more bytes than a request may have": func(w *jobcall.Task) { w.References = []jobcall.Reference{large} },
		"a mask":                             func(w *jobcall.Task) { w.References, w.Mask = []jobcall.Reference{ref}, &ref },
		"an unknown ratio":                   func(w *jobcall.Task) { w.Ratio = "5:7" },
		"a ratio of another model":           func(w *jobcall.Task) { w.Model, w.Ratio = "gemini-3-pro-image", "8:1" },
		"an unknown tier":                    func(w *jobcall.Task) { w.Tier = "8K" },
		"a tier of another model":            func(w *jobcall.Task) { w.Model, w.Tier = "gemini-2.5-flash-image", "2K" },
		"an unknown field":                   task.Params(`{"style":"noir"}`),
		"params that are no object":          task.Params(`[1]`),
		"sound":                              func(w *jobcall.Task) { w.Kind = "sound" },
	} {
		_, err := jobcall.Submit(t.Context(), a, picture(change))
		if got := conformance.OutcomeOf(t, err); got != unsuitable {
			t.Errorf("%s: %+v", name, got)
		}
	}
	_, err := jobcall.Submit(t.Context(), a, picture(task.Model("../x")))
	if got := conformance.OutcomeOf(t, err); got != noModel {
		t.Errorf("an invalid model id: %+v", got)
	}
	gone := ref
	gone.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	_, err = jobcall.Submit(t.Context(), a, picture(func(w *jobcall.Task) { w.References = []jobcall.Reference{gone} }))
	want := conformance.NewOutcome(fault.UpstreamError, upstream.NextLater, upstream.HealthNone)
	if got := conformance.OutcomeOf(t, err); got != want {
		t.Errorf("an unreadable reference: %+v", got)
	}
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d calls", n)
	}
	if _, err := a.Poll(t.Context(), picture(), "x"); err == nil {
		t.Error("images have no tickets")
	}
	if err := a.Cancel(t.Context(), picture(), ""); err != nil {
		t.Error(err)
	}
}

// FuzzImages checks that no answer causes a panic or more images than requested.
func FuzzImages(f *testing.F) {
	for _, seed := range []string{`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}}]}`,
		`{"candidates":{"a":1}}`, `{"promptFeedback":{"blockReason":"X"}}`, `[{"error":{"code":1}}]`, `<html>`, ``} {
		f.Add([]byte(seed), 200)
	}
	a, answer := conformance.LineScripted(f, gemini.Provider)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		answer(body, 200+(status%400+400)%400)
		p, err := jobcall.Submit(t.Context(), a, picture())
		if err != nil {
			_ = conformance.JobFailure(t, err).UserMessage()
			return
		}
		if len(p.Results) != 1 || len(p.Results[0].Data) == 0 {
			t.Errorf("%+v", p.Results)
		}
	})
}

// TestBlockStops tests that no more calls begin after a blocked prompt, but more begin after a
// blocked image.
func TestBlockStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behaviour fakestudio.Behaviour
		least     int
		most      int
	}{
		"prompt":  {fakestudio.Behaviour{Status: 200, Body: `{"promptFeedback":{"blockReason":"OTHER"}}`}, 1, 7},
		"refused": {fakestudio.Behaviour{Status: 400, Body: googleError(400, "INVALID_ARGUMENT", "x")}, 1, 7},
		"image":   {fakestudio.Behaviour{Failed: `{"finishReason":"IMAGE_SAFETY"}`}, 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewGemini(t)
			for range 10 {
				studio.Expect(c.behaviour)
			}
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), picture(task.Count(10)))
			_ = conformance.JobFailure(t, err)
			if n := len(studio.Submissions()); n < c.least || n > c.most { // four at once, and the calls begun before the first response was read
				t.Errorf("%d calls", n)
			}
		})
	}
}
