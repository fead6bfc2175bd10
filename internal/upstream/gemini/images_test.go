package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/jobcall"
)

// picture returns a task for one square image.
func picture(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("gemini-nano-banana-2.1", task.Prompt("a fox"), task.Shape("1:1", 1024, 1024)), change...)
}

// Outcomes used in several tables.
var (
	pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

	busy, cred, noModel = clips.Busy, clips.Account, clips.Model
	broken, lost        = clips.Broken, clips.Lost

	unsuitable, blocked, nothing       = pictures.Refused, pictures.Flagged, pictures.Empty
	field, material, policy, rendering = clips.Refused, clips.Material, clips.Flagged, clips.Failed
)

// TestImages tests the path and body of each submission.
func TestImages(t *testing.T) {
	t.Parallel()
	path := func(model string) string { return "/v1beta/models/" + model + ":generateContent" }
	body := func(parts, config, more string) string {
		return `{"contents":[{"parts":[{"text":"a fox"}` + parts + `],"role":"user"}],"generationConfig":{"imageConfig":{` + config +
			`},"responseModalities":["IMAGE"]` + more + `}`
	}
	const model, inline = "gemini-nano-banana-2.1", `,{"inlineData":{"data":"YWJj","mimeType":"image/png"}}`
	large := jobcall.Reference{Type: "image/jpeg", Size: 16 << 20}
	conformance.CheckSubmissions(t, gemini.Provider, nil, map[string]conformance.Submission{
		"one image": {picture(), path(model), body("", `"aspectRatio":"1:1","imageSize":"1K"`, "}")},
		"an edit":   {picture(task.Tier("4K"), task.Refs("a", "b")), path(model), body(inline+inline, `"imageSize":"4K"`, "}")},
		"the old model": {picture(task.Model("models/gemini-2.5-flash-image"), task.Ratio("21:9")), path("gemini-2.5-flash-image"),
			body("", `"aspectRatio":"21:9"`, "}")},
		"a small and very wide image": {picture(task.Tier("512p"), task.Ratio("8:1")), path(model),
			body("", `"aspectRatio":"8:1","imageSize":"512"`, "}")},
		"params": {picture(task.Params(`{"temperature":0.5,"personGeneration":"ALLOW_ADULT",` +
			`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}]}`)), path(model),
			body("", `"aspectRatio":"1:1","imageSize":"1K","personGeneration":"ALLOW_ADULT"`,
				`,"temperature":0.5},"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}]`)},
	})
	conformance.CheckUnsuitable(t, gemini.Provider, map[string]jobcall.Task{
		"too many images":                    picture(task.Count(11)),
		"too many references":                picture(task.Refs(slices.Repeat([]string{"a"}, 15)...)),
		"a gif":                              picture(task.Refs("a.gif")),
		"more bytes than a request may have": picture(task.References(large)),
		"a mask":                             picture(task.Refs("a"), task.Mask(task.ParseReference("b"))),
		"an unknown ratio":                   picture(task.Ratio("5:7")),
		"a ratio of another model":           picture(task.Model("gemini-3-pro-image"), task.Ratio("8:1")),
		"an unknown tier":                    picture(task.Tier("8K")),
		"a tier of another model":            picture(task.Model("gemini-2.5-flash-image"), task.Tier("2K")),
		"an unknown field":                   picture(task.Params(`{"style":"noir"}`)),
		"params that are not an object":      picture(task.Params(`[1]`)),
	})
}

// TestResults tests that each call makes another image, and that no draft is a result.
func TestResults(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	a, job := conformance.Line(t, gemini.Provider, studio.URL(), nil), picture(task.Count(6))
	p, err := jobcall.Submit(t.Context(), a, job)
	if err != nil || len(p.Results) != 6 || studio.AcceptedCount() != 6 {
		t.Fatalf("%+v, %v of %d calls", p, err, studio.AcceptedCount())
	}
	seen := map[string]bool{string(fakestudio.Picture(0)): true} // the draft
	for _, r := range p.Results {
		if data, _ := conformance.Fetch(t, a, job, r); r.Type != "image/png" || seen[string(data)] {
			t.Errorf("type %q, or the draft, or the same image twice", r.Type)
		} else {
			seen[string(data)] = true
		}
	}
}

// TestSeeds checks that the seed grows with each call. With equal seeds, all images would be equal.
func TestSeeds(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	task := picture(func(task *jobcall.Task) { task.Count, task.Params = 3, json.RawMessage(`{"seed":41}`) })
	_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), task)
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

// TestSomeCallsFail tests that the result has the images of the successful calls even if other
// calls failed.
func TestSomeCallsFail(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	studio.Expect(fakestudio.Failure(`{"finishReason":"IMAGE_SAFETY"}`), fakestudio.Behaviour{},
		fakestudio.Failure(`{"finishReason":"NO_IMAGE"}`), fakestudio.Behaviour{})
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
	studio.Expect(fakestudio.Failure(`{"finishReason":"NO_IMAGE"}`),
		fakestudio.Failure(`{"finishReason":"IMAGE_SAFETY"}`), fakestudio.Behaviour{LoseAnswer: true})
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

// badKey is Google's response to an invalid key.
const badKey = `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"x","details":[{"reason":"API_KEY_INVALID"}]}}`

func googleError(code int, status, message string) string {
	message += " " + conformance.Secret
	data, _ := json.Marshal(map[string]any{"error": map[string]any{"code": code, "status": status, "message": message}})
	return string(data)
}

func TestImageFailures(t *testing.T) {
	t.Parallel()
	cases := map[string]conformance.Case{
		"argument":  {fakestudio.Refusal(400, googleError(400, "INVALID_ARGUMENT", "Unable to process input image.")), unsuitable},
		"key":       {fakestudio.Refusal(400, badKey), cred},
		"billing":   {fakestudio.Refusal(400, googleError(400, "FAILED_PRECONDITION", "x")), cred},
		"leaked":    {fakestudio.Refusal(403, googleError(403, "PERMISSION_DENIED", "x")), cred},
		"model":     {fakestudio.Refusal(404, googleError(404, "NOT_FOUND", "x")), noModel},
		"exhausted": {fakestudio.Refusal(429, googleError(429, "RESOURCE_EXHAUSTED", "x")), busy},
		"overload":  {fakestudio.Refusal(503, googleError(503, "UNAVAILABLE", "The model is overloaded.")), busy},
		"internal":  {fakestudio.Refusal(500, googleError(500, "INTERNAL", "x")), broken},
		"deadline":  {fakestudio.Refusal(504, googleError(504, "DEADLINE_EXCEEDED", "x")), broken},
		"page":      {fakestudio.Refusal(200, "<html>"), broken},
		"prompt":    {fakestudio.Refusal(200, `{"promptFeedback":{"blockReason":"OTHER"}}`), blocked},
		"text only": {fakestudio.Failure(`{"finishReason":"STOP","content":{"parts":[{"text":"I would rather not."}]}}`), nothing},
		"no base64": {fakestudio.Failure(`{"finishReason":"STOP","content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"*"}}]}}`),
			nothing},
		"empty": {fakestudio.Refusal(200, `{}`), nothing},
	}
	for _, reason := range []string{"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"} {
		cases[reason] = conformance.Case{fakestudio.Failure(`{"finishReason":"` + reason + `"}`), blocked}
	}
	for _, reason := range []string{"LANGUAGE", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "MALFORMED_RESPONSE", "MAX_TOKENS"} {
		cases[reason] = conformance.Case{fakestudio.Failure(`{"finishReason":"` + reason + `"}`), nothing}
	}
	conformance.CheckOutcomes(t, gemini.Provider, picture(), cases)
}

// TestUnsent tests an invalid model and an unreadable reference.
func TestUnsent(t *testing.T) {
	t.Parallel()
	unreadable := task.Reference("image/png", "", "abc")
	unreadable.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	conformance.CheckUnsent(t, gemini.Provider, fakestudio.NewGemini(t), map[string]conformance.UnsentTask{
		"an invalid model":        {Task: picture(task.Model("../x")), Want: noModel},
		"an unreadable reference": {Task: picture(task.References(unreadable)), Want: pictures.Refused.WithNext(upstream.NextLater)},
	})
	a := conformance.LineWithReply(t, gemini.Provider, 200, "")
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
	a, answer := conformance.LineWithScript(f, gemini.Provider)
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

// TestStops tests that no more calls begin after a rejection of the line or the prompt, but more
// begin after a blocked image.
func TestStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behaviour fakestudio.Behaviour
		least     int
		most      int
	}{
		"busy":    {fakestudio.Refusal(429, googleError(429, "RESOURCE_EXHAUSTED", "x")), 1, 7},
		"prompt":  {fakestudio.Refusal(200, `{"promptFeedback":{"blockReason":"OTHER"}}`), 1, 7},
		"refused": {fakestudio.Refusal(400, googleError(400, "INVALID_ARGUMENT", "x")), 1, 7},
		"image":   {fakestudio.Failure(`{"finishReason":"IMAGE_SAFETY"}`), 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewGemini(t)
			for range 10 {
				studio.Expect(c.behaviour)
			}
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), picture(task.Count(10)))
			_ = conformance.JobFailure(t, err)
			if n := len(studio.Submissions()); n < c.least || n > c.most { // four run at once
				t.Errorf("%d calls", n)
			}
		})
	}
}
