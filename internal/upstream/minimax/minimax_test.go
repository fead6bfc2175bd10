package minimax_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/minimax"
)

// TestBodies tests the body for each model. A case with an empty body must be unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	ten := slices.Repeat([]string{"1.png"}, 10)
	const (
		rest = `"prompt":"a lighthouse","response_format":"url"`
		text = `{"type":"text","text":"waves"}`
	)
	path := func(job jobcall.Task) string {
		if job.Kind == upstream.KindVideo {
			return "/v2/video_generation"
		}
		return "/v1/image_generation"
	}
	conformance.CheckBodies(t, minimax.Provider, path, []conformance.Body{
		{"a ratio", image(task.Count(9), task.Params(`{"prompt_optimizer":false}`)), `{"aspect_ratio":"16:9","model":"image-01","n":9,` +
			`"prompt":"a lighthouse","prompt_optimizer":false,"response_format":"url"}`},
		{"a seed", image(task.Params(`{"seed":7}`), task.NoRatio()), `{"model":"image-01","n":1,` + rest + `,"seed":7}`},
		{"another ratio", image(task.Shape("5:4", 1145, 916)), `{"height":912,"model":"image-01","n":1,` + rest + `,"width":1144}`},
		{"too wide", image(task.Shape("3:1", 1773, 591)), `{"height":584,"model":"image-01","n":1,` + rest + `,"width":1768}`},
		{"wider than it can", image(task.Shape("8:1", 2896, 362)), ``},
		{"pixels", image(task.Pixels(1000, 600)), `{"height":600,"model":"image-01","n":1,` + rest + `,"width":1000}`},
		{"pixels between steps", image(task.Pixels(1001, 600)), ``},
		{"a paid tier", image(task.LargerTier("2K"), task.Shape("1:1", 2048, 2048)),
			`{"height":2048,"model":"image-01","n":1,` + rest + `,"width":2048}`},
		{"a paid tier without a ratio", image(task.LargerTier("2K"), task.NoRatio()),
			`{"height":2048,"model":"image-01","n":1,` + rest + `,"width":2048}`},
		{"a paid tier that is too wide", image(task.LargerTier("2K"), task.Shape("16:9", 2731, 1536)), ``},
		{"ten pictures", image(task.Count(10)), ``},
		{"a character", image(task.Refs("inline.webp")), `{"model":"image-01","n":1,` + rest + `,"subject_reference":[{"image_file":` +
			`"data:image/webp;base64,YWJj","type":"character"}]}`},
		{"two characters", image(task.Refs("1.png", "2.png")), ``},
		{"a character of a video", image(task.Refs("v.mp4")), ``},
		{"a mask", image(task.Refs("1.png"), task.Mask(task.ParseReference("2.png"))), ``},
		{"a negative prompt", image(task.Params(`{"negative_prompt":"fog"}`)), ``},
		{"a long prompt", image(task.Prompt(strings.Repeat("a", 1501))), ``},

		{"clip", video(), `{"content":[` + text + `],"duration":5,"model":"MiniMax-H3","ratio":"16:9","resolution":"768P"}`},
		{"no words", video(task.Refs("1.png"), task.LargerTier("2K"), task.Prompt("")), `{"content":[{"type":"text","text":""},` +
			`{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"first_frame"}],"duration":5,"model":"MiniMax-H3",` +
			`"resolution":"2K"}`},
		{"frames", video(task.Refs("1.png", "inline.webp"), task.Model("MiniMax-H3-Max"), task.Tier("480p")), `{"content":[` + text +
			`,{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"first_frame"},{"type":"image_url",` +
			`"image_url":{"url":"data:image/webp;base64,YWJj"},"role":"last_frame"}],"duration":5,"model":"MiniMax-H3-Max","resolution":"480P"}`},
		{"a picture and a ratio", video(task.Refs("1.png"), task.Shape("1:1", 768, 768)), `{"content":[` + text +
			`,{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"reference_image"}],"duration":5,` +
			`"model":"MiniMax-H3","ratio":"1:1","resolution":"768P"}`},
		{"a picture and a video", video(task.Refs("1.png", "v.mp4"), task.Seconds(0)), `{"content":[` + text +
			`,{"type":"image_url","image_url":{"url":"https://media.example/1.png"},"role":"reference_image"},{"type":"video_url",` +
			`"video_url":{"url":"https://media.example/v.mp4"},"role":"reference_video"}],"model":"MiniMax-H3","resolution":"768P"}`},
		{"frames with a ratio", video(task.Refs("1.png"), task.Model("MiniMax-H3-Max"), task.Shape("1:1", 768, 768)), ``},
		{"references of a model of frames", video(task.Refs("1.png", "2.png", "3.png"), task.Model("MiniMax-H3-Max")), ``},
		{"ten references", video(task.Refs(ten...)), ``},
		{"four videos", video(task.Refs("v.mp4", "v.mp4", "v.mp4", "v.mp4")), ``},
		{"a video of nowhere", video(task.Refs("inline.mp4")), ``},
		{"another tier", video(task.Tier("720p")), ``},
		{"the other model's tier", video(task.Tier("480p")), ``},
		{"a clip's pixels", video(task.Pixels(1000, 600)), ``},
		{"a clip's ratio", video(task.Shape("2:1", 1536, 768)), ``},
		{"too short", video(task.Seconds(3)), ``},
		{"too short for the other", video(task.Seconds(4), task.Model("MiniMax-H3-Max")), ``},
		{"too long", video(task.Seconds(16)), ``},
		{"a clip's seed", video(task.Params(`{"seed":7}`)), ``},
		{"no sound", video(task.Params(`{"generate_audio":false}`)), ``},
		{"a model of the first interface", video(task.Model("MiniMax-Hailuo-2.3")), ``},
	})
}

// TestNumbers tests the provider's numeric codes: with a good status, as for rejected pictures, in
// the error of version 2 of the interface, and at the end of a task.
func TestNumbers(t *testing.T) {
	t.Parallel()
	clips, pictures := conformance.OutcomesOf(upstream.KindVideo), conformance.OutcomesOf(upstream.KindImage)
	for number, want := range map[int]func(v conformance.Outcomes) (submitted, ended conformance.Outcome){
		1000: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Broken, v.Failed },
		1001: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Broken, v.Failed },
		1002: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Busy, v.Busy },
		1004: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Account, v.Account },
		1008: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Account, v.Account },
		1013: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Broken, v.Failed },
		1026: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Flagged, v.Flagged },
		1027: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.FlaggedOutput, v.FlaggedOutput },
		1039: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Busy, v.Busy },
		2013: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Refused, v.Refused },
		2038: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Account, v.Account },
		2049: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Account, v.Account },
		9999: func(v conformance.Outcomes) (_, _ conformance.Outcome) { return v.Broken, v.Failed },
	} {
		studio := fakestudio.NewMiniMax(t)
		base := fmt.Sprintf(`{"status_code":%d,"status_msg":"m"}`, number)
		a := conformance.Line(t, minimax.Provider, studio.URL(), nil)
		studio.Expect(fakestudio.Failure(base), fakestudio.Refusal(200, `{"base_resp":`+base+`}`),
			fakestudio.Behaviour{Failure: fmt.Sprintf(`{"code":"%d","message":"m"}`, number)})
		submitted, _ := want(pictures)
		if _, err := jobcall.Submit(t.Context(), a, image()); conformance.OutcomeOf(t, err) != submitted {
			t.Errorf("%d, a picture: %v", number, err)
		}
		submitted, ended := want(clips)
		if _, err := jobcall.Submit(t.Context(), a, video()); conformance.OutcomeOf(t, err) != submitted || upstream.AsJobFailure(err).Lost {
			t.Errorf("%d, a clip: %v", number, err)
		}
		if _, err := conformance.SubmitAndPoll(t, a, video()); conformance.OutcomeOf(t, err) != ended {
			t.Errorf("%d, a clip's end: %v", number, err)
		}
		if number == 9999 {
			continue
		}
		body := fmt.Sprintf(`{"type":"error","error":{"type":"api_error","code":%d,"message":"m"}}`, number)
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, minimax.Provider, 200, body), video())
		if conformance.OutcomeOf(t, err) != submitted {
			t.Errorf("%d, a clip, by the error: %v", number, err)
		}
	}
}

// TestSubmissionOutcomes tests the failure for each response of the second interface.
func TestSubmissionOutcomes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindVideo)
	body := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q,"http_code":"400"},"request_id":"021"}`, kind, message)
	}
	conformance.CheckReplies(t, minimax.Provider, video(), []conformance.Reply{
		{400, body("invalid_request_error", "duration is none of the model's"), v.Refused, ""},
		{400, body("bad_request_error", "input text sensitive"), v.Flagged, ""},
		{401, body("authorized_error", "login fail"), v.Account, ""},
		{402, body("insufficient_balance_error", "insufficient balance"), v.Account, ""},
		{403, body("permission_error", "no access"), v.Account, ""},
		{404, body("not_found_error", "model not found"), v.Model, ""},
		{429, body("rate_limit_error", "rate limit"), v.Busy, ""},
		{500, body("api_error", "oops"), v.Broken, ""},
		{529, body("overloaded_error", "busy"), v.Busy, ""},
	})
}

// TestEnds checks the ends of tasks and answers without a number.
func TestEnds(t *testing.T) {
	t.Parallel()
	clips, pictures := conformance.OutcomesOf(upstream.KindVideo), conformance.OutcomesOf(upstream.KindImage)
	expired := clips.Failed
	expired.Job = "render_timeout"
	for reason, want := range map[string]conformance.Outcome{
		`{"status":"expired"}`: expired, `{"status":"cancelled"}`: clips.Failed, `{"message":"worker lost"}`: clips.Failed, `null`: clips.Failed,
		`{"status":"succeeded"}`: clips.Empty, // without a clip
	} {
		how := fakestudio.Failure(reason)
		if got := conformance.OutcomeAfter(t, minimax.Provider, fakestudio.NewMiniMax(t), how, video()); got != want {
			t.Errorf("%s: %+v, want %+v", reason, got, want)
		}
	}
	g := conformance.LineWithReply(t, minimax.Provider, 200, `{"task":{"id":"t-1","status":"preparing"}}`)
	if status, err := g.Poll(t.Context(), video(), "t-1"); err != nil || status.Done || status.Wait != 10*time.Second {
		t.Errorf("an unknown status: %+v, %v", status, err)
	}
	studio := fakestudio.NewMiniMax(t)
	studio.Expect(fakestudio.Failure(`{}`), fakestudio.Behaviour{Images: 2})
	a := conformance.Line(t, minimax.Provider, studio.URL(), nil)
	if _, err := jobcall.Submit(t.Context(), a, image()); conformance.OutcomeOf(t, err) != pictures.FlaggedOutput {
		t.Errorf("all withheld: %v", err)
	}
	some := image(task.Count(3))
	if status, err := jobcall.Submit(t.Context(), a, some); err != nil || len(status.Results) != 2 {
		t.Errorf("one picture withheld: %+v, %v", status, err)
	}
	none := `{"data":{"image_urls":[]},"metadata":{"failed_count":"0"},"base_resp":{"status_code":0}}`
	_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, minimax.Provider, 200, none), image())
	if got := conformance.OutcomeOf(t, err); got != pictures.Empty {
		t.Errorf("no picture: %+v", got)
	}
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, minimax.Provider, "t-1", []jobcall.Task{image(), video()},
		`{"task_id":"t-1"}`, `{"task":{"status":"succeeded","content":{"url":"https://x.example/1"}}}`,
		`{"task":{"status":"failed","error":{"code":1026,"message":"m"}}}`, `{"base_resp":{"status_code":1008,"status_msg":"m"}}`,
		`{"data":{"image_urls":["https://x.example/1"]},"metadata":{"failed_count":"1"},"base_resp":{"status_code":0}}`)
}
