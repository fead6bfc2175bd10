package ideogram_test

import (
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/ideogram"
	"tollgate/internal/upstream/jobcall"
)

// TestBodies tests the body for each model. A case with an empty body must be unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	one, two := task.Reference("image/png", "https://media.example/1.png", "abc"), task.Reference("image/webp", "", "def")
	film, gif := task.Reference("video/mp4", "", "abc"), task.Reference("image/gif", "", "abc")
	conformance.CheckBodies(t, ideogram.Provider, func(job jobcall.Task) string { return pathOf(job.Model) }, []conformance.Body{
		{"a ratio", image(task.Count(3), task.Params(`{"seed":7,"magic_prompt":"off","quality":"low"}`)), `{"async":true,"magic_prompt":"off",` +
			`"num_images":3,"prompt":"a lighthouse","quality":"low","seed":7,"size":"1280x720"}`},
		{"upright", image(task.LargerTier("2K"), task.Shape("3:4", 1792, 2389)),
			`{"async":true,"num_images":1,"prompt":"a lighthouse","size":"1728x2304"}`},
		{"no ratio", image(task.NoRatio()), `{"async":true,"num_images":1,"prompt":"a lighthouse","size":"1024x1024"}`},
		{"a paid tier without a ratio", image(task.LargerTier("2K"), task.NoRatio()),
			`{"async":true,"num_images":1,"prompt":"a lighthouse","size":"2048x2048"}`},
		{"supported pixels", image(task.LargerTier("2K"), task.Pixels(2560, 1440)),
			`{"async":true,"num_images":1,"prompt":"a lighthouse","size":"2560x1440"}`},
		{"other pixels", image(task.Pixels(1000, 600)), ``},
		{"another ratio", image(task.Shape("21:9", 1568, 672)), ``},
		{"another tier", image(task.LargerTier("4K")), ``},
		{"nine pictures", image(task.Count(9)), ``},
		{"a negative prompt", image(task.Params(`{"negative_prompt":"fog"}`)), ``},
		{"an invalid mask", image(task.References(one), task.Mask(one)), ``},
		{"a mask and five pictures", image(task.References(one, one, one, one, one), task.Mask(task.PaintedMask())), ``},
		{"a mask and a ratio", image(task.References(one), task.Mask(task.PaintedMask()), task.Ratio("16:9")), ``},
		{"a mask and a paid tier", image(task.References(one), task.Mask(task.PaintedMask()), task.LargerTier("2K")), ``},
		{"a mask for 4", image(task.Model("ideogram-4"), task.References(one), task.Mask(task.PaintedMask())), ``},
		{"precise edit", image(task.Model("precise-edit/ideogram-4-5"), task.References(one, two, one), task.Params(`{"seed":7,"quality":"low"}`),
			task.Count(2)), `{"async":"true","image":"abc","num_images":"2","prompt":"a lighthouse","quality":"low",` +
			`"reference_images":"defabc","seed":"7"}`},
		{"precise edit without a picture", image(task.Model("precise-edit/ideogram-4-5"), task.NoRatio()), ``},
		{"precise edit in pixels", image(task.Model("precise-edit/ideogram-4-5"), task.References(one), task.Pixels(1024, 1024)), ``},
		{"precise edit with an unknown field",
			image(task.Model("precise-edit/ideogram-4-5"), task.References(one), task.Params(`{"size":"1K"}`)), ``},
		{"from pictures", image(task.References(one, two), task.Params(`{"seed":7}`)),
			`{"async":"true","images":"abcdef","num_images":"1","prompt":"a lighthouse","seed":"7"}`},
		{"from a picture with a ratio", image(task.References(one), task.Shape("16:9", 1365, 768)),
			`{"async":"true","images":"abc","num_images":"1","prompt":"a lighthouse","size":"1344x768"}`},
		{"from a picture at a paid tier", image(task.References(one), task.LargerTier("2K")),
			`{"async":"true","images":"abc","num_images":"1","prompt":"a lighthouse","size":"2048x2048"}`},
		{"from a picture, too large", image(task.References(one), task.LargerTier("4K")), ``},
		{"from a picture, pixels", image(task.References(one), task.Pixels(1000, 600)), ``},
		{"from six pictures", image(task.References(one, one, one, one, one, one)), ``},
		{"from a video", image(task.References(film)), ``},
		{"from a GIF", image(task.References(gif)), ``},
		{"4", image(task.Model("ideogram-4"), task.Params(`{"rendering_speed":"TURBO"}`)), `{"async":true,"prompt":"a lighthouse",` +
			`"rendering_speed":"TURBO","size":"1280x720"}`},
		{"4, from a picture", image(task.Model("ideogram-4"), task.References(one)), ``},
		{"4, a seed", image(task.Model("ideogram-4"), task.Params(`{"seed":7}`)), ``},
		{"3", image(task.Model("ideogram-3"), task.Params(`{"negative_prompt":"fog"}`)), `{"aspect_ratio":"16x9","async":true,` +
			`"negative_prompt":"fog","num_images":1,"prompt":"a lighthouse"}`},
		{"3, larger", image(task.Model("ideogram-3"), task.LargerTier("2K")), ``},
		{"3, pixels", image(task.Model("ideogram-3"), task.Pixels(1000, 600)), ``},
		{"3, another ratio", image(task.Model("ideogram-3"), task.Shape("21:9", 1568, 672)), ``},
		{"an unknown model", image(task.Model("ideogram-5")), ``},
	})
}

func pathOf(model string) string {
	if strings.Contains(model, "/") {
		return "/v2/image/" + model
	}
	return "/v2/image/generate/" + model
}

// TestOmitted tests that the body lacks a field in the line's Omit, even if the adapter sets the
// field.
func TestOmitted(t *testing.T) {
	t.Parallel()
	studio, transport := fakestudio.NewIdeogram(t), conformance.Transport(t)
	a, err := ideogram.New(upstream.Target{Line: "main", Provider: ideogram.Provider, BaseURL: studio.URL(), Key: conformance.Secret,
		Omit: []string{"num_images"}}, transport)
	if err != nil {
		t.Fatal(err)
	}
	_, err = jobcall.Submit(t.Context(), a, image(task.Refs("a")))
	sent := studio.Submissions()
	if err != nil || len(sent) != 1 {
		t.Fatalf("error %v, submissions %+v; want one submission", err, sent)
	}
	if n, exists := conformance.Form(t, &sent[0])["num_images"]; exists {
		t.Errorf("num_images was sent: %s", n)
	}
}

// TestMask tests the mask of both kinds of edit: the area to change must be black.
func TestMask(t *testing.T) {
	t.Parallel()
	for model, field := range map[string]string{"ideogram-4-5": "images", "precise-edit/ideogram-4-6": "image"} {
		s := conformance.SubmitTask(t, ideogram.Provider, fakestudio.NewIdeogram(t),
			image(task.Model(model), task.Refs("a"), task.Mask(task.PaintedMask())))
		if s == nil {
			t.Errorf("%s: a task with a mask is unsuitable", model)
			continue
		}
		form := conformance.Form(t, s)
		got := conformance.Pixels(t, []byte(form["mask"]))
		if s.Path != pathOf(model) || got != "#." || form[field] != "abc" || form["size"] != "" {
			t.Errorf("%s: %s, mask %s, %q", s.Path, model, got, form[field])
		}
	}
}

// TestOneCallPerPicture checks that a model without a count gets a submission for each picture.
func TestOneCallPerPicture(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewIdeogram(t)
	job := image(task.Model("ideogram-4"), task.Count(3))
	status, err := conformance.SubmitAndPoll(t, conformance.Line(t, ideogram.Provider, studio.URL(), nil), job)
	if err != nil || len(status.Results) != 3 || len(studio.Submissions()) != 3 {
		t.Errorf("got %+v, %v after %d calls, want 3 results of 3 calls", status, err, len(studio.Submissions()))
	}
}

// TestSubmissionOutcomes tests the failure for each response to a submission.
func TestSubmissionOutcomes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindImage)
	for _, tt := range []struct {
		status  int
		body    string
		want    conformance.Outcome
		proven  bool   // false if a probe must confirm the failure
		message string // a part of the message for the client
	}{
		{400, `{"error":"size is none of the model's"}`, v.Refused, true, "size is none"},
		{401, `{"error":"Invalid API key"}`, v.Account, false, ""},
		{402, `{"error":"Out of credits","reject_reason":"insufficient_funds"}`, v.Account, true, ""},
		{402, `{"error":"Daily limit","reject_reason":"daily_limit"}`, v.Account, true, ""},
		{402, `{"error":"Subscribe","reject_reason":"subscription_required"}`, v.Account, false, ""},
		{402, `{"error":"Priority","reject_reason":"priority_credit_required"}`, v.Account, false, ""},
		{402, `{"error":"Not in your plan","reject_reason":"feature_limit"}`, v.Account, false, ""},
		{402, `{"error":"Too many","reject_reason":"inflight_limit"}`, v.Busy, true, ""},
		{429, `{"error":"Too many","reject_reason":"inflight_limit"}`, v.Busy, true, ""},
		{403, `{"error":"Forbidden"}`, v.Account, false, ""},
		{404, `{"error":"no such model"}`, v.Model, false, ""},
		{413, `{"error":"Images are too large"}`, v.Material, true, "too large"},
		{422, `{"error":"Prompt failed the safety check"}`, v.Flagged, true, "safety check"},
		{422, `{"detail":[{"loc":["body","size"],"msg":"bad size","type":"value_error"}]}`, v.Refused, true, "bad size"},
		{429, ``, v.Busy, true, ""},
		{500, `{"error":"oops"}`, v.Broken, true, ""},
		{503, `{"error":"oops"}`, v.Broken, true, ""},
	} {
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, ideogram.Provider, tt.status, tt.body), image())
		f := upstream.AsJobFailure(err)
		if got := conformance.OutcomeOf(t, err); got != tt.want || f.Unproven == tt.proven || !strings.Contains(f.UserMessage(), tt.message) {
			t.Errorf("%d %s: %+v, want %+v; unproven %t, message %q", tt.status, tt.body, got, tt.want, f.Unproven, f.UserMessage())
		}
	}
}

// TestTaskOutcomes tests the outcome for each response about an ended task.
func TestTaskOutcomes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindImage)
	for reason, want := range map[string]conformance.Outcome{
		`{"status":"failed","failure_reason":"worker lost"}`:                                        v.Failed,
		`{"status":"failed"}`:                                                                       v.Failed,
		`{"status":"failed","failure_reason":"The result is unsafe"}`:                               v.Flagged,
		`{"status":"failed","failure_reason":"copyright detected"}`:                                 v.Flagged,
		`{"status":"completed","data":[]}`:                                                          v.Empty,
		`{"status":"completed","data":[{"url":"","is_image_safe":false}]}`:                          v.FlaggedOutput,
		`{"status":"completed","data":[{"url":"https://x.example/blurred","is_image_safe":false}]}`: v.FlaggedOutput,
	} {
		how := fakestudio.Failure(reason)
		if got := conformance.OutcomeAfter(t, ideogram.Provider, fakestudio.NewIdeogram(t), how, image()); got != want {
			t.Errorf("%s: %+v, want %+v", reason, got, want)
		}
	}
	flaggedAndMore := `{"status":"completed","data":[{"url":"","is_image_safe":false},` +
		`{"url":"https://x.example/1"},{"url":"https://x.example/2"}]}`
	a := conformance.LineWithReply(t, ideogram.Provider, 200, flaggedAndMore)
	if status, err := a.Poll(t.Context(), image(), "gen_1"); err != nil || len(status.Results) != 1 {
		t.Errorf("got %+v, %v; want only the requested number of unflagged pictures", status, err)
	}
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, ideogram.Provider, "gen_1", []jobcall.Task{image()},
		`{"generation_id":"gen_1"}`, `{"status":"completed","data":[{"url":"https://x.example/1"},{"url":7}]}`,
		`{"error":"no","reject_reason":"inflight_limit"}`, `{"status":"failed","failure_reason":"unsafe"}`)
}
