package ark_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/ark"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("seedream-4-5-251128", task.Tier("2K"), task.Shape("16:9", 2560, 1440)), change...)
}

func video(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("dreamina-seedance-2-0-260128"), change...)
}

// fields reads a submission's body.
func fields(t *testing.T, s fakestudio.Submission) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(s.Body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// TestSubmissions tests the path and body of each submission.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	const (
		images, tasks = "/api/v3/images/generations", "/api/v3/contents/generations/tasks"

		model = `"model":"seedream-4-5-251128","prompt":"a lighthouse","response_format":"url",`
		first = `{"type":"image_url","image_url":{"url":"https://media.example/a.png"},"role":"first_frame"}`
		last  = `{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,YWJj"},"role":"last_frame"}`
		shown = `{"type":"image_url","image_url":{"url":"https://media.example/a.png"},"role":"reference_image"}`
		moves = `{"type":"video_url","video_url":{"url":"https://media.example/a.mp4"},"role":"reference_video"}`
	)
	clip := func(model, ratio, content string) string {
		return `{"content":[` + content + `],"duration":5,"model":"dreamina-seedance-` + model + `",` + ratio + `"resolution":"720p"}`
	}
	newer, silent := task.Model("dreamina-seedance-2-5-260628"), task.Prompt("")
	conformance.CheckSubmissions(t, ark.Provider, nil, map[string]conformance.Submission{
		"picture": {image(task.Params(`{"watermark":false,"seed":7,"guidance_scale":2.50}`)), images,
			`{"guidance_scale":2.50,` + model + `"seed":7,"size":"2560x1440","stream":false,"watermark":false}`},
		"pixels":     {image(task.Tier("4K"), task.Pixels(2304, 1728)), images, `{` + model + `"size":"2304x1728","stream":false}`},
		"tier alone": {image(task.NoRatio()), images, `{` + model + `"size":"2K","stream":false}`},
		"large tier": {image(task.NoRatio(), task.Tier("4K")), images, `{` + model + `"size":"4K","stream":false}`},
		"from a picture": {image(task.Refs("a.png")), images,
			`{"image":"https://media.example/a.png",` + model + `"size":"2K","stream":false}`},
		"from a picture, inline": {image(task.Refs("inline.webp")), images,
			`{"image":"data:image/webp;base64,YWJj",` + model + `"size":"2K","stream":false}`},
		"from pictures": {image(task.Refs("a.png", "inline.webp")), images,
			`{"image":["https://media.example/a.png","data:image/webp;base64,YWJj"],` + model + `"size":"2K","stream":false}`},

		"clip": {video(task.Params(`{"generate_audio":false,"seed":3}`)), tasks,
			`{"content":[{"type":"text","text":"waves"}],"duration":5,"generate_audio":false,"model":"dreamina-seedance-2-0-260128",` +
				`"ratio":"16:9","resolution":"720p","seed":3}`},
		"one frame":  {video(silent, task.Refs("a.png")), tasks, clip("2-0-260128", "", first)},
		"two frames": {video(silent, task.Refs("a.png", "inline.jpeg")), tasks, clip("2-0-260128", "", first+","+last)},
		"a video":    {video(silent, task.Refs("a.png", "a.mp4")), tasks, clip("2-0-260128", "", shown+","+moves)},
		"a frame and a ratio": {video(silent, task.Refs("a.png"), task.Ratio("9:16")), tasks,
			clip("2-0-260128", `"ratio":"9:16",`, first)},
		"a ratio, a newer model": {video(silent, task.Refs("a.png"), task.Ratio("9:16"), newer), tasks,
			clip("2-5-260628", `"ratio":"9:16",`, shown)},
		"a frame, a newer model": {video(silent, task.Refs("a.png"), newer), tasks, clip("2-5-260628", "", first)},
	})
	conformance.CheckUnsuitable(t, ark.Provider, map[string]jobcall.Task{
		"no tier of Ark": image(task.NoRatio(), task.Tier("1080p")),
		"a video inline": video(silent, task.Refs("inline.mp4")),
	})
	conformance.CheckSubmissions(t, ark.Provider, map[string]any{"image_role": "reference"}, map[string]conformance.Submission{
		"a reference by option": {video(silent, task.Refs("a.png")), tasks, clip("2-0-260128", "", shown)},
	})
	conformance.CheckSubmissions(t, ark.Provider, map[string]any{"image_role": "frame"}, map[string]conformance.Submission{
		"three frames": {Task: video(silent, task.Refs("a.png", "b.png", "c.png"))},
		"video frame":  {Task: video(silent, task.Refs("a.mp4"))},
	})
}

// TestManyPictures checks that n pictures are n calls with different seeds.
func TestManyPictures(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewArk(t)
	a := conformance.Line(t, ark.Provider, studio.URL(), nil)
	p, err := jobcall.Submit(t.Context(), a, image(task.Count(6), task.Params(`{"seed":2147483645}`)))
	if err != nil || len(p.Results) != 6 {
		t.Fatalf("%v, %v", p, err)
	}
	seeds, refs := map[any]bool{}, map[string]bool{}
	for _, s := range studio.Submissions() {
		body := fields(t, s)
		seeds[body["seed"]] = true
		if _, ok := body["sequential_image_generation"]; ok {
			t.Errorf("a request for a set: %s", s.Body)
		}
	}
	for _, r := range p.Results {
		refs[r.Ref] = true
	}
	want := map[any]bool{2147483645.: true, 2147483646.: true, 2147483647.: true, 0.: true, 1.: true, 2.: true}
	if !reflect.DeepEqual(seeds, want) || len(refs) != 6 {
		t.Errorf("seeds %v, results %v", seeds, refs)
	}
}

// TestCallsAtOnce checks that a submission of many pictures sends only a few calls at a time.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	var running, most, calls atomic.Int64
	four := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if calls.Add(1) == 4 {
			close(four)
		}
		select { // the first calls wait until there are four
		case <-four:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"data":[{"url":"https://x.example/1.png"}]}`))
	}))
	t.Cleanup(server.Close)
	p, err := jobcall.Submit(t.Context(), conformance.Line(t, ark.Provider, server.URL, nil), image(task.Count(30)))
	if err != nil || len(p.Results) != 30 || most.Load() != 4 {
		t.Errorf("%v, %d concurrent calls", err, most.Load())
	}
}

// TestSet tests that only a request for a set gets a set, of at most n pictures.
func TestSet(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewArk(t)
	a := conformance.Line(t, ark.Provider, studio.URL(), nil)
	studio.Expect(fakestudio.Behaviour{}, fakestudio.Behaviour{Images: 2}, fakestudio.Behaviour{Images: 5})
	for i, want := range []int{3, 2, 3} {
		p, err := jobcall.Submit(t.Context(), a, image(task.Count(3), task.Params(`{"sequential_image_generation":"auto"}`)))
		if err != nil || len(p.Results) != want {
			t.Errorf("%d: %+v, %v", i, p, err)
		}
	}
	body := fields(t, studio.Submissions()[0])
	if len(studio.Submissions()) != 3 || !reflect.DeepEqual(body["sequential_image_generation_options"], map[string]any{"max_images": 3.}) {
		t.Errorf("%d calls, %v", len(studio.Submissions()), body)
	}
}

const (
	textFlagged = `{"error":{"code":"InputTextSensitiveContentDetected","message":"The input text may be sensitive.","param":"",` +
		`"type":"BadRequest"}}`
	outputFlagged = `{"error":{"code":"OutputImageSensitiveContentDetected","message":"The output may be sensitive.","param":"",` +
		`"type":"BadRequest"}}`
	overloaded = `{"error":{"code":"ServerOverloaded","message":"busy","param":"","type":"TooManyRequests"}}`
)

// TestSomeCallsFail tests that Submit returns the pictures of the successful calls or, without
// pictures, the most severe failure.
func TestSomeCallsFail(t *testing.T) {
	t.Parallel()
	refuse := fakestudio.Refusal
	for name, tt := range map[string]struct {
		how           []fakestudio.Behaviour
		images, calls int // if calls is zero, they are not checked
		job           fault.Code
		next          upstream.Next
		lost          bool
	}{
		"one of four flagged": {how: []fakestudio.Behaviour{{}, refuse(400, outputFlagged)}, images: 5, calls: 6},
		"all but one lost":    {how: []fakestudio.Behaviour{{LoseAnswer: true}, {LoseAnswer: true}, {LoseAnswer: true}, {}}, images: 1},
		"all results flagged": {how: []fakestudio.Behaviour{refuse(400, outputFlagged), refuse(400, outputFlagged), refuse(400, outputFlagged),
			refuse(400, outputFlagged), refuse(400, outputFlagged), refuse(400, outputFlagged)},
			calls: 6, job: fault.ModerationBlocked, next: upstream.NextNone},
		"prompt flagged": {how: []fakestudio.Behaviour{refuse(400, textFlagged), refuse(400, textFlagged), refuse(400, textFlagged),
			refuse(400, textFlagged)}, job: fault.ModerationBlocked, next: upstream.NextNone},
		"busy, then flagged": {how: []fakestudio.Behaviour{refuse(429, overloaded), refuse(400, textFlagged), refuse(429, overloaded),
			{LoseAnswer: true}}, job: fault.ModerationBlocked, next: upstream.NextNone, lost: true},
		"all busy": {how: []fakestudio.Behaviour{refuse(429, overloaded), refuse(429, overloaded), refuse(429, overloaded),
			refuse(429, overloaded)}, job: fault.UpstreamError, next: upstream.NextLater},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewArk(t)
			// Four calls are sent at once. None of them is answered before all four have arrived,
			// because a failure would keep the others from starting.
			four, calls := make(chan struct{}), 0
			studio.Always(func([]byte) (how fakestudio.Behaviour) {
				if calls < len(tt.how) {
					how = tt.how[calls]
				}
				if calls++; calls == 4 {
					close(four)
				}
				how.Answer = four
				return how
			})
			p, err := jobcall.Submit(t.Context(), conformance.Line(t, ark.Provider, studio.URL(), nil), image(task.Count(6)))
			if tt.calls > 0 && len(studio.Submissions()) != tt.calls {
				t.Errorf("%d calls, want %d", len(studio.Submissions()), tt.calls)
			}
			if tt.images > 0 {
				if err != nil || len(p.Results) < tt.images {
					t.Fatalf("%+v, %v", p, err)
				}
				return
			}
			if tr := conformance.JobFailure(t, err); tr.Job != tt.job || tr.Next != tt.next || tr.Lost != tt.lost {
				t.Errorf("%+v: %v", tr, tr)
			}
		})
	}
}

// TestUnsuitable tests that tasks impossible for Ark are not sent.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewArk(t)
	clip := task.Reference("video/mp4", "https://media.example/a.mp4", "ghi")
	large := task.Reference("image/png", "https://media.example/a.png", "")
	large.Size = 11 << 20
	unreadable := task.Reference("image/png", "", "abc")
	unreadable.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	short := task.Reference("image/png", "", "abc")
	short.Size = 5
	many := make([]jobcall.Reference, 6)
	for i := range many {
		many[i] = task.Reference("image/png", "", "")
		many[i].Size = 9 << 20
	}
	conformance.CheckUnsent(t, ark.Provider, studio, map[string]conformance.UnsentTask{
		"mask":              {Task: image(func(job *jobcall.Task) { job.Mask = &jobcall.Reference{} }), Want: pictures.Refused},
		"picture of video":  {Task: image(task.References(clip)), Want: pictures.Refused},
		"large picture":     {Task: image(task.References(large)), Want: pictures.Refused, Message: "10 MB"},
		"large frame":       {Task: video(task.References(large)), Want: clips.Material, Message: "10 MB"},
		"too much together": {Task: image(task.References(many...)), Want: pictures.Refused, Message: "together"},
		"our own store":     {Task: image(task.References(unreadable)), Want: pictures.Refused.WithNext(upstream.NextLater)},
		"a cut reference":   {Task: video(task.References(short)), Want: pictures.Refused.WithNext(upstream.NextLater)},
		"exact clip":        {Task: video(func(job *jobcall.Task) { job.Exact = true }), Want: clips.Refused},
		"odd tier":          {Task: video(func(job *jobcall.Task) { job.Tier = "large" }), Want: clips.Refused},
		"a param of ours":   {Task: image(task.Params(`{"size":"1K"}`)), Want: pictures.Refused},
		"another":           {Task: video(task.Params(`{"callback_url":"https://x.example"}`)), Want: clips.Refused},
		"no object":         {Task: video(task.Params(`[]`)), Want: clips.Refused},
		"another kind":      {Task: image(func(job *jobcall.Task) { job.Kind = "sound" }), Want: pictures.Refused},
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	conformance.CheckOptions(t, ark.Provider, map[string]conformance.OptionsCase{
		"none":    {},
		"frame":   {Options: map[string]any{"image_role": "frame"}},
		"wrong":   {Options: map[string]any{"image_role": "mask"}, Message: "auto, frame, reference"},
		"no word": {Options: map[string]any{"image_role": 1}, Message: "image_role"},
		"unknown": {Options: map[string]any{"role": "frame"}, Message: "role: unknown option"},
	})
}
