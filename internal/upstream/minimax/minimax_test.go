package minimax_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/minimax"
)

func model(id string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Model = id } }

// TestBodies: what each model is asked; empty: the line is unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	link := func(n int) jobcall.Reference {
		return conformance.Reference("image/png", fmt.Sprintf("https://media.example/%d.png", n), "abc")
	}
	inline, film := conformance.Reference("image/webp", "", "abc"), conformance.Reference("video/mp4", "https://media.example/v.mp4", "abc")
	tier := func(name string, larger bool) func(*jobcall.Task) {
		return func(w *jobcall.Task) { w.Tier, w.Larger = name, larger }
	}
	size := func(ratio string, width, height int, exact bool) func(*jobcall.Task) {
		return func(w *jobcall.Task) { w.Ratio, w.Width, w.Height, w.Exact = ratio, width, height, exact }
	}
	seconds := func(n int64) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Seconds = n } }
	count := func(n int) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Count = n } }
	ten := make([]jobcall.Reference, 10)
	for i := range ten {
		ten[i] = link(i)
	}
	const (
		rest = `"prompt":"a lighthouse","response_format":"url"`
		text = `{"type":"text","text":"waves"}`
	)
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want string
	}{
		{"a ratio", image(count(9), params(`{"prompt_optimizer":false}`)), `{"aspect_ratio":"16:9","model":"image-01","n":9,` +
			`"prompt":"a lighthouse","prompt_optimizer":false,"response_format":"url"}`},
		{"a seed", image(params(`{"seed":7}`), size("", 0, 0, false)), `{"model":"image-01","n":1,` + rest + `,"seed":7}`},
		{"another ratio", image(size("5:4", 1145, 916, false)), `{"height":912,"model":"image-01","n":1,` + rest + `,"width":1144}`},
		{"too wide", image(size("3:1", 1773, 591, false)), `{"height":584,"model":"image-01","n":1,` + rest + `,"width":1768}`},
		{"wider than it can", image(size("8:1", 2896, 362, false)), ``},
		{"pixels", image(size("", 1000, 600, true)), `{"height":600,"model":"image-01","n":1,` + rest + `,"width":1000}`},
		{"pixels between steps", image(size("", 1001, 600, true)), ``},
		{"a paid tier", image(tier("2K", true), size("1:1", 2048, 2048, false)),
			`{"height":2048,"model":"image-01","n":1,` + rest + `,"width":2048}`},
		{"a paid tier without a ratio", image(tier("2K", true), size("", 0, 0, false)),
			`{"height":2048,"model":"image-01","n":1,` + rest + `,"width":2048}`},
		{"a paid tier that is too wide", image(tier("2K", true), size("16:9", 2731, 1536, false)), ``},
		{"ten pictures", image(count(10)), ``},
		{"a character", image(refs(inline)), `{"model":"image-01","n":1,` + rest + `,"subject_reference":[{"image_file":` +
			`"data:image/webp;base64,YWJj","type":"character"}]}`},
		{"two characters", image(refs(link(1), link(2))), ``},
		{"a character of a video", image(refs(film)), ``},
		{"a mask", image(refs(link(1)), func(w *jobcall.Task) { m := link(2); w.Mask = &m }), ``},
		{"a negative prompt", image(params(`{"negative_prompt":"fog"}`)), ``},
		{"a long prompt", image(func(w *jobcall.Task) { w.Prompt = strings.Repeat("a", 1501) }), ``},

		{"clip", video(), `{"content":[` + text + `],"duration":5,"model":"MiniMax-H3","ratio":"16:9","resolution":"768P"}`},
		{"no words", video(refs(link(1)), tier("2K", true), func(w *jobcall.Task) { w.Prompt = "" }), `{"content":[{"type":"text","text":""},` +
			`{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"first_frame"}],"duration":5,"model":"MiniMax-H3",` +
			`"resolution":"2K"}`},
		{"frames", video(refs(link(1), inline), model("MiniMax-H3-Max"), tier("480p", false)), `{"content":[` + text +
			`,{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"first_frame"},{"type":"image_url",` +
			`"image_url":{"url":"data:image/webp;base64,YWJj"},"role":"last_frame"}],"duration":5,"model":"MiniMax-H3-Max","resolution":"480P"}`},
		{"a picture and a ratio", video(refs(link(1)), size("1:1", 768, 768, false)), `{"content":[` + text +
			`,{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"reference_image"}],"duration":5,` +
			`"model":"MiniMax-H3","ratio":"1:1","resolution":"768P"}`},
		{"a picture and a video", video(refs(link(1), film), seconds(0)), `{"content":[` + text +
			`,{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"reference_image"},{"type":"video_url",` +
			`"video_url":{"url":"https://media.example/v.mp4"},"role":"reference_video"}],"model":"MiniMax-H3","resolution":"768P"}`},
		{"frames with a ratio", video(refs(link(1)), model("MiniMax-H3-Max"), size("1:1", 768, 768, false)), ``},
		{"references of a model of frames", video(refs(link(1), link(2), link(3)), model("MiniMax-H3-Max")), ``},
		{"ten references", video(refs(ten...)), ``},
		{"four videos", video(refs(film, film, film, film)), ``},
		{"a video of nowhere", video(refs(conformance.Reference("video/mp4", "", "abc"))), ``},
		{"another tier", video(tier("720p", false)), ``},
		{"the other model's tier", video(tier("480p", false)), ``},
		{"a clip's pixels", video(size("16:9", 1000, 600, true)), ``},
		{"a clip's ratio", video(size("2:1", 1536, 768, false)), ``},
		{"too short", video(seconds(3)), ``},
		{"too short for the other", video(seconds(4), model("MiniMax-H3-Max")), ``},
		{"too long", video(seconds(16)), ``},
		{"a clip's seed", video(params(`{"seed":7}`)), ``},
		{"no sound", video(params(`{"generate_audio":false}`)), ``},
		{"a model of the first interface", video(model("MiniMax-Hailuo-2.3")), ``},
	} {
		studio := fakestudio.NewMiniMax(t)
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, minimax.Provider, studio.URL(), nil), tt.w)
		sent := studio.Submissions()
		if tt.want == "" {
			if v := conformance.VerdictOf(t, err); v != conformance.VerdictsOf(tt.w.Kind).Refused || len(sent) != 0 {
				t.Errorf("%s: %+v (%v), %d submissions", tt.name, v, err, len(sent))
			}
			continue
		}
		if err != nil || len(sent) != 1 {
			t.Errorf("%s: %v, %d submissions", tt.name, err, len(sent))
		} else if got := string(sent[0].Body); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

// TestNumbers is the table of the provider's numbers: with a good status as
// pictures are refused, in the error of the second interface, and at a task's end.
func TestNumbers(t *testing.T) {
	t.Parallel()
	clips, pictures := conformance.VerdictsOf(upstream.KindVideo), conformance.VerdictsOf(upstream.KindImage)
	for number, want := range map[int]func(v conformance.Verdicts) (submitted, ended conformance.Verdict){
		1000: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Broken, v.Failed },
		1001: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Broken, v.Failed },
		1002: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Busy, v.Busy },
		1004: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Account, v.Account },
		1008: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Account, v.Account },
		1013: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Broken, v.Failed },
		1026: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Flagged, v.Flagged },
		1027: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.FlaggedOutput, v.FlaggedOutput },
		1039: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Busy, v.Busy },
		2013: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Refused, v.Refused },
		2038: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Account, v.Account },
		2049: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Account, v.Account },
		9999: func(v conformance.Verdicts) (_, _ conformance.Verdict) { return v.Broken, v.Failed },
	} {
		studio := fakestudio.NewMiniMax(t)
		base := fmt.Sprintf(`{"status_code":%d,"status_msg":"m"}`, number)
		a := conformance.Line(t, minimax.Provider, studio.URL(), nil)
		studio.Expect(fakestudio.Behaviour{Failed: base}, fakestudio.Behaviour{Status: 200, Body: `{"base_resp":` + base + `}`},
			fakestudio.Behaviour{Failed: fmt.Sprintf(`{"code":"%d","message":"m"}`, number)})
		submitted, _ := want(pictures)
		if _, err := jobcall.Submit(t.Context(), a, image()); conformance.VerdictOf(t, err) != submitted {
			t.Errorf("%d, a picture: %v", number, err)
		}
		submitted, ended := want(clips)
		if _, err := jobcall.Submit(t.Context(), a, video()); conformance.VerdictOf(t, err) != submitted || upstream.AsJobFailure(err).Lost {
			t.Errorf("%d, a clip: %v", number, err)
		}
		if _, err := conformance.Polled(t, a, video()); conformance.VerdictOf(t, err) != ended {
			t.Errorf("%d, a clip's end: %v", number, err)
		}
		if number == 9999 {
			continue
		}
		said := fmt.Sprintf(`{"type":"error","error":{"type":"api_error","code":%d,"message":"m"}}`, number)
		_, err := jobcall.Submit(t.Context(), conformance.Answering(t, minimax.Provider, 200, said), video())
		if conformance.VerdictOf(t, err) != submitted {
			t.Errorf("%d, a clip, by the error: %v", number, err)
		}
	}
}

// TestSubmissionVerdicts is the table of what the second interface answers.
func TestSubmissionVerdicts(t *testing.T) {
	t.Parallel()
	v := conformance.VerdictsOf(upstream.KindVideo)
	noModel := v.Account
	noModel.Health = upstream.HealthModel
	said := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q,"http_code":"400"},"request_id":"021"}`, kind, message)
	}
	for _, tt := range []struct {
		status int
		body   string
		want   conformance.Verdict
	}{
		{400, said("invalid_request_error", "duration is none of the model's"), v.Refused},
		{400, said("bad_request_error", "input text sensitive"), v.Flagged},
		{401, said("authorized_error", "login fail"), v.Account},
		{402, said("insufficient_balance_error", "insufficient balance"), v.Account},
		{403, said("permission_error", "no access"), v.Account},
		{404, said("not_found_error", "model not found"), noModel},
		{429, said("rate_limit_error", "rate limit"), v.Busy},
		{500, said("api_error", "oops"), v.Broken},
		{529, said("overloaded_error", "busy"), v.Busy},
	} {
		_, err := jobcall.Submit(t.Context(), conformance.Answering(t, minimax.Provider, tt.status, tt.body), video())
		if got := conformance.VerdictOf(t, err); got != tt.want {
			t.Errorf("%d %s: %+v, want %+v", tt.status, tt.body, got, tt.want)
		}
	}
}

// TestEnds: how tasks and answers end without a number.
func TestEnds(t *testing.T) {
	t.Parallel()
	clips, pictures := conformance.VerdictsOf(upstream.KindVideo), conformance.VerdictsOf(upstream.KindImage)
	expired := clips.Failed
	expired.Job = "render_timeout"
	for said, want := range map[string]conformance.Verdict{
		`{"status":"expired"}`: expired, `{"status":"cancelled"}`: clips.Failed, `{"message":"worker lost"}`: clips.Failed, `null`: clips.Failed,
		`{"status":"succeeded"}`: clips.Empty, // and no clip
	} {
		studio := fakestudio.NewMiniMax(t)
		studio.Expect(fakestudio.Behaviour{Failed: said})
		_, err := conformance.Polled(t, conformance.Line(t, minimax.Provider, studio.URL(), nil), video())
		if got := conformance.VerdictOf(t, err); got != want {
			t.Errorf("%s: %+v, want %+v", said, got, want)
		}
	}
	g := conformance.Answering(t, minimax.Provider, 200, `{"task":{"id":"t-1","status":"preparing"}}`)
	if made, err := g.Poll(t.Context(), video(), "t-1"); err != nil || made.Done || made.Wait != 10*time.Second {
		t.Errorf("a word of tomorrow: %+v, %v", made, err)
	}
	studio := fakestudio.NewMiniMax(t)
	studio.Expect(fakestudio.Behaviour{Failed: `{}`}, fakestudio.Behaviour{Images: 2})
	a := conformance.Line(t, minimax.Provider, studio.URL(), nil)
	if _, err := jobcall.Submit(t.Context(), a, image()); conformance.VerdictOf(t, err) != pictures.FlaggedOutput {
		t.Errorf("all withheld: %v", err)
	}
	some := image(func(w *jobcall.Task) { w.Count = 3 })
	if made, err := jobcall.Submit(t.Context(), a, some); err != nil || len(made.Results) != 2 {
		t.Errorf("one withheld: %+v, %v", made, err)
	}
	none := `{"data":{"image_urls":[]},"metadata":{"failed_count":"0"},"base_resp":{"status_code":0}}`
	_, err := jobcall.Submit(t.Context(), conformance.Answering(t, minimax.Provider, 200, none), image())
	if got := conformance.VerdictOf(t, err); got != pictures.Empty {
		t.Errorf("none came: %+v", got)
	}
}

// FuzzAnswers: whatever the provider says, there is a verdict or a result.
func FuzzAnswers(f *testing.F) {
	conformance.Answers(f, minimax.Provider, "t-1", []jobcall.Task{image(), video()},
		`{"task_id":"t-1"}`, `{"task":{"status":"succeeded","content":{"url":"https://x.example/1"}}}`,
		`{"task":{"status":"failed","error":{"code":1026,"message":"m"}}}`, `{"base_resp":{"status_code":1008,"status_msg":"m"}}`,
		`{"data":{"image_urls":["https://x.example/1"]},"metadata":{"failed_count":"1"},"base_resp":{"status_code":0}}`)
}
