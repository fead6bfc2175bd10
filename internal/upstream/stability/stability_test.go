package stability_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/stability"
)

// fields reads a submission's form; a file counts as its bytes.
func fields(t *testing.T, s fakestudio.Submission) map[string]string {
	t.Helper()
	_, head, err := mime.ParseMediaType(s.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form := map[string]string{"": s.Path[strings.LastIndexByte(s.Path, '/')+1:]}
	reader := multipart.NewReader(bytes.NewReader(s.Body), head["boundary"])
	for part, err := reader.NextPart(); err == nil; part, err = reader.NextPart() {
		data, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		form[part.FormName()] = string(data)
	}
	return form
}

// TestForms: what each model is asked, its service as the nameless field; nil:
// the line is unsuitable.
func TestForms(t *testing.T) {
	t.Parallel()
	picture, film := conformance.Reference("image/png", "https://media.example/1.png", "abc"), conformance.Reference("video/mp4", "", "abc")
	ratio := func(name string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Ratio = name } }
	tier := func(name string, larger bool) func(*jobcall.Task) {
		return func(w *jobcall.Task) { w.Tier, w.Larger = name, larger }
	}
	exact := func(w *jobcall.Task) { w.Ratio, w.Width, w.Height, w.Exact = "", 1000, 600, true }
	large := picture
	large.Size = 11 << 20
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want map[string]string
	}{
		{"ultra", image(params(`{"seed":7,"negative_prompt":"fog","output_format":"webp","style_preset":"anime"}`)), map[string]string{
			"": "ultra", "prompt": "a lighthouse", "aspect_ratio": "16:9", "seed": "7", "negative_prompt": "fog", "output_format": "webp",
			"style_preset": "anime"}},
		{"core, by its long name", image(model("stable-image-core"), ratio("")), map[string]string{"": "core", "prompt": "a lighthouse"}},
		{"sd3", image(model("sd3.5-flash"), params(`{"cfg_scale":4.5}`)), map[string]string{"": "sd3", "prompt": "a lighthouse",
			"model": "sd3.5-flash", "aspect_ratio": "16:9", "cfg_scale": "4.5"}},
		{"ultra from a picture", image(refs(picture), ratio("1:1")), map[string]string{"": "ultra", "prompt": "a lighthouse",
			"aspect_ratio": "1:1", "strength": "0.7", "image": "abc"}},
		{"sd3 from a picture", image(model("sd3.5-large"), refs(picture), params(`{"strength":0.25}`)), map[string]string{"": "sd3",
			"prompt": "a lighthouse", "model": "sd3.5-large", "mode": "image-to-image", "strength": "0.25", "image": "abc"}},
		{"sd3 from a picture with a ratio", image(model("sd3.5-large"), refs(picture), ratio("1:1")), nil},
		{"core from a picture", image(model("core"), refs(picture)), nil},
		{"two pictures", image(refs(picture, picture)), nil},
		{"a video", image(refs(film)), nil},
		{"a large picture", image(refs(large)), nil},
		{"a mask", image(refs(picture), func(w *jobcall.Task) { w.Mask = &picture }), nil},
		{"a larger tier", image(tier("2K", true)), nil},
		{"one tier, and larger", image(tier("2K", false)), nil},
		{"pixels", image(exact), nil},
		{"a ratio", image(ratio("4:3")), nil},
		{"strength without a picture", image(params(`{"strength":0.5}`)), nil},
		{"another's field", image(params(`{"cfg_scale":4}`)), nil},
		{"another model", image(model("stable-video")), nil},
	} {
		studio := fakestudio.NewStability(t)
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, stability.Provider, studio.URL(), nil), tt.w)
		sent := studio.Submissions()
		if tt.want == nil {
			if v := conformance.VerdictOf(t, err); v != conformance.VerdictsOf(tt.w.Kind).Refused || len(sent) != 0 {
				t.Errorf("%s: %+v (%v), %d submissions", tt.name, v, err, len(sent))
			}
			continue
		}
		if err != nil || len(sent) != 1 {
			t.Errorf("%s: %v, %d submissions", tt.name, err, len(sent))
		} else if got := fields(t, sent[0]); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestManyPictures: n pictures are n calls with seeds of their own. One that the
// review blurred is missing.
func TestManyPictures(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewStability(t)
	studio.Expect(fakestudio.Behaviour{Failed: "CONTENT_FILTERED"})
	made, err := jobcall.Submit(t.Context(), conformance.Line(t, stability.Provider, studio.URL(), nil),
		image(params(`{"seed":4294967293}`), func(w *jobcall.Task) { w.Count = 3 }))
	if err != nil || len(made.Results) != 2 || made.Results[0].Type != "image/png" {
		t.Fatalf("%+v, %v", made, err)
	}
	var seeds []string
	for _, s := range studio.Submissions() {
		seeds = append(seeds, fields(t, s)["seed"])
	}
	if slices.Sort(seeds); strings.Join(seeds, " ") != "0 4294967293 4294967294" {
		t.Errorf("seeds %v", seeds)
	}
}

// TestVerdicts is the table of what a submission is answered with.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	v := conformance.VerdictsOf(upstream.KindImage)
	said := func(name, message string) string {
		return `{"id":"1","name":"` + name + `","errors":["` + message + `"]}`
	}
	noModel := v.Account
	noModel.Health = upstream.HealthModel
	for _, tt := range []struct {
		status int
		body   string
		want   conformance.Verdict
		told   string
	}{
		{400, said("bad_request", "seed: must be a number"), v.Refused, "seed: must be a number"},
		{401, said("unauthorized", "bad key"), v.Account, ""},
		{402, said("payment_required", "You lack sufficient credits"), v.Account, ""},
		{403, said("content_moderation", "Your request was flagged"), v.Flagged, "Your request was flagged"},
		{403, said("content_moderation", "Denied."), v.Flagged, "Denied"}, // by the name alone
		{403, said("permission_denied", "You lack permission"), v.Account, ""},
		{404, said("not_found", "no such engine"), noModel, ""},
		{413, said("payload_too_large", "The request is larger than 10MiB"), v.Refused, "10MiB"},
		{422, said("invalid_language", "English is the only supported language"), v.Refused, "English is the only"},
		{429, said("rate_limit_exceeded", "150 requests in 10 seconds"), v.Busy, ""},
		{500, said("internal_error", "oops"), v.Broken, ""},
		{500, ``, v.Broken, ""},
		{200, `{"image":"aGk=","finish_reason":"CONTENT_FILTERED","seed":1}`, v.FlaggedOutput, "withheld"},
		{200, `{"finish_reason":"ERROR","seed":1}`, v.Empty, ""},
		{200, `{"image":"?","finish_reason":"SUCCESS","seed":1}`, v.Empty, ""},
	} {
		_, err := jobcall.Submit(t.Context(), conformance.Answering(t, stability.Provider, tt.status, tt.body), image())
		f := upstream.AsJobFailure(err)
		if got := conformance.VerdictOf(t, err); got != tt.want || !strings.Contains(f.Told(), tt.told) {
			t.Errorf("%d %s: %+v, want %+v; told %q", tt.status, tt.body, got, tt.want, f.Told())
		}
	}
}

// FuzzAnswers: whatever the provider says, there is a verdict or a result.
func FuzzAnswers(f *testing.F) {
	conformance.Answers(f, stability.Provider, "t-1", []jobcall.Task{image()},
		`{"image":"aGk=","finish_reason":"SUCCESS","seed":1}`, `{"id":"1","name":"content_moderation","errors":["no"]}`)
}
