package luma_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/luma"
)

// TestBodies tests the body for each kind of task. A case with an empty body must be unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	ten := slices.Repeat([]string{"1.png"}, 10)
	conformance.CheckBodies(t, luma.Provider, func(jobcall.Task) string { return "/v1/generations" }, []conformance.Body{
		{"picture", image(task.Params(`{"output_format":"png","style":"manga"}`)),
			`{"aspect_ratio":"16:9","model":"uni-1","output_format":"png","prompt":"a lighthouse","style":"manga","type":"image"}`},
		{"a paid tier", image(task.LargerTier("2K"), task.NoRatio()),
			`{"model":"uni-1","prompt":"a lighthouse","type":"image"}`},
		{"a larger tier", image(task.LargerTier("4K")), ``},
		{"pixels", image(task.Pixels(1000, 600)), ``},
		{"another ratio", image(task.Shape("5:4", 1152, 896)), ``},
		{"an edit", image(task.Refs("inline.webp")),
			`{"model":"uni-1","prompt":"a lighthouse","source":{"data":"YWJj","media_type":"image/webp"},"type":"image_edit"}`},
		{"an edit with references", image(task.Refs("1.png", "2.png")), `{"image_ref":[{"url":"https://media.example/2.png"}],"model":"uni-1",` +
			`"prompt":"a lighthouse","source":{"url":"https://media.example/1.png"},"type":"image_edit"}`},
		{"ten pictures", image(task.Refs(ten...)), ``},
		{"from a video", image(task.Refs("v.mp4")), ``},
		{"a mask", image(task.Refs("1.png"), task.Mask(task.ParseReference("2.png"))), ``},
		{"a seed", image(task.Params(`{"seed":7}`)), ``},
		{"a negative prompt", image(task.Params(`{"negative_prompt":"fog"}`)), ``},
		{"a search", image(task.Params(`{"web_search":true}`)), ``},
		{"no prompt", image(task.Prompt("")), ``},
		{"a long prompt", image(task.Prompt(strings.Repeat("a", 6001))), ``},
		{"a long prompt in UTF-8", image(task.Prompt(strings.Repeat("é", 6000)), task.NoRatio()),
			`{"model":"uni-1","prompt":"` + strings.Repeat("é", 6000) + `","type":"image"}`},

		{"clip", video(task.Params(`{"loop":true}`)), `{"aspect_ratio":"16:9","model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"duration":"5s","loop":true,"resolution":"720p"}}`},
		{"frames", video(task.Refs("1.png", "inline.webp"), task.LargerTier("1080p")), `{"model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"duration":"5s","end_frame":{"data":"YWJj","media_type":"image/webp"},"resolution":"1080p",` +
			`"start_frame":{"url":"https://media.example/1.png"}}}`},
		{"its own length", video(task.Seconds(0)), `{"aspect_ratio":"16:9","model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"resolution":"720p"}}`},
		{"ten seconds", video(task.Seconds(10)), `{"aspect_ratio":"16:9","model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"duration":"10s","resolution":"720p"}}`},
		{"ten seconds with a frame", video(task.Seconds(10), task.Refs("1.png")), `{"model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"duration":"10s","keyframe_indexes":[0],"keyframes":[{"url":"https://media.example/1.png"}],"resolution":"720p"}}`},
		{"ten seconds between frames", video(task.Seconds(10), task.Refs("last_frame=2.png", "first_frame=1.png")),
			`{"model":"ray-3.2","prompt":"waves","type":"video","video":{"duration":"10s","keyframe_indexes":[0,240],` +
				`"keyframes":[{"url":"https://media.example/1.png"},{"url":"https://media.example/2.png"}],"resolution":"720p"}}`},
		{"ten seconds of a loop", video(task.Seconds(10), task.Params(`{"loop":true}`)), ``},
		{"six seconds", video(task.Seconds(6)), ``},
		{"three frames", video(task.Refs("1.png", "2.png", "3.png")), ``},
		{"a video", video(task.Refs("v.mp4")), ``},
		{"a clip's tier", video(task.LargerTier("4K")), ``},
		{"a clip's pixels", video(task.Pixels(1000, 600)), ``},
		{"a clip's ratio", video(task.Shape("3:1", 1536, 512)), ``},
		{"a dearer clip", video(task.Params(`{"hdr":true}`)), ``},
		{"sound", video(task.Params(`{"generate_audio":true}`)), ``},
		{"a clip's seed", video(task.Params(`{"seed":7}`)), ``},
	})
}

// TestVideos tests clips made from a video: edits, and videos in another ratio. A case without a
// body must be unsuitable.
func TestVideos(t *testing.T) {
	t.Parallel()
	whole := task.Seconds(0)
	conformance.CheckSubmissions(t, luma.Provider, nil, map[string]conformance.Submission{
		"without video_role": {Task: video(whole, task.Refs("v.mp4"))},
	})
	conformance.CheckSubmissions(t, luma.Provider, map[string]any{"video_role": "edit"}, map[string]conformance.Submission{
		"an edit": {video(whole, task.Refs("v.mp4"), task.Params(`{"strength":"flex_2"}`)), "/v1/generations",
			`{"model":"ray-3.2","prompt":"waves",` +
				`"source":{"url":"https://media.example/v.mp4","media_type":"video/mp4"},"type":"video_edit",` +
				`"video":{"edit":{"strength":"flex_2"},"resolution":"720p"}}`},
		"an edit with a first frame": {video(whole, task.Refs("reference=inline.mp4", "first_frame=1.png"), task.Tier("1080p")),
			"/v1/generations",
			`{"model":"ray-3.2","prompt":"waves","source":{"data":"YWJj","media_type":"video/mp4"},"type":"video_edit",` +
				`"video":{"resolution":"1080p","start_frame":{"url":"https://media.example/1.png"}}}`},
		"a length":                  {Task: video(task.Refs("v.mp4"))},
		"an edit with a ratio":      {Task: video(whole, task.Refs("v.mp4"), task.Ratio("9:16"))},
		"two videos":                {Task: video(whole, task.Refs("v.mp4", "w.mp4"))},
		"a video and a picture":     {Task: video(whole, task.Refs("v.mp4", "1.png"))},
		"a video and a last frame":  {Task: video(whole, task.Refs("reference=v.mp4", "last_frame=1.png"))},
		"a loop":                    {Task: video(whole, task.Refs("v.mp4"), task.Params(`{"loop":true}`))},
		"a resolution":              {Task: video(whole, task.Refs("v.mp4"), task.Tier("4K"))},
		"a picture made from video": {Task: image(task.Refs("v.mp4"))},
	})
	conformance.CheckSubmissions(t, luma.Provider, map[string]any{"video_role": "reframe"}, map[string]conformance.Submission{
		"another ratio": {video(whole, task.Refs("v.mp4"), task.Ratio("9:16")), "/v1/generations", `{"aspect_ratio":"9:16","model":"ray-3.2",` +
			`"prompt":"waves","source":{"url":"https://media.example/v.mp4","media_type":"video/mp4"},"type":"video_reframe",` +
			`"video":{"resolution":"720p"}}`},
		"reframe without a ratio": {Task: video(whole, task.Refs("v.mp4"))},
		"reframe with a strength": {Task: video(whole, task.Refs("v.mp4"), task.Ratio("9:16"), task.Params(`{"strength":"flex_2"}`))},
		"reframe with a frame":    {Task: video(whole, task.Refs("reference=v.mp4", "first_frame=1.png"), task.Ratio("9:16"))},
	})
	if err := luma.Info().CheckOptions(map[string]any{"video_role": "extend"}); err == nil {
		t.Error("an unknown video_role was accepted")
	}
}

// TestSubmissionOutcomes tests the failure for each response to a submission.
func TestSubmissionOutcomes(t *testing.T) {
	t.Parallel()
	for _, task := range []jobcall.Task{image(), video()} {
		v := conformance.OutcomesOf(task.Kind)
		conformance.CheckReplies(t, luma.Provider, task, []conformance.Reply{
			{400, `{"detail":"model is unknown"}`, v.Refused, ""},
			{401, `{"detail":"Invalid API key"}`, v.Account, ""},
			{402, `{"detail":"Insufficient funds"}`, v.Account, ""},
			{403, `{"detail":"Account suspended"}`, v.Account, ""},
			{413, `{"detail":"Media of more than 50 MB"}`, v.Refused, ""},
			{422, `{"detail":"start_frame goes with 5s"}`, v.Refused, ""},
			{429, `{"detail":"Too many concurrent jobs"}`, v.Busy, ""},
			{502, ``, v.Broken, ""},
			{503, `{"detail":"Could not ingest the media"}`, v.Broken, ""},
		})
		for body, unproven := range map[string]bool{``: false, `{"detail":"Could not ingest the media"}`: true} {
			_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, luma.Provider, 503, body), task)
			if f := upstream.AsJobFailure(err); f.Unproven != unproven {
				t.Errorf("%s: unproven %t", body, f.Unproven)
			}
		}
	}
}

// TestTaskOutcomes tests the outcome for each response about an ended task.
func TestTaskOutcomes(t *testing.T) {
	t.Parallel()
	for _, task := range []jobcall.Task{image(), video()} {
		v := conformance.OutcomesOf(task.Kind)
		retrySame := v.Failed
		retrySame.Next = upstream.NextSame
		cases := []conformance.Case{}
		for code, want := range map[string]conformance.Outcome{
			"content_moderated": v.Flagged, "invalid_request": v.Refused, "image_too_large": v.Material, "unsupported_format": v.Material,
			"corrupt_input": v.Material, "generation_failed": retrySame, "output_not_found": v.Empty, "rate_limited": v.Busy,
			"budget_exhausted": v.Account, "an unknown code": v.Failed, "": v.Failed,
		} {
			how := fakestudio.Failure(fmt.Sprintf(`{"state":"failed","failure_code":%q,"failure_reason":"because"}`, code))
			cases = append(cases, conformance.Case{Behaviour: how, Want: want})
		}
		conformance.CheckFailures(t, luma.Provider, task, cases)
		a := conformance.LineWithReply(t, luma.Provider, 200, `{"id":"1","state":"completed","output":[]}`)
		if _, err := a.Poll(t.Context(), task, "1"); conformance.OutcomeOf(t, err) != v.Empty {
			t.Errorf("%s without a result: error %v, want %v", task.Kind, err, v.Empty)
		}
	}
}

// TestFreshLink tests a link that expired after an hour: Fetch asks for another poll, and the poll
// returns a fresh link to the result.
func TestFreshLink(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewLuma(t)
	studio.Expect(fakestudio.Behaviour{BadLinks: 1})
	a, task := conformance.Line(t, luma.Provider, studio.URL(), nil), video()
	status, err := conformance.SubmitAndPoll(t, a, task)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Fetch(t.Context(), task, status.Results[0])
	if f := upstream.AsJobFailure(err); err == nil || f.Next != upstream.NextPoll || f.Job != fault.UpstreamError {
		t.Errorf("expired link: error %v, want NextPoll", err)
	}
	status, err = a.Poll(t.Context(), task, status.Ticket)
	if err != nil || !status.Done {
		t.Fatalf("the second poll returned %+v, %v", status, err)
	}
	file, err := a.Fetch(t.Context(), task, status.Results[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Body.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, luma.Provider, "t-1", []jobcall.Task{image(), video()},
		`{"id":"t-1"}`, `{"state":"completed","output":[{"url":7},{"url":"https://x.example/1"}]}`,
		`{"state":"failed","failure_code":"rate_limited"}`, `{"detail":"could not ingest"}`)
}
