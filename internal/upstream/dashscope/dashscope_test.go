package dashscope_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/dashscope"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-line-credential-0123456789"

// at makes the adapter of a line at an address with a transport of its own.
func at(t testing.TB, address string, options map[string]any) *dashscope.Adapter {
	t.Helper()
	transport := exchange.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	a, err := dashscope.New(upstream.Target{Line: "main", Provider: dashscope.Provider, BaseURL: address, Key: key,
		Options: options}, transport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// image is a picture to be made; change changes it.
func image(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindImage, Model: "wan2.7-image", Prompt: "a lighthouse", Count: 1,
		Tier: "1K", Ratio: "16:9", Width: 1440, Height: 810, Key: "sub_1", Reading: reading}
	for _, c := range change {
		c(&w)
	}
	return w
}

// video is a clip to be made; change changes it.
func video(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindVideo, Model: "wan3.0-video", Prompt: "waves", Count: 1,
		Tier: "720p", Ratio: "16:9", Width: 1280, Height: 720, Seconds: 5, Key: "sub_1", Reading: reading}
	for _, c := range change {
		c(&w)
	}
	return w
}

func reading(context.Context) (func(), error) { return func() {}, nil }

// reference is one with bytes of its own; url may be empty.
func reference(kind, url string, data []byte) jobcall.Reference {
	return jobcall.Reference{Type: kind, Size: int64(len(data)), URL: url,
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

func refs(list ...jobcall.Reference) func(*jobcall.Task) {
	return func(w *jobcall.Task) { w.References, w.Ratio, w.Width, w.Height = list, "", 0, 0 }
}

func ratio(name string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Ratio = name } }

func params(object string) func(*jobcall.Task) {
	return func(w *jobcall.Task) { w.Params = json.RawMessage(object) }
}

func count(n int) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Count = n } }

func model(id string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Model = id } }

// jobFailure asserts that err is a *upstream.JobFailure.
func jobFailure(t *testing.T, err error) *upstream.JobFailure {
	t.Helper()
	var tr *upstream.JobFailure
	if !errors.As(err, &tr) {
		t.Fatalf("error %v (%T), want a *upstream.JobFailure", err, err)
	}
	return tr
}

// fetched reads a result.
func fetched(t *testing.T, a *dashscope.Adapter, w jobcall.Task, r jobcall.Result) ([]byte, string) {
	t.Helper()
	file, err := a.Fetch(t.Context(), w, r)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Body.Close()
	data, err := io.ReadAll(file.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data, file.Type
}

func tier(name string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Tier = name } }

func noRatio(w *jobcall.Task) { w.Ratio, w.Width, w.Height = "", 0, 0 }

// last is the newest submission.
func last(t *testing.T, studio *fakestudio.DashScope) fakestudio.Submission {
	t.Helper()
	all := studio.Submissions()
	if len(all) == 0 {
		t.Fatal("nothing was sent")
	}
	return all[len(all)-1]
}

// TestPicture: pictures that come in the answer.
func TestPicture(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := at(t, studio.URL(), nil)
	w := image(count(3), params(`{"negative_prompt":"fog","watermark":false,"seed":7}`))
	if !a.Blocks(w) || a.Blocks(video()) || a.Blocks(image(model("wan2.2-t2i-flash"))) {
		t.Error("only the newer models answer with pictures")
	}
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil || !p.Done || p.Ticket != "" || len(p.Results) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	if data, kind := fetched(t, a, w, p.Results[2]); kind != "image/png" || !bytes.Equal(data, fakestudio.Picture(2)) {
		t.Errorf("%d bytes of %s", len(data), kind)
	}
	got := last(t, studio)
	want := `{"model":"wan2.7-image","input":{"messages":[{"role":"user","content":[{"text":"a lighthouse"}]}]},` +
		`"parameters":{"n":3,"negative_prompt":"fog","seed":7,"size":"1440*810","watermark":false}}`
	if string(got.Body) != want {
		t.Errorf("body\n%s, want\n%s", got.Body, want)
	}
	if got.Path != "/api/v1/services/aigc/multimodal-generation/generation" || got.Header.Get("Authorization") != "Bearer "+key ||
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

// TestPictureTask: pictures that are tasks, at each endpoint.
func TestPictureTask(t *testing.T) {
	t.Parallel()
	ref := reference("image/png", "https://media.example/a.png", []byte("abc"))
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
			a := at(t, studio.URL(), nil)
			w := image(count(2), model(id), params(`{"negative_prompt":"fog"}`))
			if tt.refs != nil {
				refs(tt.refs...)(&w)
			}
			p, err := jobcall.Submit(t.Context(), a, w)
			if err != nil || p.Done || p.Ticket == "" || a.Blocks(w) {
				t.Fatalf("%+v, %v", p, err)
			}
			got := last(t, studio)
			if string(got.Body) != tt.body || got.Header.Get("X-DashScope-Async") != "enable" {
				t.Errorf("body\n%s, want\n%s", got.Body, tt.body)
			}
			a = at(t, studio.URL(), nil) // any process may ask
			if p, err := a.Poll(t.Context(), w, p.Ticket); err != nil || p.Done {
				t.Fatalf("%+v, %v", p, err)
			}
			p, err = a.Poll(t.Context(), w, p.Ticket)
			if err != nil || !p.Done || len(p.Results) != 2 {
				t.Fatalf("%+v, %v", p, err)
			}
			if data, _ := fetched(t, a, w, p.Results[1]); !bytes.Equal(data, fakestudio.Picture(1)) {
				t.Errorf("%d bytes", len(data))
			}
		})
	}
}

// TestEndpoints: which one a model has, and that a line may say otherwise.
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
		a := at(t, studio.URL(), options)
		w := image(model(tt.model))
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
	a := at(t, studio.URL(), nil)
	ref := reference("image/png", "", []byte("abc"))
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want string // empty: none; "no": unsuitable
	}{
		{"pixels", image(), "1440*810"},
		{"tier by name", image(noRatio, tier("2K")), "2K"},
		{"tier as a square", image(noRatio, model("wan2.6-t2i")), "1024*1024"},
		{"old, as a square", image(noRatio, model("qwen-image")), "1024*1024"},
		{"shape of the reference", image(refs(ref), model("qwen-image-edit-plus")), ""},
		{"by name beside a reference", image(refs(ref), tier("2K")), "2K"},
		{"larger than pixels can say", image(refs(ref), tier("2K"), model("qwen-image-edit-plus")), "no"},
		{"no tier of DashScope", image(noRatio, tier("1080p")), "no"},
	} {
		before := len(studio.Submissions())
		_, err := jobcall.Submit(t.Context(), a, tt.w)
		if tt.want == "no" {
			if tr := jobFailure(t, err); tr.Next != upstream.NextLine || tr.Health != upstream.HealthNone || len(studio.Submissions()) != before {
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
	a := at(t, studio.URL(), nil)
	web, inline := reference("image/png", "https://media.example/a.png", []byte("abc")), reference("image/webp", "", []byte("def"))
	if _, err := jobcall.Submit(t.Context(), a, image(refs(web, inline))); err != nil {
		t.Fatal(err)
	}
	want := `{"model":"wan2.7-image","input":{"messages":[{"role":"user","content":[{"image":"https://media.example/a.png"},` +
		`{"image":"data:image/webp;base64,ZGVm"},{"text":"a lighthouse"}]}]},"parameters":{"n":1,"size":"1K"}}`
	if got := string(last(t, studio).Body); got != want {
		t.Errorf("body\n%s, want\n%s", got, want)
	}
}

// TestSomePicturesBlocked: what came is the answer.
func TestSomePicturesBlocked(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := at(t, studio.URL(), nil)
	w := image(count(3), model("wan2.2-t2i-plus"))
	const flagged = `{"code":"DataInspectionFailed","message":"Output data may contain inappropriate content."}`
	for failed, want := range map[string]int{
		`[{},` + flagged + `,{}]`:           2,
		`[` + flagged + `,{}]`:              1,
		`[{},{},{},{},{}]`:                  3,
		`[` + flagged + `,` + flagged + `]`: 0,
		`[]`:                                -1,
	} {
		studio.Expect(fakestudio.Behaviour{Failed: failed})
		p, err := end(t, a, w)
		switch {
		case want > 0 && (err != nil || len(p.Results) != want):
			t.Errorf("%s: %+v, %v", failed, p, err)
		case want == 0 && judged(jobFailure(t, err)) != blocked:
			t.Errorf("%s: %v", failed, err)
		case want < 0 && jobFailure(t, err).Next != upstream.NextSame:
			t.Errorf("%s: %v", failed, err)
		}
	}
}

// end submits a work and polls it to its end.
func end(t *testing.T, a *dashscope.Adapter, w jobcall.Task) (*jobcall.TaskStatus, error) {
	t.Helper()
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		got, err := a.Poll(t.Context(), w, p.Ticket)
		if err != nil || got.Done {
			return got, err
		}
	}
	t.Fatal("goes on for ever")
	return nil, nil
}

func TestClip(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := at(t, studio.URL(), nil)
	studio.Expect(fakestudio.Behaviour{Polls: 3})
	w := video(params(`{"negative_prompt":"fog","seed":3}`))
	p, err := end(t, a, w)
	if err != nil || len(p.Results) != 1 || studio.Polls() != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	want := `{"model":"wan3.0-video","input":{"negative_prompt":"fog","prompt":"waves"},` +
		`"parameters":{"duration":5,"ratio":"16:9","resolution":"720P","seed":3}}`
	if got := last(t, studio); string(got.Body) != want || got.Path != "/api/v1/services/aigc/video-generation/video-synthesis" ||
		got.Header.Get("X-DashScope-Async") != "enable" {
		t.Errorf("%s\n%s, want\n%s", got.Path, got.Body, want)
	}
	if data, kind := fetched(t, a, w, p.Results[0]); kind != "video/mp4" || !bytes.Equal(data, fakestudio.Clip()) {
		t.Errorf("%d bytes of %s", len(data), kind)
	}
}

// TestClipWords: the words in which each kind of model takes a request.
func TestClipWords(t *testing.T) {
	t.Parallel()
	web, inline := reference("image/png", "https://media.example/a.png", []byte("abc")), reference("image/jpeg", "", []byte("def"))
	clip, hidden := reference("video/mp4", "https://media.example/a.mp4", []byte("ghi")), reference("video/mp4", "", []byte("ghi"))
	change := func(c ...func(*jobcall.Task)) []func(*jobcall.Task) { return c }
	const (
		first = `{"type":"first_frame","url":"https://media.example/a.png"}`
		after = `{"type":"last_frame","url":"data:image/jpeg;base64,ZGVm"}`
		shown = `{"type":"reference_image","url":"https://media.example/a.png"}`
		moves = `{"type":"reference_video","url":"https://media.example/a.mp4"}`
	)
	for name, tt := range map[string]struct {
		role   string
		change []func(*jobcall.Task)
		want   string // of the input and the parameters without the length; empty: unsuitable
	}{
		"one picture":         {change: change(refs(web)), want: `{"media":[` + first + `]} {"resolution":"720P"}`},
		"two":                 {change: change(refs(web, inline)), want: `{"media":[` + first + `,` + after + `]} {"resolution":"720P"}`},
		"with a ratio":        {change: change(refs(web), ratio("9:16")), want: `{"media":[` + shown + `]} {"ratio":"9:16","resolution":"720P"}`},
		"a video":             {change: change(refs(web, clip)), want: `{"media":[` + shown + `,` + moves + `]} {"resolution":"720P"}`},
		"a video inline":      {change: change(refs(hidden))},
		"reference by option": {role: "reference", change: change(refs(web)), want: `{"media":[` + shown + `]} {"resolution":"720P"}`},
		"frame by option":     {role: "frame", change: change(refs(web)), want: `{"media":[` + first + `]} {"resolution":"720P"}`},
		"frame with a ratio":  {role: "frame", change: change(refs(web), ratio("1:1"))},
		"three frames":        {role: "frame", change: change(refs(web, web, web))},
		"i2v":                 {change: change(model("wan2.7-i2v"), refs(web)), want: `{"media":[` + first + `]} {"resolution":"720P"}`},
		"i2v with a ratio":    {change: change(model("wan2.7-i2v"), refs(web), ratio("9:16"))},
		"r2v": {change: change(model("wan2.7-r2v"), refs(web), ratio("9:16")),
			want: `{"media":[` + shown + `]} {"ratio":"9:16","resolution":"720P"}`},
		"r2v, frames asked": {role: "frame", change: change(model("wan2.7-r2v"), refs(web)),
			want: `{"media":[` + shown + `]} {"resolution":"720P"}`},
		"edit": {change: change(model("happyhorse-1.0-video-edit"), refs(clip, web)),
			want: `{"media":[{"type":"video","url":"https://media.example/a.mp4"},` + shown + `]} {"resolution":"720P"}`},
		"t2v with pictures": {change: change(model("happyhorse-1.1-t2v"), refs(web))},
		"old i2v": {change: change(model("wan2.6-i2v"), refs(inline)),
			want: `{"img_url":"data:image/jpeg;base64,ZGVm"} {"resolution":"720P"}`},
		"old i2v, ratio":   {change: change(model("wan2.6-i2v"), refs(inline), ratio("1:1"))},
		"old i2v, two":     {change: change(model("wan2.6-i2v"), refs(inline, web))},
		"old i2v, none":    {change: change(model("wan2.6-i2v"))},
		"old i2v, a video": {change: change(model("wan2.6-i2v"), refs(clip))},
		"old r2v": {change: change(model("wan2.6-r2v"), refs(clip, web), ratio("9:16")),
			want: `{"reference_urls":["https://media.example/a.mp4","https://media.example/a.png"]} {"size":"720*1280"}`},
		"old r2v, inline":     {change: change(model("wan2.6-r2v-flash"), refs(inline))},
		"old t2v":             {change: change(model("wan2.5-t2v-preview"), tier("480p")), want: `{} {"size":"832*480"}`},
		"old t2v, no ratio":   {change: change(model("wan2.6-t2v"), noRatio, tier("1080p")), want: `{} {"size":"1920*1080"}`},
		"old t2v, odd ratio":  {change: change(model("wan2.6-t2v"), ratio("21:9")), want: `{} {"size":"1280*720"}`},
		"old t2v, odd tier":   {change: change(model("wan2.6-t2v"), noRatio, tier("540p"))},
		"old t2v, references": {change: change(model("wan2.6-t2v"), refs(web))},
		"old t2v, pixels": {change: change(model("wan2.6-t2v"), func(w *jobcall.Task) { w.Width, w.Height, w.Exact = 960, 960, true }),
			want: `{} {"size":"960*960"}`},
		"new, pixels": {change: change(func(w *jobcall.Task) { w.Exact = true })},
		"two frames": {change: change(model("wan2.2-kf2v-flash"), refs(web, inline)),
			want: `{"first_frame_url":"https://media.example/a.png","last_frame_url":"data:image/jpeg;base64,ZGVm"} {"resolution":"720P"}`},
		"two frames, three": {change: change(model("wan2.2-kf2v-flash"), refs(web, web, web))},
		"a tier of none":    {change: change(tier("large"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewDashScope(t)
			var options map[string]any
			if tt.role != "" {
				options = map[string]any{"image_role": tt.role}
			}
			w := video(tt.change...)
			_, err := jobcall.Submit(t.Context(), at(t, studio.URL(), options), w)
			if tt.want == "" {
				if tr := jobFailure(t, err); judged(tr) != parameter || tr.Lost || len(studio.Submissions()) != 0 {
					t.Errorf("%+v: %v", tr, tr)
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

// TestUnsuitable: what DashScope cannot be asked for is not sent.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := at(t, studio.URL(), nil)
	clip := reference("video/mp4", "https://media.example/a.mp4", []byte("ghi"))
	picture := reference("image/png", "https://media.example/a.png", []byte("abc"))
	large := reference("image/png", "https://media.example/a.png", nil)
	large.Size = 21 << 20
	gone := reference("image/png", "", []byte("abc"))
	gone.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	many := make([]jobcall.Reference, 3)
	for i := range many {
		many[i] = reference("image/png", "", nil)
		many[i].Size = 19 << 20
	}
	for name, tt := range map[string]struct {
		w    jobcall.Task
		job  fault.Code
		next upstream.Next
		told string
	}{
		"mask": {w: image(func(w *jobcall.Task) { w.Mask = &jobcall.Reference{} }), job: fault.UpstreamError,
			next: upstream.NextLine},
		"picture of video":  {w: image(refs(clip)), job: fault.UpstreamError, next: upstream.NextLine},
		"text alone":        {w: image(refs(picture), model("wan2.2-t2i-plus")), job: fault.UpstreamError, next: upstream.NextLine},
		"pictures alone":    {w: image(model("wan2.5-i2i-preview")), job: fault.UpstreamError, next: upstream.NextLine},
		"large picture":     {w: image(refs(large)), job: fault.UpstreamError, next: upstream.NextLine, told: "20 MB"},
		"large frame":       {w: video(refs(large)), job: fault.InvalidMaterial, next: upstream.NextLine, told: "20 MB"},
		"too much together": {w: video(refs(many...)), job: fault.InvalidMaterial, next: upstream.NextLine, told: "together"},
		"our own store":     {w: image(refs(gone)), job: fault.UpstreamError, next: upstream.NextLater},
		"a param of ours":   {w: image(params(`{"n":4}`)), job: fault.UpstreamError, next: upstream.NextLine},
		"another":           {w: video(params(`{"size":"1*1"}`)), job: fault.InvalidRequest, next: upstream.NextLine},
		"another kind":      {w: image(func(w *jobcall.Task) { w.Kind = "sound" }), job: fault.UpstreamError, next: upstream.NextLine},
	} {
		_, err := jobcall.Submit(t.Context(), a, tt.w)
		if tr := jobFailure(t, err); tr.Job != tt.job || tr.Next != tt.next || tr.Health != upstream.HealthNone || tr.Lost ||
			!strings.Contains(tr.Message, tt.told) {
			t.Errorf("%s: %+v: %v", name, tr, tr)
		}
	}
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d were sent", n)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options map[string]any
		want    string
	}{
		"none":    {nil, ""},
		"all":     {map[string]any{"image_role": "frame", "image_endpoint": "text2image", "video_endpoint": "image2video"}, ""},
		"role":    {map[string]any{"image_role": "mask"}, "frame, reference"},
		"image":   {map[string]any{"image_endpoint": "video-generation"}, "multimodal-generation, image-generation, text2image, image2image"},
		"video":   {map[string]any{"video_endpoint": 1}, "video-generation, image2video"},
		"unknown": {map[string]any{"endpoint": "x"}, `"endpoint"`},
	} {
		_, err := dashscope.New(upstream.Target{Line: "main", Options: tt.options, BaseURL: "http://host"}, http.DefaultTransport)
		if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "main")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := dashscope.New(upstream.Target{Line: "main", BaseURL: "ftp://host"}, http.DefaultTransport); err == nil {
		t.Error("a base address that is none was taken")
	}
}
