package ideogram_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/ideogram"
	"tollgate/internal/upstream/jobcall"
)

// body reads a submission: its JSON, or its form as JSON of texts, files as
// their bytes.
func body(t *testing.T, s fakestudio.Submission) string {
	t.Helper()
	kind, head, err := mime.ParseMediaType(s.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if kind == "application/json" {
		return string(s.Body)
	}
	form := map[string]string{}
	reader := multipart.NewReader(bytes.NewReader(s.Body), head["boundary"])
	for part, err := reader.NextPart(); err == nil; part, err = reader.NextPart() {
		data, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		form[part.FormName()] += string(data)
	}
	said, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// TestBodies: what each model is asked; empty: the line is unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	one, two := conformance.Reference("image/png", "https://media.example/1.png", "abc"), conformance.Reference("image/webp", "", "def")
	film, gif := conformance.Reference("video/mp4", "", "abc"), conformance.Reference("image/gif", "", "abc")
	tier := func(name string, larger bool) func(*jobcall.Task) {
		return func(w *jobcall.Task) { w.Tier, w.Larger = name, larger }
	}
	size := func(ratio string, width, height int, exact bool) func(*jobcall.Task) {
		return func(w *jobcall.Task) { w.Ratio, w.Width, w.Height, w.Exact = ratio, width, height, exact }
	}
	count := func(n int) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Count = n } }
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want string
	}{
		{"a ratio", image(count(3), params(`{"seed":7,"magic_prompt":"off","quality":"low"}`)), `{"async":true,"magic_prompt":"off",` +
			`"num_images":3,"prompt":"a lighthouse","quality":"low","seed":7,"size":"1280x720"}`},
		{"upright", image(tier("2K", true), size("3:4", 1792, 2389, false)),
			`{"async":true,"num_images":1,"prompt":"a lighthouse","size":"1728x2304"}`},
		{"no ratio", image(size("", 0, 0, false)), `{"async":true,"num_images":1,"prompt":"a lighthouse","size":"1024x1024"}`},
		{"a paid tier without a ratio", image(tier("2K", true), size("", 0, 0, false)),
			`{"async":true,"num_images":1,"prompt":"a lighthouse","size":"2048x2048"}`},
		{"pixels that it makes", image(tier("2K", true), size("", 2560, 1440, true)),
			`{"async":true,"num_images":1,"prompt":"a lighthouse","size":"2560x1440"}`},
		{"other pixels", image(size("", 1000, 600, true)), ``},
		{"another ratio", image(size("21:9", 1568, 672, false)), ``},
		{"another tier", image(tier("4K", true)), ``},
		{"nine pictures", image(count(9)), ``},
		{"a negative prompt", image(params(`{"negative_prompt":"fog"}`)), ``},
		{"a mask", image(refs(one), func(w *jobcall.Task) { w.Mask = &one }), ``},
		{"from pictures", image(refs(one, two), params(`{"seed":7}`)),
			`{"async":"true","images":"abcdef","num_images":"1","prompt":"a lighthouse","seed":"7"}`},
		{"from a picture with a ratio", image(refs(one), size("16:9", 1365, 768, false)),
			`{"async":"true","images":"abc","num_images":"1","prompt":"a lighthouse","size":"1344x768"}`},
		{"from a picture at a paid tier", image(refs(one), tier("2K", true)),
			`{"async":"true","images":"abc","num_images":"1","prompt":"a lighthouse","size":"2048x2048"}`},
		{"from a picture, too large", image(refs(one), tier("4K", true)), ``},
		{"from a picture, pixels", image(refs(one), size("", 1000, 600, true)), ``},
		{"from six", image(refs(one, one, one, one, one, one)), ``},
		{"from a video", image(refs(film)), ``},
		{"from a GIF", image(refs(gif)), ``},
		{"4", image(model("ideogram-4"), params(`{"rendering_speed":"TURBO"}`)), `{"async":true,"prompt":"a lighthouse",` +
			`"rendering_speed":"TURBO","size":"1280x720"}`},
		{"4, from a picture", image(model("ideogram-4"), refs(one)), ``},
		{"4, a seed", image(model("ideogram-4"), params(`{"seed":7}`)), ``},
		{"3", image(model("ideogram-3"), params(`{"negative_prompt":"fog"}`)), `{"aspect_ratio":"16x9","async":true,` +
			`"negative_prompt":"fog","num_images":1,"prompt":"a lighthouse"}`},
		{"3, larger", image(model("ideogram-3"), tier("2K", true)), ``},
		{"3, pixels", image(model("ideogram-3"), size("", 1000, 600, true)), ``},
		{"3, another ratio", image(model("ideogram-3"), size("21:9", 1568, 672, false)), ``},
		{"a model of tomorrow", image(model("ideogram-5")), ``},
	} {
		studio := fakestudio.NewIdeogram(t)
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, ideogram.Provider, studio.URL(), nil), tt.w)
		sent := studio.Submissions()
		if tt.want == "" {
			if v := conformance.VerdictOf(t, err); v != conformance.VerdictsOf(tt.w.Kind).Refused || len(sent) != 0 {
				t.Errorf("%s: %+v (%v), %d submissions", tt.name, v, err, len(sent))
			}
			continue
		}
		if err != nil || len(sent) != 1 {
			t.Errorf("%s: %v, %d submissions", tt.name, err, len(sent))
		} else if got := body(t, sent[0]); got != tt.want || sent[0].Path != "/v2/image/generate/"+tt.w.Model {
			t.Errorf("%s: %s\n%s, want\n%s", tt.name, sent[0].Path, got, tt.want)
		}
	}
}

// TestOneACall: a model without a count makes a task for each picture.
func TestOneACall(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewIdeogram(t)
	w := image(model("ideogram-4"), func(w *jobcall.Task) { w.Count = 3 })
	made, err := conformance.Polled(t, conformance.Line(t, ideogram.Provider, studio.URL(), nil), w)
	if err != nil || len(made.Results) != 3 || len(studio.Submissions()) != 3 {
		t.Errorf("%+v, %v, %d calls", made, err, len(studio.Submissions()))
	}
}

// TestSubmissionVerdicts is the table of what a submission is answered with.
func TestSubmissionVerdicts(t *testing.T) {
	t.Parallel()
	v := conformance.VerdictsOf(upstream.KindImage)
	noModel := v.Account
	noModel.Health = upstream.HealthModel
	for _, tt := range []struct {
		status int
		body   string
		want   conformance.Verdict
		proven bool // of the account
		told   string
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
		{404, `{"error":"no such model"}`, noModel, false, ""},
		{413, `{"error":"Images are too large"}`, v.Material, true, "too large"},
		{422, `{"error":"Prompt failed the safety check"}`, v.Flagged, true, "safety check"},
		{422, `{"detail":[{"loc":["body","size"],"msg":"bad size","type":"value_error"}]}`, v.Refused, true, "bad size"},
		{429, ``, v.Busy, true, ""},
		{500, `{"error":"oops"}`, v.Broken, true, ""},
		{503, `{"error":"oops"}`, v.Broken, true, ""},
	} {
		_, err := jobcall.Submit(t.Context(), conformance.Answering(t, ideogram.Provider, tt.status, tt.body), image())
		f := upstream.AsJobFailure(err)
		if got := conformance.VerdictOf(t, err); got != tt.want || f.Unproven == tt.proven || !strings.Contains(f.Told(), tt.told) {
			t.Errorf("%d %s: %+v, want %+v; unproven %t, told %q", tt.status, tt.body, got, tt.want, f.Unproven, f.Told())
		}
	}
}

// TestEndVerdicts is the table of how a task ends.
func TestEndVerdicts(t *testing.T) {
	t.Parallel()
	v := conformance.VerdictsOf(upstream.KindImage)
	for said, want := range map[string]conformance.Verdict{
		`{"status":"failed","failure_reason":"worker lost"}`:                                        v.Failed,
		`{"status":"failed"}`:                                                                       v.Failed,
		`{"status":"failed","failure_reason":"The result is unsafe"}`:                               v.Flagged,
		`{"status":"failed","failure_reason":"copyright detected"}`:                                 v.Flagged,
		`{"status":"completed","data":[]}`:                                                          v.Empty,
		`{"status":"completed","data":[{"url":"","is_image_safe":false}]}`:                          v.FlaggedOutput,
		`{"status":"completed","data":[{"url":"https://x.example/blurred","is_image_safe":false}]}`: v.FlaggedOutput,
	} {
		studio := fakestudio.NewIdeogram(t)
		studio.Expect(fakestudio.Behaviour{Failed: said})
		_, err := conformance.Polled(t, conformance.Line(t, ideogram.Provider, studio.URL(), nil), image())
		if got := conformance.VerdictOf(t, err); got != want {
			t.Errorf("%s: %+v, want %+v", said, got, want)
		}
	}
	some := `{"status":"completed","data":[{"url":"","is_image_safe":false},{"url":"https://x.example/1"},{"url":"https://x.example/2"}]}`
	a := conformance.Answering(t, ideogram.Provider, 200, some)
	if made, err := a.Poll(t.Context(), image(), "gen_1"); err != nil || len(made.Results) != 1 {
		t.Errorf("more than were asked for: %+v, %v", made, err)
	}
}

// FuzzAnswers: whatever the provider says, there is a verdict or a result.
func FuzzAnswers(f *testing.F) {
	conformance.Answers(f, ideogram.Provider, "gen_1", []jobcall.Task{image()},
		`{"generation_id":"gen_1"}`, `{"status":"completed","data":[{"url":"https://x.example/1"},{"url":7}]}`,
		`{"error":"no","reject_reason":"inflight_limit"}`, `{"status":"failed","failure_reason":"unsafe"}`)
}
