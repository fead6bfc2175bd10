package recraft_test

import (
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/recraft"
)

// TestMask tests that the area to change is white and the picture keeps its size.
func TestMask(t *testing.T) {
	t.Parallel()
	s := conformance.SubmitTask(t, recraft.Provider, fakestudio.NewRecraft(t), image(task.Model("recraftv3"), task.Refs("a"),
		task.Mask(task.PaintedMask()), task.Count(2), task.Params(`{"negative_prompt":"fog"}`)))
	if s == nil {
		t.Fatal("unsuitable")
	}
	form := conformance.Form(t, s)
	if got := conformance.Pixels(t, []byte(form["mask"])); got != ".#" || s.Path != "/v1/images/inpaint" || form["image"] != "abc" ||
		form["n"] != "2" || form["negative_prompt"] != "fog" {
		t.Errorf("%s, mask %s, %v", s.Path, got, form)
	}
}

// TestBodies tests the body of a submission, by model and task. A case with an empty want must be
// unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	one, two := task.Reference("image/png", "https://media.example/1.png", "abc"), task.Reference("image/webp", "", "def")
	film, large := task.Reference("video/mp4", "https://media.example/v.mp4", "abc"), one
	large.Size = 11 << 20
	const rest = `"prompt":"a lighthouse","response_format":"url"`
	path := func(job jobcall.Task) string {
		if len(job.References) > 0 {
			return "/v1/images/imageToImage"
		}
		return "/v1/images/generations"
	}
	conformance.CheckBodies(t, recraft.Provider, path, []conformance.Body{
		{"a ratio", image(task.Count(3), task.Params(`{"seed":7,"style_id":"s"}`)),
			`{"model":"recraftv4_1","n":3,"prompt":"a lighthouse","random_seed":7,"response_format":"url","size":"16:9","style_id":"s"}`},
		{"a ratio with another spelling", image(task.Shape("7:5", 1212, 866)), `{"model":"recraftv4_1","n":1,` + rest + `,"size":"14:10"}`},
		{"no ratio", image(task.NoRatio()), `{"model":"recraftv4_1","n":1,` + rest + `}`},
		{"supported pixels", image(task.Pixels(768, 1536)), `{"model":"recraftv4_1","n":1,` + rest + `,"size":"768x1536"}`},
		{"other pixels", image(task.Pixels(1000, 600)), ``},
		{"another ratio", image(task.Shape("21:9", 1568, 672)), ``},
		{"a larger tier", image(task.LargerTier("2K")), ``},
		{"a larger tier of pro", image(task.Model("recraftv4_1_pro"), task.LargerTier("2K")),
			`{"model":"recraftv4_1_pro","n":1,` + rest + `,"size":"16:9"}`},
		{"the same without a ratio", image(task.Model("recraftv4_1_pro"), task.LargerTier("2K"), task.NoRatio()),
			`{"model":"recraftv4_1_pro","n":1,` + rest + `,"size":"2048x2048"}`},
		{"too large for pro", image(task.Model("recraftv4_1_pro"), task.LargerTier("4K")), ``},
		{"pixels of pro", image(task.Model("recraftv4_pro"), task.Pixels(2688, 1536)),
			`{"model":"recraftv4_pro","n":1,` + rest + `,"size":"2688x1536"}`},
		{"old", image(task.Model("recraftv3"), task.Params(`{"negative_prompt":"fog","style":"digital_illustration"}`)),
			`{"model":"recraftv3","n":1,"negative_prompt":"fog",` + rest + `,"size":"16:9","style":"digital_illustration"}`},
		{"old pixels", image(task.Model("recraftv3"), task.Pixels(1024, 1820)), `{"model":"recraftv3","n":1,` + rest + `,"size":"1024x1820"}`},
		{"a negative prompt", image(task.Params(`{"negative_prompt":"fog"}`)), ``},
		{"a style of flash", image(task.Model("recraftv4_1_flash"), task.Params(`{"style_id":"s"}`)), ``},
		{"strength without a picture", image(task.Params(`{"strength":0.2}`)), ``},
		{"a drawing", image(task.Model("recraftv4_1_vector")), ``},
		{"another model", image(task.Model("flux")), ``},
		{"seven pictures", image(task.Count(7)), ``},
		{"a mask for the newest model", image(task.References(one), task.Mask(task.PaintedMask())), ``},
		{"a picture instead of a mask", image(task.Model("recraftv3"), task.References(one), task.Mask(one)), ``},
		{"a mask and a seed", image(task.Model("recraftv3"), task.References(one), task.Mask(task.PaintedMask()), task.Params(`{"seed":7}`)), ``},
		{"a mask and a larger tier", image(task.Model("recraftv3"), task.References(one), task.Mask(task.PaintedMask()),
			task.LargerTier("2K")), ``},
		{"from a picture", image(task.References(one)),
			`{"image_url":"https://media.example/1.png","model":"recraftv4_1","n":1,` + rest + `,"strength":0.5}`},
		{"from a picture, inline", image(task.References(two), task.Params(`{"strength":0.25}`)),
			`{"image_url":"data:image/webp;base64,ZGVm","model":"recraftv4_1","n":1,` + rest + `,"strength":0.25}`},
		{"from a picture with a ratio", image(task.References(one), task.Shape("1:1", 1024, 1024)), ``},
		{"from two", image(task.References(one, two)), ``},
		{"from a video", image(task.References(film)), ``},
		{"from a large picture", image(task.References(large)), ``},
	})
}

// TestOutcomes tests the failure for each response to a submission.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindImage)
	body := func(message string) string { return `{"code":"invalid_request_parameter","message":"` + message + `"}` }
	conformance.CheckReplies(t, recraft.Provider, image(), []conformance.Reply{
		{400, body("size is not valid"), v.Refused, "size is not valid"},
		{400, body("Not enough credits to generate"), v.Account, ""},
		{400, body("You have insufficient API units"), v.Account, ""},
		{400, body("The prompt did not pass moderation"), v.Flagged, "did not pass moderation"},
		{400, body("NSFW content detected"), v.Flagged, "NSFW"},
		{400, body("failed to decode image"), v.Material, "decode image"},
		{401, `{"code":"unauthorized","message":"Missing token"}`, v.Account, ""},
		{402, `{"code":"payment_required","message":"Top up"}`, v.Account, ""},
		{403, `{"code":"forbidden","message":"Access denied"}`, v.Account, ""},
		{404, `{"code":"not_found","message":"no such model"}`, v.Model, ""},
		{413, `{"code":"too_large","message":"Payload of more than 16 MB"}`, v.Refused, "16 MB"},
		{429, `{"code":"rate_limit_exceeded","message":"100 images a minute"}`, v.Busy, ""},
		{500, `{"code":"internal","message":"oops"}`, v.Broken, ""},
		{503, ``, v.Broken, ""},
		{200, `{"created":1,"data":[]}`, v.Empty, ""},
		{200, `{"created":1,"data":[{"image_id":"1"}]}`, v.Empty, ""},
	})
	for _, words := range []string{"Not enough credits to generate", "You have insufficient API units"} {
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, recraft.Provider, 400, body(words)), image())
		if !upstream.AsJobFailure(err).Unproven {
			t.Errorf("%s: a failure recognized only by its message is not Unproven", words)
		}
	}
	more := `{"data":[{"url":"https://x.example/1"},{"url":"https://x.example/2"}]}`
	status, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, recraft.Provider, 200, more), image())
	if err != nil || len(status.Results) != 1 {
		t.Errorf("more pictures than requested: %+v, %v", status, err)
	}
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, recraft.Provider, "t-1", []jobcall.Task{image()},
		`{"data":[{"url":"https://x.example/1"},{"url":7}]}`, `{"code":"x","message":"not enough credits"}`)
}
