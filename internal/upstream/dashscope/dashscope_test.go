package dashscope_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/dashscope"
	"tollgate/internal/upstream/jobcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.With(task.Image("wan2.7-image", task.Shape("16:9", 1440, 810)), change...)
}

func video(change ...task.Change) jobcall.Task {
	return task.With(task.Video("wan3.0-video"), change...)
}

// last is the newest submission.
func last(t *testing.T, studio *fakestudio.DashScope) fakestudio.Submission {
	t.Helper()
	all := studio.Submissions()
	if len(all) == 0 {
		t.Fatal("nothing was sent")
	}
	return all[len(all)-1]
}

// TestPicture tests pictures returned in the response.
func TestPicture(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	w := image(task.Count(3), task.Params(`{"negative_prompt":"fog","watermark":false,"seed":7}`))
	if !a.Blocks(w) || a.Blocks(video()) || a.Blocks(image(task.Model("wan2.2-t2i-flash"))) {
		t.Error("only the newer models answer with pictures")
	}
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil || !p.Done || p.Ticket != "" || len(p.Results) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	if data, kind := conformance.Fetch(t, a, w, p.Results[2]); kind != "image/png" || !bytes.Equal(data, fakestudio.Picture(2)) {
		t.Errorf("%d bytes of %s", len(data), kind)
	}
	got := last(t, studio)
	want := `{"model":"wan2.7-image","input":{"messages":[{"role":"user","content":[{"text":"a lighthouse"}]}]},` +
		`"parameters":{"n":3,"negative_prompt":"fog","seed":7,"size":"1440*810","watermark":false}}`
	if string(got.Body) != want {
		t.Errorf("body\n%s, want\n%s", got.Body, want)
	}
	if got.Path != "/api/v1/services/aigc/multimodal-generation/generation" ||
		got.Header.Get("Authorization") != "Bearer "+conformance.Secret ||
		got.Header.Get("X-DashScope-Async") != "" {
		t.Errorf("%s with %v", got.Path, got.Header)
	}
	studio.Expect(fakestudio.Behaviour{Images: 1}, fakestudio.Behaviour{Images: 5})
	for _, want := range []int{1, 3} {
		if p, err := jobcall.Submit(t.Context(), a, w); err != nil || len(p.Results) != want {
			t.Errorf("%+v, %v, want %d", p, err, want)
		}
	}
}

// TestPictureTask tests pictures as tasks, at each endpoint.
func TestPictureTask(t *testing.T) {
	t.Parallel()
	ref := task.Reference("image/png", "https://media.example/a.png", "abc")
	for id, tt := range map[string]struct {
		refs []jobcall.Reference
		body string
	}{
		"wan2.2-t2i-flash": {nil,
			`{"model":"wan2.2-t2i-flash","input":{"negative_prompt":"fog","prompt":"a lighthouse"},"parameters":{"n":2,"size":"1440*810"}}`},
		"wan2.6-t2i": {nil, `{"model":"wan2.6-t2i","input":{"messages":[{"role":"user","content":[{"text":"a lighthouse"}]}]},` +
			`"parameters":{"n":2,"negative_prompt":"fog","size":"1440*810"}}`},
		"wan2.5-i2i-preview": {[]jobcall.Reference{ref},
			`{"model":"wan2.5-i2i-preview","input":{"images":["https://media.example/a.png"],"negative_prompt":"fog","prompt":"a lighthouse"},` +
				`"parameters":{"n":2}}`},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewDashScope(t)
			a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
			w := image(task.Count(2), task.Model(id), task.Params(`{"negative_prompt":"fog"}`))
			if tt.refs != nil {
				task.References(tt.refs...)(&w)
			}
			p, err := jobcall.Submit(t.Context(), a, w)
			if err != nil || p.Done || p.Ticket == "" || a.Blocks(w) {
				t.Fatalf("%+v, %v", p, err)
			}
			got := last(t, studio)
			if string(got.Body) != tt.body || got.Header.Get("X-DashScope-Async") != "enable" {
				t.Errorf("body\n%s, want\n%s", got.Body, tt.body)
			}
			a = conformance.Line(t, dashscope.Provider, studio.URL(), nil) // any process may ask
			if p, err := a.Poll(t.Context(), w, p.Ticket); err != nil || p.Done {
				t.Fatalf("%+v, %v", p, err)
			}
			p, err = a.Poll(t.Context(), w, p.Ticket)
			if err != nil || !p.Done || len(p.Results) != 2 {
				t.Fatalf("%+v, %v", p, err)
			}
			if data, _ := conformance.Fetch(t, a, w, p.Results[1]); !bytes.Equal(data, fakestudio.Picture(1)) {
				t.Errorf("%d bytes", len(data))
			}
		})
	}
}

// TestEndpoints tests the endpoint for each model and the line's options to change the endpoint.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ model, option, want string }{
		{"wan2.7-image", "", "multimodal-generation/generation"},
		{"wan2.7-image-pro", "", "multimodal-generation/generation"},
		{"wan3.0-image", "", "multimodal-generation/generation"},
		{"qwen-image-3.0-pro", "", "multimodal-generation/generation"},
		{"qwen-image-2.0", "", "multimodal-generation/generation"},
		{"qwen-image-max", "", "multimodal-generation/generation"},
		{"something-new", "", "multimodal-generation/generation"},
		{"qwen-image", "", "text2image/image-synthesis"},
		{"qwen-image-plus", "", "text2image/image-synthesis"},
		{"qwen-image-plus-2026-01-09", "", "text2image/image-synthesis"},
		{"wan2.5-t2i-preview", "", "text2image/image-synthesis"},
		{"wanx2.1-t2i-turbo", "", "text2image/image-synthesis"},
		{"wanx-v1", "", "text2image/image-synthesis"},
		{"wan2.6-t2i", "", "image-generation/generation"},
		{"wan2.6-image", "", "image-generation/generation"},
		{"wan2.7-image", "image-generation", "image-generation/generation"},
		{"qwen-image-plus", "multimodal-generation", "multimodal-generation/generation"},
		{"stable-diffusion-9", "text2image", "text2image/image-synthesis"},
	} {
		studio := fakestudio.NewDashScope(t)
		var options map[string]any
		if tt.option != "" {
			options = map[string]any{"image_endpoint": tt.option}
		}
		a := conformance.Line(t, dashscope.Provider, studio.URL(), options)
		w := image(task.Model(tt.model))
		if _, err := jobcall.Submit(t.Context(), a, w); err != nil {
			t.Errorf("%s: %v", tt.model, err)
			continue
		}
		if got := strings.TrimPrefix(last(t, studio).Path, "/api/v1/services/aigc/"); got != tt.want ||
			a.Blocks(w) != strings.HasPrefix(got, "multi") {
			t.Errorf("%s: %s, want %s", tt.model, got, tt.want)
		}
	}
}

func TestPictureSizes(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	ref := task.Reference("image/png", "", "abc")
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want string // empty: no size; "no": unsuitable
	}{
		{"pixels", image(), "1440*810"},
		{"tier by name", image(task.NoRatio(), task.Tier("2K")), "2K"},
		{"tier as a square", image(task.NoRatio(), task.Model("wan2.6-t2i")), "1024*1024"},
		{"old, as a square", image(task.NoRatio(), task.Model("qwen-image")), "1024*1024"},
		{"shape of the reference", image(task.References(ref), task.Model("qwen-image-edit-plus")), ""},
		{"by name beside a reference", image(task.References(ref), task.Tier("2K")), "2K"},
		{"larger than pixels can say", image(task.References(ref), task.Tier("2K"), task.Model("qwen-image-edit-plus")), "no"},
		{"no tier of DashScope", image(task.NoRatio(), task.Tier("1080p")), "no"},
	} {
		before := len(studio.Submissions())
		_, err := jobcall.Submit(t.Context(), a, tt.w)
		if tt.want == "no" {
			if conformance.OutcomeOf(t, err) != refused || len(studio.Submissions()) != before {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var body struct{ Parameters struct{ Size string } }
		if err := json.Unmarshal(last(t, studio).Body, &body); err != nil || body.Parameters.Size != tt.want {
			t.Errorf("%s: size %q, want %q", tt.name, body.Parameters.Size, tt.want)
		}
	}
}

func TestPictureFromPictures(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	web, inline := task.Reference("image/png", "https://media.example/a.png", "abc"), task.Reference("image/webp", "", "def")
	if _, err := jobcall.Submit(t.Context(), a, image(task.References(web, inline))); err != nil {
		t.Fatal(err)
	}
	want := `{"model":"wan2.7-image","input":{"messages":[{"role":"user","content":[{"image":"https://media.example/a.png"},` +
		`{"image":"data:image/webp;base64,ZGVm"},{"text":"a lighthouse"}]}]},"parameters":{"n":1,"size":"1K"}}`
	if got := string(last(t, studio).Body); got != want {
		t.Errorf("body\n%s, want\n%s", got, want)
	}
}

// TestSomePicturesBlocked tests that the remaining pictures are a success.
func TestSomePicturesBlocked(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	w := image(task.Count(3), task.Model("wan2.2-t2i-plus"))
	const flagged = `{"code":"DataInspectionFailed","message":"Output data may contain inappropriate content."}`
	for failed, want := range map[string]int{
		`[{},` + flagged + `,{}]`:           2,
		`[` + flagged + `,{}]`:              1,
		`[{},{},{},{},{}]`:                  3,
		`[` + flagged + `,` + flagged + `]`: 0,
		`[]`:                                -1,
	} {
		studio.Expect(fakestudio.Behaviour{Failed: failed})
		p, err := conformance.SubmitAndPoll(t, a, w)
		switch {
		case want > 0 && (err != nil || len(p.Results) != want):
			t.Errorf("%s: %+v, %v", failed, p, err)
		case want == 0 && conformance.OutcomeOf(t, err) != blocked:
			t.Errorf("%s: %v", failed, err)
		case want < 0 && conformance.JobFailure(t, err).Next != upstream.NextSame:
			t.Errorf("%s: %v", failed, err)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	studio.Expect(fakestudio.Behaviour{Polls: 3})
	w := video(task.Params(`{"negative_prompt":"fog","seed":3}`))
	p, err := conformance.SubmitAndPoll(t, a, w)
	if err != nil || len(p.Results) != 1 || studio.Polls() != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	want := `{"model":"wan3.0-video","input":{"negative_prompt":"fog","prompt":"waves"},` +
		`"parameters":{"duration":5,"ratio":"16:9","resolution":"720P","seed":3}}`
	if got := last(t, studio); string(got.Body) != want || got.Path != "/api/v1/services/aigc/video-generation/video-synthesis" ||
		got.Header.Get("X-DashScope-Async") != "enable" {
		t.Errorf("%s\n%s, want\n%s", got.Path, got.Body, want)
	}
	if data, kind := conformance.Fetch(t, a, w, p.Results[0]); kind != "video/mp4" || !bytes.Equal(data, fakestudio.Clip()) {
		t.Errorf("%d bytes of %s", len(data), kind)
	}
}

// TestClipWords tests the request format of each kind of model.
func TestClipWords(t *testing.T) {
	t.Parallel()
	web, inline := task.Reference("image/png", "https://media.example/a.png", "abc"), task.Reference("image/jpeg", "", "def")
	clip, hidden := task.Reference("video/mp4", "https://media.example/a.mp4", "ghi"), task.Reference("video/mp4", "", "ghi")
	change := func(c ...task.Change) []task.Change { return c }
	const (
		first = `{"type":"first_frame","url":"https://media.example/a.png"}`
		after = `{"type":"last_frame","url":"data:image/jpeg;base64,ZGVm"}`
		shown = `{"type":"reference_image","url":"https://media.example/a.png"}`
		moves = `{"type":"reference_video","url":"https://media.example/a.mp4"}`
	)
	for name, tt := range map[string]struct {
		role   string
		change []task.Change
		want   string // input and parameters without the length; empty if unsuitable
	}{
		"one picture": {change: change(task.References(web)), want: `{"media":[` + first + `]} {"resolution":"720P"}`},
		"two": {change: change(task.References(web, inline)),
			want: `{"media":[` + first + `,` + after + `]} {"resolution":"720P"}`},
		"with a ratio": {change: change(task.References(web), task.Ratio("9:16")),
			want: `{"media":[` + shown + `]} {"ratio":"9:16","resolution":"720P"}`},
		"a video": {change: change(task.References(web, clip)),
			want: `{"media":[` + shown + `,` + moves + `]} {"resolution":"720P"}`},
		"a video inline":      {change: change(task.References(hidden))},
		"reference by option": {role: "reference", change: change(task.References(web)), want: `{"media":[` + shown + `]} {"resolution":"720P"}`},
		"frame by option":     {role: "frame", change: change(task.References(web)), want: `{"media":[` + first + `]} {"resolution":"720P"}`},
		"frame with a ratio":  {role: "frame", change: change(task.References(web), task.Ratio("1:1"))},
		"three frames":        {role: "frame", change: change(task.References(web, web, web))},
		"i2v": {change: change(task.Model("wan2.7-i2v"), task.References(web)),
			want: `{"media":[` + first + `]} {"resolution":"720P"}`},
		"i2v with a ratio": {change: change(task.Model("wan2.7-i2v"), task.References(web), task.Ratio("9:16"))},
		"r2v": {change: change(task.Model("wan2.7-r2v"), task.References(web), task.Ratio("9:16")),
			want: `{"media":[` + shown + `]} {"ratio":"9:16","resolution":"720P"}`},
		"r2v, frames requested": {role: "frame", change: change(task.Model("wan2.7-r2v"), task.References(web)),
			want: `{"media":[` + shown + `]} {"resolution":"720P"}`},
		"edit": {change: change(task.Model("happyhorse-1.0-video-edit"), task.References(clip, web)),
			want: `{"media":[{"type":"video","url":"https://media.example/a.mp4"},` + shown + `]} {"resolution":"720P"}`},
		"t2v with pictures": {change: change(task.Model("happyhorse-1.1-t2v"), task.References(web))},
		"old i2v": {change: change(task.Model("wan2.6-i2v"), task.References(inline)),
			want: `{"img_url":"data:image/jpeg;base64,ZGVm"} {"resolution":"720P"}`},
		"old i2v, ratio":   {change: change(task.Model("wan2.6-i2v"), task.References(inline), task.Ratio("1:1"))},
		"old i2v, two":     {change: change(task.Model("wan2.6-i2v"), task.References(inline, web))},
		"old i2v, none":    {change: change(task.Model("wan2.6-i2v"))},
		"old i2v, a video": {change: change(task.Model("wan2.6-i2v"), task.References(clip))},
		"old r2v": {change: change(task.Model("wan2.6-r2v"), task.References(clip, web), task.Ratio("9:16")),
			want: `{"reference_urls":["https://media.example/a.mp4","https://media.example/a.png"]} {"size":"720*1280"}`},
		"old r2v, inline":     {change: change(task.Model("wan2.6-r2v-flash"), task.References(inline))},
		"old t2v":             {change: change(task.Model("wan2.5-t2v-preview"), task.Tier("480p")), want: `{} {"size":"832*480"}`},
		"old t2v, no ratio":   {change: change(task.Model("wan2.6-t2v"), task.NoRatio(), task.Tier("1080p")), want: `{} {"size":"1920*1080"}`},
		"old t2v, odd ratio":  {change: change(task.Model("wan2.6-t2v"), task.Ratio("21:9")), want: `{} {"size":"1280*720"}`},
		"old t2v, odd tier":   {change: change(task.Model("wan2.6-t2v"), task.NoRatio(), task.Tier("540p"))},
		"old t2v, references": {change: change(task.Model("wan2.6-t2v"), task.References(web))},
		"old t2v, pixels": {change: change(task.Model("wan2.6-t2v"), func(w *jobcall.Task) { w.Width, w.Height, w.Exact = 960, 960, true }),
			want: `{} {"size":"960*960"}`},
		"new, pixels": {change: change(func(w *jobcall.Task) { w.Exact = true })},
		"two frames": {change: change(task.Model("wan2.2-kf2v-flash"), task.References(web, inline)),
			want: `{"first_frame_url":"https://media.example/a.png","last_frame_url":"data:image/jpeg;base64,ZGVm"} {"resolution":"720P"}`},
		"two frames, three": {change: change(task.Model("wan2.2-kf2v-flash"), task.References(web, web, web))},
		"a tier of none":    {change: change(task.Tier("large"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewDashScope(t)
			var options map[string]any
			if tt.role != "" {
				options = map[string]any{"image_role": tt.role}
			}
			w := video(tt.change...)
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, dashscope.Provider, studio.URL(), options), w)
			if tt.want == "" {
				if conformance.OutcomeOf(t, err) != parameter || len(studio.Submissions()) != 0 {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var body struct{ Input, Parameters map[string]json.RawMessage }
			if err := json.Unmarshal(last(t, studio).Body, &body); err != nil {
				t.Fatal(err)
			}
			if string(body.Input["prompt"]) != `"waves"` || string(body.Parameters["duration"]) != "5" {
				t.Errorf("%s", last(t, studio).Body)
			}
			delete(body.Input, "prompt")
			delete(body.Parameters, "duration")
			in, _ := json.Marshal(body.Input)
			out, _ := json.Marshal(body.Parameters)
			if got := string(in) + " " + string(out); got != tt.want {
				t.Errorf("%s, want\n%s", got, tt.want)
			}
			want := "video-generation"
			if strings.Contains(w.Model, "kf2v") {
				want = "image2video"
			}
			if !strings.Contains(last(t, studio).Path, want) {
				t.Errorf("sent to %s", last(t, studio).Path)
			}
		})
	}
}

// TestUnsuitable tests that tasks impossible for DashScope are not sent.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	clip := task.Reference("video/mp4", "https://media.example/a.mp4", "ghi")
	picture := task.Reference("image/png", "https://media.example/a.png", "abc")
	large := task.Reference("image/png", "https://media.example/a.png", "")
	large.Size = 21 << 20
	gone := task.Reference("image/png", "", "abc")
	gone.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	many := make([]jobcall.Reference, 3)
	for i := range many {
		many[i] = task.Reference("image/png", "", "")
		many[i].Size = 19 << 20
	}
	conformance.CheckUnsent(t, dashscope.Provider, studio, map[string]conformance.Unsent{
		"mask":              {Task: image(func(w *jobcall.Task) { w.Mask = &jobcall.Reference{} }), Want: pictures.Refused},
		"picture of video":  {Task: image(task.References(clip)), Want: pictures.Refused},
		"text alone":        {Task: image(task.References(picture), task.Model("wan2.2-t2i-plus")), Want: pictures.Refused},
		"pictures alone":    {Task: image(task.Model("wan2.5-i2i-preview")), Want: pictures.Refused},
		"large picture":     {Task: image(task.References(large)), Want: pictures.Refused, Told: "20 MB"},
		"large frame":       {Task: video(task.References(large)), Want: clips.Material, Told: "20 MB"},
		"too much together": {Task: video(task.References(many...)), Want: clips.Material, Told: "together"},
		"our own store":     {Task: image(task.References(gone)), Want: pictures.Refused.Then(upstream.NextLater)},
		"a param of ours":   {Task: image(task.Params(`{"n":4}`)), Want: pictures.Refused},
		"another":           {Task: video(task.Params(`{"size":"1*1"}`)), Want: clips.Refused},
		"another kind":      {Task: image(func(w *jobcall.Task) { w.Kind = "sound" }), Want: pictures.Refused},
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	conformance.CheckOptions(t, dashscope.Provider, map[string]conformance.OptionsCase{
		"none": {},
		"all":  {Options: map[string]any{"image_role": "frame", "image_endpoint": "text2image", "video_endpoint": "image2video"}},
		"role": {Options: map[string]any{"image_role": "mask"}, Told: "frame, reference"},
		"image": {Options: map[string]any{"image_endpoint": "video-generation"},
			Told: "multimodal-generation, image-generation, text2image, image2image"},
		"video":   {Options: map[string]any{"video_endpoint": "text2image"}, Told: "video-generation, image2video"},
		"number":  {Options: map[string]any{"video_endpoint": 1}, Told: "video_endpoint: must be a text"},
		"unknown": {Options: map[string]any{"endpoint": "x"}, Told: "endpoint: unknown option"},
	})
}
