package input_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// object is the type of the catalog reader for an object in the options.
type object = map[string]any

// defaultWords returns the defaults of a provider for tests.
func defaultWords() input.Defaults {
	return input.Defaults{
		Fields: map[string]string{
			input.Prompt: "prompt", input.Count: "n", input.Image: "image", input.Images: "images", input.Mask: "mask",
			input.Size: "image_size", input.Width: "width", input.Height: "height",
			input.Ratio: "aspect_ratio", input.Resolution: "resolution", input.Duration: "duration",
		},
		ImageSize: input.SizeObject, VideoSize: input.SizeRatio, Duration: input.DurationNumber,
	}
}

func image() jobcall.Task {
	return jobcall.Task{Kind: upstream.KindImage, Model: "m", Prompt: "p", Count: 1, Tier: "2K", Ratio: "1:1", Width: 2048, Height: 2048}
}

func video() jobcall.Task {
	return jobcall.Task{Kind: upstream.KindVideo, Model: "m", Prompt: "p", Count: 1, Tier: "720p", Ratio: "16:9", Width: 1280, Height: 720,
		Seconds: 5}
}

// at returns a reference with an address.
func at(kind, address string) jobcall.Reference {
	return jobcall.Reference{Type: kind, Size: 1, URL: address}
}

// writer is a generator that writes each submitted task with Style.Write.
type writer struct {
	jobcall.Generator
	style *input.Style
	carry input.Carry
	body  []byte
}

func (r *writer) ParamRule(jobcall.Task) jobcall.ParamRule { return r.style.ParamRule() }

func (r *writer) Submit(ctx context.Context, task jobcall.Task) (_ *jobcall.TaskStatus, err error) {
	r.body, err = r.style.Write(ctx, task, r.carry)
	return nil, err
}

// inputOf submits a task and returns its input in a style.
func inputOf(t *testing.T, style *input.Style, task jobcall.Task, carry input.Carry) ([]byte, error) {
	g := &writer{style: style, carry: carry}
	_, err := jobcall.Submit(t.Context(), g, task)
	return g.body, err
}

// write writes a task in the style of a line's options.
func write(t *testing.T, options object, task jobcall.Task) (model, body string, failure *upstream.JobFailure) {
	t.Helper()
	o, err := input.Read(options)
	if err != nil {
		t.Fatal(err)
	}
	style := o.Style(task, defaultWords())
	raw, err := inputOf(t, style, task, func(_ context.Context, r jobcall.Reference) (string, error) { return r.URL, nil })
	if err != nil && !errors.As(err, &failure) {
		t.Fatalf("the error is not a *upstream.JobFailure: %v", err)
	}
	return style.Model, string(raw), failure
}

func TestWrite(t *testing.T) {
	t.Parallel()
	with := func(task jobcall.Task, change func(*jobcall.Task)) jobcall.Task {
		change(&task)
		return task
	}
	one := func(task *jobcall.Task) { task.References = []jobcall.Reference{at("image/png", "a")} }
	two := func(task *jobcall.Task) {
		task.References = []jobcall.Reference{at("image/png", "a"), at("image/webp", "b")}
	}
	for name, tt := range map[string]struct {
		options object
		task    jobcall.Task
		want    string
	}{
		"image": {nil, image(), `{"image_size":{"height":2048,"width":2048},"prompt":"p"}`},
		"video": {nil, video(), `{"aspect_ratio":"16:9","duration":5,"prompt":"p","resolution":"720p"}`},
		"several": {nil, with(image(), func(task *jobcall.Task) { task.Count = 3 }),
			`{"image_size":{"height":2048,"width":2048},"n":3,"prompt":"p"}`},
		"renamed": {object{"fields": object{"prompt": "text", "size": "dims"}}, image(),
			`{"dims":{"height":2048,"width":2048},"text":"p"}`},
		"omitted fields": {object{"fields": object{"duration": "", "resolution": ""}}, video(), `{"aspect_ratio":"16:9","prompt":"p"}`},
		"pixels":         {object{"size": "pixels"}, image(), `{"height":2048,"prompt":"p","width":2048}`},
		"ratio":          {object{"size": "ratio"}, image(), `{"aspect_ratio":"1:1","prompt":"p","resolution":"2K"}`},
		"no size":        {object{"size": "none"}, image(), `{"prompt":"p"}`},
		"pixels and tier": {object{"size": "pixels", "fields": object{"resolution": "quality"}}, image(),
			`{"height":2048,"prompt":"p","quality":"2K","width":2048}`},
		"seconds": {object{"duration": "seconds"}, video(),
			`{"aspect_ratio":"16:9","duration":"5s","prompt":"p","resolution":"720p"}`},
		"text": {object{"duration": "text"}, video(), `{"aspect_ratio":"16:9","duration":"5","prompt":"p","resolution":"720p"}`},
		"spelling of values": {
			object{"values": object{"resolution": object{"720p": "hd"}, "duration": object{"5": int64(121)}, "ratio": object{"9:16": "tall"}}},
			video(), `{"aspect_ratio":"16:9","duration":121,"prompt":"p","resolution":"hd"}`},
		"without a ratio": {nil, with(video(), func(task *jobcall.Task) { task.Ratio, task.Width, task.Height, task.Seconds = "", 0, 0, 0 }),
			`{"prompt":"p","resolution":"720p"}`},
		"without pixels": {nil, with(image(), func(task *jobcall.Task) { task.Tier, task.Ratio, task.Width, task.Height = "1K", "", 0, 0 }),
			`{"prompt":"p"}`},
		"a tier without pixels": {nil, with(image(), func(task *jobcall.Task) { task.Ratio, task.Width, task.Height = "", 0, 0 }),
			`{"image_size":{"height":2048,"width":2048},"prompt":"p"}`},
		"an edit at a larger tier": {object{"size": "pixels"},
			with(image(), func(task *jobcall.Task) {
				one(task)
				task.HasSmallerTier, task.Ratio, task.Width, task.Height = true, "", 0, 0
			}),
			`{"height":2048,"image":"a","prompt":"p","width":2048}`},
		"the larger of two small tiers": {nil,
			with(image(), func(task *jobcall.Task) {
				task.Tier, task.HasSmallerTier, task.Ratio, task.Width, task.Height = "1K", true, "", 0, 0
			}),
			`{"image_size":{"height":1024,"width":1024},"prompt":"p"}`},
		"a larger tier by name": {object{"size": "ratio"},
			with(image(), func(task *jobcall.Task) { task.HasSmallerTier, task.Ratio, task.Width, task.Height = true, "", 0, 0 }),
			`{"prompt":"p","resolution":"2K"}`},
		"a larger tier by name beside pixels": {object{"size": "pixels", "fields": object{"resolution": "quality"}},
			with(image(), func(task *jobcall.Task) { task.HasSmallerTier, task.Ratio, task.Width, task.Height = true, "", 0, 0 }),
			`{"prompt":"p","quality":"2K"}`},
		"without prompt": {nil, with(video(), func(task *jobcall.Task) { task.Prompt = ""; one(task) }),
			`{"aspect_ratio":"16:9","duration":5,"image":"a","resolution":"720p"}`},
		"a reference": {object{"size": "none"}, with(image(), one), `{"image":"a","prompt":"p"}`},
		"references":  {object{"size": "none"}, with(image(), two), `{"images":["a","b"],"prompt":"p"}`},
		"always a list": {object{"size": "none", "fields": object{"image": "", "images": "image_input"}}, with(image(), one),
			`{"image_input":["a"],"prompt":"p"}`},
		"mask": {object{"size": "none"}, with(image(), func(task *jobcall.Task) { one(task); task.Mask = &task.References[0] }),
			`{"image":"a","mask":"a","prompt":"p"}`},
		"a video": {object{"size": "none", "fields": object{"video": "clip"}},
			with(image(), func(task *jobcall.Task) { task.References = []jobcall.Reference{at("video/mp4", "v")} }), `{"clip":"v","prompt":"p"}`},
		"further fields": {object{"size": "none", "input": object{"steps": int64(4), "safe": true}},
			with(image(), func(task *jobcall.Task) { task.Params = json.RawMessage(`{"seed":9007199254740993,"steps":8}`) }),
			`{"prompt":"p","safe":true,"seed":9007199254740993,"steps":8}`},
		"frames": {object{"size": "none", "fields": object{"first_frame": "start", "last_frame": "end", "audio": "sound"}},
			with(video(), func(task *jobcall.Task) {
				task.Seconds, task.References = 0, []jobcall.Reference{at("image/png", "a"), at("image/png", "b")}
				task.References[0].Role, task.References[1].Role = "last_frame", "first_frame"
				task.Params = json.RawMessage(`{"audio":true}`)
			}), `{"end":"a","prompt":"p","sound":true,"start":"b"}`},
		"references by role": {object{"size": "none", "fields": object{"reference_images": "subjects"}},
			with(video(), func(task *jobcall.Task) {
				one(task)
				task.Seconds, task.References[0].Role = 0, "reference"
			}), `{"prompt":"p","subjects":["a"]}`},
		"fields of the task take precedence": {object{"size": "none", "input": object{"prompt": "x", "n": int64(4)}},
			image(), `{"n":4,"prompt":"p"}`},
		"options of a model": {object{"size": "ratio", "input": object{"a": int64(1)},
			"models": []any{object{"id": "m", "size": "pixels", "fields": object{"width": "w", "height": "h"}, "input": object{"b": int64(2)}},
				object{"id": "other", "size": "none"}}}, image(), `{"a":1,"b":2,"h":2048,"prompt":"p","w":2048}`},
	} {
		_, got, failure := write(t, tt.options, tt.task)
		if failure != nil || got != tt.want {
			t.Errorf("%s: %s, %v\nwant %s", name, got, failure, tt.want)
		}
	}
}

func TestModelOfReferences(t *testing.T) {
	t.Parallel()
	task := image()
	task.References = []jobcall.Reference{at("image/png", "a")}
	options := object{"references": "all/edit", "models": []any{
		object{"id": "m", "references": "edit"},
		object{"id": "edit", "size": "none", "fields": object{"image": "picture"}},
	}}
	if model, body, failure := write(t, options, task); model != "edit" || body != `{"picture":"a","prompt":"p"}` {
		t.Errorf("%s: %s, %v", model, body, failure)
	}
	if model, _, _ := write(t, options, image()); model != "m" {
		t.Errorf("without a reference: %s", model)
	}
	task.Model = "n"
	if model, _, _ := write(t, options, task); model != "all/edit" {
		t.Errorf("of another model: %s", model)
	}
}

func TestUnsuitableTasks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options object
		change  func(*jobcall.Task)
		want    string
	}{
		"several images": {object{"fields": object{"count": ""}}, func(task *jobcall.Task) { task.Count = 2 }, "one image per call"},
		"pixels":         {object{"size": "ratio"}, func(task *jobcall.Task) { task.Exact, task.Ratio = true, "" }, "takes a ratio"},
		"no references": {object{"fields": object{"image": "", "images": ""}},
			func(task *jobcall.Task) { task.References = []jobcall.Reference{at("image/png", "a")} }, "does not take 1 images"},
		"one reference": {object{"fields": object{"images": ""}}, func(task *jobcall.Task) {
			task.References = []jobcall.Reference{at("image/png", "a"), at("image/png", "b")}
		}, "does not take 2 images"},
		"no videos": {nil, func(task *jobcall.Task) { task.References = []jobcall.Reference{at("video/mp4", "a")} },
			"does not take 1 videos"},
		"no mask": {object{"fields": object{"mask": ""}},
			func(task *jobcall.Task) { task.Mask = &jobcall.Reference{URL: "m"} }, "a mask"},
		"twice": {object{"fields": object{"mask": "image"}},
			func(task *jobcall.Task) {
				r := at("image/png", "a")
				task.References, task.Mask = []jobcall.Reference{r}, &r
			}, `"image" twice`},
		"twice, other kinds": {object{"size": "pixels", "fields": object{"width": "side", "height": "side"}},
			func(*jobcall.Task) {}, `"side" twice`},
		"twice, a reference": {object{"fields": object{"image": "prompt"}},
			func(task *jobcall.Task) { task.References = []jobcall.Reference{at("image/png", "a")} }, `"prompt" twice`},
		"a larger tier without a size": {object{"size": "none"}, func(task *jobcall.Task) { task.HasSmallerTier = true }, "cannot request"},
		"a larger tier without resolution": {object{"size": "ratio", "fields": object{"resolution": ""}},
			func(task *jobcall.Task) { task.HasSmallerTier = true }, "cannot request"},
		"a larger tier without pixels": {object{"size": "pixels", "fields": object{"width": "", "height": ""}},
			func(task *jobcall.Task) { task.HasSmallerTier = true }, "cannot request"},
		"a frame without a member": {nil, func(task *jobcall.Task) {
			task.References = []jobcall.Reference{at("image/png", "a")}
			task.References[0].Role = "last_frame"
		}, "last frame"},
		"an omitted seed": {object{"fields": object{"seed": ""}},
			func(task *jobcall.Task) { task.Params = json.RawMessage(`{"seed":1}`) }, "seed"},
		"count in params":     {nil, func(task *jobcall.Task) { task.Params = json.RawMessage(`{"n":4}`) }, `"n" is the line's own`},
		"size in params":      {nil, func(task *jobcall.Task) { task.Params = json.RawMessage(`{"image_size":"huge"}`) }, "image_size"},
		"params are an array": {nil, func(task *jobcall.Task) { task.Params = json.RawMessage(`[1]`) }, "no object"},
	} {
		for _, task := range []jobcall.Task{image(), video()} {
			task.Seconds = 0
			options := object{"size": "image_size"}
			for name, value := range tt.options {
				options[name] = value
			}
			tt.change(&task)
			_, body, failure := write(t, options, task)
			if failure == nil || !strings.Contains(failure.Error(), tt.want) {
				t.Errorf("%s: got %s and failure %v, want %q", name, body, failure, tt.want)
				continue
			}
			job := fault.UpstreamError
			if task.Kind == upstream.KindVideo {
				job = fault.InvalidRequest
			}
			if failure.Job != job || failure.Next != upstream.NextLine || failure.Health != upstream.HealthNone || failure.Lost {
				t.Errorf("%s: %+v", name, failure)
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for want, options := range map[string]object{
		`sise: unknown option`:             {"sise": "ratio"},
		"size: must be ratio":              {"size": "round"},
		"duration: must be number":         {"duration": int64(5)},
		`unknown "promt"`:                  {"fields": object{"promt": "x"}},
		"prompt must be":                   {"fields": object{"prompt": int64(1)}},
		"fields: must be an object":        {"fields": "x"},
		`unknown "size"`:                   {"values": object{"size": object{}}},
		"values: ratio: must be an object": {"values": object{"ratio": "x"}},
		"input: must be an object":         {"input": []any{}},
		"must be a name":                   {"input": object{"": int64(1)}},
		"references: must be":              {"references": ""},
		"models: must be a list":           {"models": object{}},
		"[0] must have the id":             {"models": []any{"x"}},
		`"m" is listed twice`:              {"models": []any{object{"id": "m"}, object{"id": "m"}}},
		`models: "m": size`:                {"models": []any{object{"id": "m", "size": "x"}}},
		"not allowed inside models":        {"models": []any{object{"id": "m", "models": []any{}}}},
		"only allowed inside models":       {"id": "m"},
	} {
		if _, err := input.Read(options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", options, err, want)
		}
	}
	if _, err := input.Read(nil); err != nil {
		t.Error(err)
	}
}

// TestStylesShareNothing checks that the style of one task changes neither the options nor the
// defaults of the provider.
func TestStylesShareNothing(t *testing.T) {
	t.Parallel()
	o, err := input.Read(object{"fields": object{"prompt": "a"}, "values": object{"ratio": object{"1:1": "square"}},
		"models": []any{object{"id": "m", "fields": object{"prompt": "b"}, "values": object{"ratio": object{"1:1": "equal"}}, "size": "ratio"}}})
	if err != nil {
		t.Fatal(err)
	}
	words, task := defaultWords(), image()
	write := func(model string) string {
		task.Model = model
		body, err := inputOf(t, o.Style(task, words), task, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	before := write("other")
	if got := write("m"); got != `{"aspect_ratio":"equal","b":"p","resolution":"2K"}` {
		t.Error(got)
	}
	if got := write("other"); got != before || words.Fields[input.Prompt] != "prompt" {
		t.Errorf("%s became %s", before, got)
	}
}

// bytesOf returns a reference with a Size of size. It has n bytes and then returns the error end.
func bytesOf(n, size int64, end error) jobcall.Reference {
	return jobcall.Reference{Type: "image/png", Size: size, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", int(n))), errorReader{end})), nil
	}}
}

// errorReader is a reader that returns only an error.
type errorReader struct{ err error }

// Read implements io.Reader.
func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func TestInlineLink(t *testing.T) {
	t.Parallel()
	if got, err := input.Link(t.Context(), bytesOf(4, 4, io.EOF)); err != nil || got != "data:image/png;base64,eHh4eA==" {
		t.Errorf("%s, %v", got, err)
	}
	for name, r := range map[string]jobcall.Reference{
		"short": bytesOf(3, 4, io.EOF), "long": bytesOf(5, 4, io.EOF), "broken": bytesOf(4, 5, io.ErrUnexpectedEOF),
		"missing": {Open: func(context.Context) (io.ReadCloser, error) { return nil, errors.New("missing") }},
	} {
		_, err := input.Link(t.Context(), r)
		var failure *upstream.JobFailure
		if !errors.As(err, &failure) || failure.Health != upstream.HealthNone || failure.Next != upstream.NextLater || failure.Lost {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParams tests that the client's further fields never change the fields written by the line.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{`{}`, `{"seed":1}`, `{"n":4}`, `{"N":4}`, `{"image_size":{}}`, `{"prompt":"x"}`, `{"n ":[1]}`, `null`, `[`,
		`{"a":1e999}`} {
		f.Add([]byte(seed))
	}
	o, err := input.Read(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		task := image()
		task.Params = params
		body, err := inputOf(t, o.Style(task, defaultWords()), task, nil)
		if err != nil {
			return
		}
		var got struct {
			Prompt string         `json:"prompt"`
			Size   map[string]int `json:"image_size"`
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(body, &all); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if _, ok := all["n"]; ok {
			t.Errorf("%s", body)
		}
		if json.Unmarshal(all["prompt"], &got.Prompt) != nil || json.Unmarshal(all["image_size"], &got.Size) != nil || got.Prompt != "p" ||
			got.Size["width"] != 2048 {
			t.Errorf("%s", body)
		}
	})
}
