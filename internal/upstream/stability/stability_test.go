package stability_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/stability"
)

// fields returns the fields of a submission. The field with an empty name is the service.
func fields(t *testing.T, s *fakestudio.Submission) map[string]string {
	t.Helper()
	form := conformance.Form(t, s)
	form[""] = s.Path[strings.LastIndexByte(s.Path, '/')+1:]
	return form
}

// TestForms tests the form for each model. A case without a form must be unsuitable.
func TestForms(t *testing.T) {
	t.Parallel()
	picture, film := task.Reference("image/png", "https://media.example/1.png", "abc"), task.Reference("video/mp4", "", "abc")
	large := picture
	large.Size = 11 << 20
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want map[string]string
	}{
		{"ultra", image(task.Params(`{"seed":7,"negative_prompt":"fog","output_format":"webp","style_preset":"anime"}`)), map[string]string{
			"": "ultra", "prompt": "a lighthouse", "aspect_ratio": "16:9", "seed": "7", "negative_prompt": "fog", "output_format": "webp",
			"style_preset": "anime"}},
		{"core, by its long name", image(task.Model("stable-image-core"), task.Ratio("")),
			map[string]string{"": "core", "prompt": "a lighthouse"}},
		{"sd3", image(task.Model("sd3.5-flash"), task.Params(`{"cfg_scale":4.5}`)), map[string]string{"": "sd3", "prompt": "a lighthouse",
			"model": "sd3.5-flash", "aspect_ratio": "16:9", "cfg_scale": "4.5"}},
		{"ultra from a picture", image(task.References(picture), task.Ratio("1:1")), map[string]string{"": "ultra", "prompt": "a lighthouse",
			"aspect_ratio": "1:1", "strength": "0.7", "image": "abc"}},
		{"sd3 from a picture", image(task.Model("sd3.5-large"), task.References(picture), task.Params(`{"strength":0.25}`)), map[string]string{
			"": "sd3", "prompt": "a lighthouse", "model": "sd3.5-large", "mode": "image-to-image", "strength": "0.25", "image": "abc"}},
		{"sd3 from a picture with a ratio", image(task.Model("sd3.5-large"), task.References(picture), task.Ratio("1:1")), nil},
		{"core from a picture", image(task.Model("core"), task.References(picture)), nil},
		{"two pictures", image(task.References(picture, picture)), nil},
		{"a video", image(task.References(film)), nil},
		{"a large picture", image(task.References(large)), nil},
		{"a mask of ultra", image(task.References(picture), task.Mask(task.PaintedMask())), nil},
		{"an invalid mask", image(task.Model("inpaint"), task.References(picture), task.Mask(picture)), nil},
		{"no mask", image(task.Model("inpaint"), task.References(picture)), nil},
		{"a mask and a ratio", image(task.Model("inpaint"), task.References(picture), task.Mask(task.PaintedMask()), task.Ratio("1:1")), nil},
		{"a mask and strength", image(task.Model("inpaint"), task.References(picture), task.Mask(task.PaintedMask()),
			task.Params(`{"strength":0.5}`)), nil},
		{"a larger tier", image(task.LargerTier("2K")), nil},
		{"one tier, and larger", image(task.Tier("2K")), nil},
		{"pixels", image(task.Pixels(1000, 600)), nil},
		{"a ratio", image(task.Ratio("4:3")), nil},
		{"strength without a picture", image(task.Params(`{"strength":0.5}`)), nil},
		{"another's field", image(task.Params(`{"cfg_scale":4}`)), nil},
		{"another model", image(task.Model("stable-video")), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got map[string]string
			if s := conformance.SubmitTask(t, stability.Provider, fakestudio.NewStability(t), tt.w); s != nil {
				got = fields(t, s)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestOmitted tests that the form omits a field that the line omits, even a field set by the
// adapter.
func TestOmitted(t *testing.T) {
	t.Parallel()
	studio, transport := fakestudio.NewStability(t), conformance.Transport(t)
	a, err := stability.New(upstream.Target{Line: "main", Provider: stability.Provider, BaseURL: studio.URL(), Key: conformance.Secret,
		Omit: []string{"aspect_ratio"}}, transport)
	if err != nil {
		t.Fatal(err)
	}
	_, err = jobcall.Submit(t.Context(), a, image())
	if sent := studio.Submissions(); err != nil || len(sent) != 1 || len(fields(t, &sent[0])) != 2 {
		t.Errorf("%v, %+v", err, sent)
	}
}

// TestMask tests that the area to change is white and the picture keeps its size.
func TestMask(t *testing.T) {
	t.Parallel()
	s := conformance.SubmitTask(t, stability.Provider, fakestudio.NewStability(t), image(task.Model("inpaint"), task.Refs("a"),
		task.Mask(task.PaintedMask()), task.Params(`{"seed":7,"grow_mask":3}`)))
	if s == nil {
		t.Fatal("unsuitable")
	}
	form := conformance.Form(t, s)
	got := conformance.Pixels(t, []byte(form["mask"]))
	if got != ".#" || s.Path != "/v2beta/stable-image/edit/inpaint" || form["image"] != "abc" ||
		form["seed"] != "7" || form["grow_mask"] != "3" || form["strength"] != "" {
		t.Errorf("%s, mask %s, %v", s.Path, got, form)
	}
}

// TestManyPictures tests n pictures as n calls with different seeds, without a picture blurred by
// the review.
func TestManyPictures(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewStability(t)
	studio.Expect(fakestudio.Failure("CONTENT_FILTERED"))
	status, err := jobcall.Submit(t.Context(), conformance.Line(t, stability.Provider, studio.URL(), nil),
		image(task.Params(`{"seed":4294967293}`), task.Count(3)))
	if err != nil || len(status.Results) != 2 || status.Results[0].Type != "image/png" {
		t.Fatalf("%+v, %v", status, err)
	}
	var seeds []string
	for _, s := range studio.Submissions() {
		seeds = append(seeds, fields(t, &s)["seed"])
	}
	if slices.Sort(seeds); strings.Join(seeds, " ") != "0 4294967293 4294967294" {
		t.Errorf("seeds %v", seeds)
	}
}

// TestOutcomes tests the failure for each response to a submission.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindImage)
	body := func(name, message string) string {
		return `{"id":"1","name":"` + name + `","errors":["` + message + `"]}`
	}
	conformance.CheckReplies(t, stability.Provider, image(), []conformance.Reply{
		{400, body("bad_request", "seed: must be a number"), v.Refused, "seed: must be a number"},
		{401, body("unauthorized", "bad key"), v.Account, ""},
		{402, body("payment_required", "You lack sufficient credits"), v.Account, ""},
		{403, body("content_moderation", "Your request was flagged"), v.Flagged, "Your request was flagged"},
		{403, body("content_moderation", "Denied."), v.Flagged, "Denied"}, // the error is only recognized by its name
		{403, body("permission_denied", "You lack permission"), v.Account, ""},
		{404, body("not_found", "no such engine"), v.Model, ""},
		{413, body("payload_too_large", "The request is larger than 10MiB"), v.Refused, "10MiB"},
		{422, body("invalid_language", "English is the only supported language"), v.Refused, "English is the only"},
		{429, body("rate_limit_exceeded", "150 requests in 10 seconds"), v.Busy, ""},
		{500, body("internal_error", "oops"), v.Broken, ""},
		{500, ``, v.Broken, ""},
		{200, `{"image":"aGk=","finish_reason":"CONTENT_FILTERED","seed":1}`, v.FlaggedOutput, "withheld"},
		{200, `{"finish_reason":"ERROR","seed":1}`, v.Empty, ""},
		{200, `{"image":"?","finish_reason":"SUCCESS","seed":1}`, v.Empty, ""},
	})
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, stability.Provider, "t-1", []jobcall.Task{image()},
		`{"image":"aGk=","finish_reason":"SUCCESS","seed":1}`, `{"id":"1","name":"content_moderation","errors":["no"]}`)
}
