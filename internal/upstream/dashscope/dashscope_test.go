package dashscope_test

import (
	"bytes"
	"context"
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
	return task.ApplyChanges(task.Image("wan2.7-image", task.Shape("16:9", 1440, 810)), change...)
}

func video(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("wan3.0-video"), change...)
}

const services = "/api/v1/services/aigc/"

// TestPictures tests the path and body of each submission of pictures.
func TestPictures(t *testing.T) {
	t.Parallel()
	const now, inMessages, fromText, fromImages = services + "multimodal-generation/generation", services + "image-generation/generation",
		services + "text2image/image-synthesis", services + "image2image/image-synthesis"
	body := func(model, content, parameters string) string {
		return `{"model":"` + model + `","input":{"messages":[{"role":"user","content":[` + content + `{"text":"a lighthouse"}]}]},` +
			`"parameters":{` + parameters + `}}`
	}
	noFog, two := task.Params(`{"negative_prompt":"fog"}`), task.Count(2)
	conformance.CheckSubmissions(t, dashscope.Provider, nil, map[string]conformance.Submission{
		"in the answer": {image(task.Count(3), task.Params(`{"negative_prompt":"fog","watermark":false,"seed":7}`)), now,
			body("wan2.7-image", "", `"n":3,"negative_prompt":"fog","seed":7,"size":"1440*810","watermark":false`)},
		"as a task": {image(two, task.Model("wan2.6-t2i"), noFog), inMessages,
			body("wan2.6-t2i", "", `"n":2,"negative_prompt":"fog","size":"1440*810"`)},
		"from a text": {image(two, task.Model("wan2.2-t2i-flash"), noFog), fromText,
			`{"model":"wan2.2-t2i-flash","input":{"negative_prompt":"fog","prompt":"a lighthouse"},"parameters":{"n":2,"size":"1440*810"}}`},
		"from an image": {image(two, task.Model("wan2.5-i2i-preview"), noFog, task.Refs("a.png")), fromImages,
			`{"model":"wan2.5-i2i-preview","input":{"images":["https://media.example/a.png"],"negative_prompt":"fog","prompt":"a lighthouse"},` +
				`"parameters":{"n":2}}`},
		"from pictures": {image(task.Refs("a.png", "inline.webp")), now,
			body("wan2.7-image", `{"image":"https://media.example/a.png"},{"image":"data:image/webp;base64,YWJj"},`, `"n":1,"size":"1K"`)},
		"tier by name":     {image(task.NoRatio(), task.Tier("2K")), now, body("wan2.7-image", "", `"n":1,"size":"2K"`)},
		"tier as a square": {image(task.NoRatio(), task.Model("wan2.6-t2i")), inMessages, body("wan2.6-t2i", "", `"n":1,"size":"1024*1024"`)},
		"old, as a square": {image(task.NoRatio(), task.Model("qwen-image")), fromText,
			`{"model":"qwen-image","input":{"prompt":"a lighthouse"},"parameters":{"n":1,"size":"1024*1024"}}`},
		"shape of the reference": {image(task.Refs("a.png"), task.Model("qwen-image-edit-plus")), now,
			body("qwen-image-edit-plus", `{"image":"https://media.example/a.png"},`, `"n":1`)},
		"by name beside a reference": {image(task.Refs("a.png"), task.Tier("2K")), now,
			body("wan2.7-image", `{"image":"https://media.example/a.png"},`, `"n":1,"size":"2K"`)},
	})
	conformance.CheckUnsuitable(t, dashscope.Provider, map[string]jobcall.Task{
		"larger than pixels can say": image(task.Refs("a.png"), task.Tier("2K"), task.Model("qwen-image-edit-plus")),
		"no tier of DashScope":       image(task.NoRatio(), task.Tier("1080p")),
	})
}

// TestCount tests a response with fewer or more pictures than requested.
func TestCount(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	studio.Expect(fakestudio.Behaviour{Images: 1}, fakestudio.Behaviour{Images: 5})
	a, job := conformance.Line(t, dashscope.Provider, studio.URL(), nil), image(task.Count(3))
	for _, want := range []int{1, 3} {
		p, err := jobcall.Submit(t.Context(), a, job)
		if err != nil || len(p.Results) != want {
			t.Fatalf("%+v, %v, want %d", p, err, want)
		}
		if data, _ := conformance.Fetch(t, a, job, p.Results[want-1]); !bytes.Equal(data, fakestudio.Picture(want-1)) {
			t.Errorf("%d bytes", len(data))
		}
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
		job := image(task.Model(tt.model))
		if _, err := jobcall.Submit(t.Context(), a, job); err != nil {
			t.Errorf("%s: %v", tt.model, err)
			continue
		}
		if got := strings.TrimPrefix(studio.Submissions()[0].Path, services); got != tt.want ||
			a.Blocks(job) != strings.HasPrefix(got, "multi") {
			t.Errorf("%s: %s, want %s", tt.model, got, tt.want)
		}
	}
}

// TestSomePicturesBlocked tests that the remaining pictures are a success.
func TestSomePicturesBlocked(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	job := image(task.Count(3), task.Model("wan2.2-t2i-plus"))
	const flagged = `{"code":"DataInspectionFailed","message":"Output data may contain inappropriate content."}`
	for failed, want := range map[string]int{
		`[{},` + flagged + `,{}]`:           2,
		`[` + flagged + `,{}]`:              1,
		`[{},{},{},{},{}]`:                  3,
		`[` + flagged + `,` + flagged + `]`: 0,
		`[]`:                                -1,
	} {
		studio.Expect(fakestudio.Failure(failed))
		p, err := conformance.SubmitAndPoll(t, a, job)
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

// TestClips tests the path and body of each submission of clips.
func TestClips(t *testing.T) {
	t.Parallel()
	const (
		path = services + "video-generation/video-synthesis"

		first  = `{"type":"first_frame","url":"https://media.example/a.png"}`
		last   = `{"type":"last_frame","url":"data:image/jpeg;base64,YWJj"}`
		shown  = `{"type":"reference_image","url":"https://media.example/a.png"}`
		moves  = `{"type":"reference_video","url":"https://media.example/a.mp4"}`
		edited = `{"type":"video","url":"https://media.example/a.mp4"}`

		p720 = `"resolution":"720P"`
	)
	input := func(model, input, parameters string) string {
		return `{"model":"` + model + `","input":{` + input + `},"parameters":{"duration":5,` + parameters + `}}`
	}
	media := func(model, list, parameters string) string {
		return input(model, `"media":[`+list+`],"prompt":"waves"`, parameters)
	}
	of := func(model string, change ...task.Change) jobcall.Task {
		return video(append([]task.Change{task.Model(model)}, change...)...)
	}
	conformance.CheckSubmissions(t, dashscope.Provider, nil, map[string]conformance.Submission{
		"text": {video(task.Params(`{"negative_prompt":"fog","seed":3}`)), path,
			input("wan3.0-video", `"negative_prompt":"fog","prompt":"waves"`, `"ratio":"16:9",`+p720+`,"seed":3`)},
		"one picture":  {video(task.Refs("a.png")), path, media("wan3.0-video", first, p720)},
		"two":          {video(task.Refs("a.png", "inline.jpeg")), path, media("wan3.0-video", first+","+last, p720)},
		"with a ratio": {video(task.Refs("a.png"), task.Ratio("9:16")), path, media("wan3.0-video", shown, `"ratio":"9:16",`+p720)},
		"a video":      {video(task.Refs("a.png", "a.mp4")), path, media("wan3.0-video", shown+","+moves, p720)},
		"i2v":          {of("wan2.7-i2v", task.Refs("a.png")), path, media("wan2.7-i2v", first, p720)},
		"r2v":          {of("wan2.7-r2v", task.Refs("a.png"), task.Ratio("9:16")), path, media("wan2.7-r2v", shown, `"ratio":"9:16",`+p720)},
		"edit": {of("happyhorse-1.0-video-edit", task.Refs("a.mp4", "a.png")), path,
			media("happyhorse-1.0-video-edit", edited+","+shown, p720)},
		"old i2v": {of("wan2.6-i2v", task.Refs("inline.jpeg")), path,
			input("wan2.6-i2v", `"img_url":"data:image/jpeg;base64,YWJj","prompt":"waves"`, p720)},
		"old r2v": {of("wan2.6-r2v", task.Refs("a.mp4", "a.png"), task.Ratio("9:16")), path,
			input("wan2.6-r2v", `"prompt":"waves","reference_urls":["https://media.example/a.mp4","https://media.example/a.png"]`,
				`"size":"720*1280"`)},
		"old t2v": {of("wan2.5-t2v-preview", task.Tier("480p")), path,
			input("wan2.5-t2v-preview", `"prompt":"waves"`, `"size":"832*480"`)},
		"old t2v, no ratio": {of("wan2.6-t2v", task.NoRatio(), task.Tier("1080p")), path,
			input("wan2.6-t2v", `"prompt":"waves"`, `"size":"1920*1080"`)},
		"old t2v, odd ratio": {of("wan2.6-t2v", task.Ratio("21:9")), path, input("wan2.6-t2v", `"prompt":"waves"`, `"size":"1280*720"`)},
		"old t2v, pixels":    {of("wan2.6-t2v", task.Pixels(960, 960)), path, input("wan2.6-t2v", `"prompt":"waves"`, `"size":"960*960"`)},
		"two frames": {of("wan2.2-kf2v-flash", task.Refs("a.png", "inline.jpeg")), services + "image2video/video-synthesis",
			input("wan2.2-kf2v-flash", `"first_frame_url":"https://media.example/a.png","last_frame_url":"data:image/jpeg;base64,YWJj",`+
				`"prompt":"waves"`, p720)},
	})
	conformance.CheckUnsuitable(t, dashscope.Provider, map[string]jobcall.Task{
		"a video inline":      video(task.Refs("inline.mp4")),
		"i2v with a ratio":    of("wan2.7-i2v", task.Refs("a.png"), task.Ratio("9:16")),
		"t2v with pictures":   of("happyhorse-1.1-t2v", task.Refs("a.png")),
		"old i2v, ratio":      of("wan2.6-i2v", task.Refs("a.png"), task.Ratio("1:1")),
		"old i2v, two":        of("wan2.6-i2v", task.Refs("a.png", "b.png")),
		"old i2v, none":       of("wan2.6-i2v"),
		"old i2v, a video":    of("wan2.6-i2v", task.Refs("a.mp4")),
		"old r2v, inline":     of("wan2.6-r2v-flash", task.Refs("inline.jpeg")),
		"old t2v, odd tier":   of("wan2.6-t2v", task.NoRatio(), task.Tier("540p")),
		"old t2v, references": of("wan2.6-t2v", task.Refs("a.png")),
		"new, pixels":         video(task.Pixels(1280, 720)),
		"two frames, three":   of("wan2.2-kf2v-flash", task.Refs("a.png", "b.png", "c.png")),
		"a tier of none":      video(task.Tier("large")),
	})
	conformance.CheckSubmissions(t, dashscope.Provider, map[string]any{"image_role": "reference"}, map[string]conformance.Submission{
		"reference by option": {video(task.Refs("a.png")), path, media("wan3.0-video", shown, p720)},
	})
	conformance.CheckSubmissions(t, dashscope.Provider, map[string]any{"image_role": "frame"}, map[string]conformance.Submission{
		"frame by option":       {video(task.Refs("a.png")), path, media("wan3.0-video", first, p720)},
		"frame with a ratio":    {Task: video(task.Refs("a.png"), task.Ratio("1:1"))},
		"three frames":          {Task: video(task.Refs("a.png", "b.png", "c.png"))},
		"r2v, frames requested": {of("wan2.7-r2v", task.Refs("a.png")), path, media("wan2.7-r2v", shown, p720)},
	})
}

// TestUnsuitable tests that tasks impossible for DashScope are not sent.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	clip := task.Reference("video/mp4", "https://media.example/a.mp4", "ghi")
	picture := task.Reference("image/png", "https://media.example/a.png", "abc")
	large := task.Reference("image/png", "https://media.example/a.png", "")
	large.Size = 21 << 20
	unreadable := task.Reference("image/png", "", "abc")
	unreadable.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	many := make([]jobcall.Reference, 3)
	for i := range many {
		many[i] = task.Reference("image/png", "", "")
		many[i].Size = 19 << 20
	}
	conformance.CheckUnsent(t, dashscope.Provider, studio, map[string]conformance.UnsentTask{
		"mask":              {Task: image(func(job *jobcall.Task) { job.Mask = &jobcall.Reference{} }), Want: pictures.Refused},
		"picture of video":  {Task: image(task.References(clip)), Want: pictures.Refused},
		"text alone":        {Task: image(task.References(picture), task.Model("wan2.2-t2i-plus")), Want: pictures.Refused},
		"pictures alone":    {Task: image(task.Model("wan2.5-i2i-preview")), Want: pictures.Refused},
		"large picture":     {Task: image(task.References(large)), Want: pictures.Refused, Message: "20 MB"},
		"large frame":       {Task: video(task.References(large)), Want: clips.Material, Message: "20 MB"},
		"too much together": {Task: video(task.References(many...)), Want: clips.Material, Message: "together"},
		"our own store":     {Task: image(task.References(unreadable)), Want: pictures.Refused.WithNext(upstream.NextLater)},
		"a param of ours":   {Task: image(task.Params(`{"n":4}`)), Want: pictures.Refused},
		"another":           {Task: video(task.Params(`{"size":"1*1"}`)), Want: clips.Refused},
		"another kind":      {Task: image(func(job *jobcall.Task) { job.Kind = "sound" }), Want: pictures.Refused},
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	conformance.CheckOptions(t, dashscope.Provider, map[string]conformance.OptionsCase{
		"none": {},
		"all":  {Options: map[string]any{"image_role": "frame", "image_endpoint": "text2image", "video_endpoint": "image2video"}},
		"role": {Options: map[string]any{"image_role": "mask"}, Message: "frame, reference"},
		"image": {Options: map[string]any{"image_endpoint": "video-generation"},
			Message: "multimodal-generation, image-generation, text2image, image2image"},
		"video":   {Options: map[string]any{"video_endpoint": "text2image"}, Message: "video-generation, image2video"},
		"number":  {Options: map[string]any{"video_endpoint": 1}, Message: "video_endpoint: must be text"},
		"unknown": {Options: map[string]any{"endpoint": "x"}, Message: "endpoint: unknown option"},
	})
}
