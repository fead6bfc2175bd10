package xai_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/xai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func clip(change ...task.Change) jobcall.Task {
	return task.With(task.Video("grok-imagine-video-1.5"), change...)
}

func picture(change ...task.Change) jobcall.Task {
	return task.With(task.Image("grok-imagine-image-2.0"), change...)
}

// TestSubmissions tests the path and body of each submission. The line must reject a task without a
// path here.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		work       jobcall.Task
		path, body string
	}{
		"pictures": {picture(task.Tier("2K"), task.Count(2)), "images/generations",
			`{"aspect_ratio":"16:9","model":"grok-imagine-image-2.0","n":2,"prompt":"a lighthouse","resolution":"2k","response_format":"url"}`},
		"an edit": {picture(task.From("inline"), task.Params(`{"quality":"low"}`)), "images/edits",
			`{"image":{"type":"image_url","url":"data:image/png;base64,YWJj"},"model":"grok-imagine-image-2.0","n":1,` +
				`"prompt":"a lighthouse","quality":"low","resolution":"1k","response_format":"url"}`},
		"an edit of two": {picture(task.From("a", "b")), "images/edits",
			`{"images":[{"type":"image_url","url":"https://media.example/a"},{"type":"image_url","url":"https://media.example/b"}],` +
				`"model":"grok-imagine-image-2.0","n":1,"prompt":"a lighthouse","resolution":"1k","response_format":"url"}`},
		"a clip": {clip(task.Params(`{"audio":false}`)), "videos/generations", `{"aspect_ratio":"16:9","duration":5,"generate_audio":false,` +
			`"model":"grok-imagine-video-1.5","prompt":"waves","resolution":"720p"}`},
		"frames": {clip(task.From("last_frame=b", "first_frame=a"), task.Tier("1080p")), "videos/generations",
			`{"duration":5,"image":{"url":"https://media.example/a"},"last_frame":{"url":"https://media.example/b"},` +
				`"model":"grok-imagine-video-1.5","prompt":"waves","resolution":"1080p"}`},
		"one picture": {clip(task.From("a"), task.Model("grok-imagine-video")), "videos/generations",
			`{"duration":5,"image":{"url":"https://media.example/a"},"model":"grok-imagine-video","prompt":"waves","resolution":"720p"}`},
		"several": {clip(task.From("a", "b")), "videos/generations", `{"duration":5,"model":"grok-imagine-video-1.5","prompt":"waves",` +
			`"reference_images":[{"url":"https://media.example/a"},{"url":"https://media.example/b"}],"resolution":"720p"}`},
		"a reference": {clip(task.From("reference=a")), "videos/generations", `{"duration":5,"model":"grok-imagine-video-1.5","prompt":"waves",` +
			`"reference_images":[{"url":"https://media.example/a"}],"resolution":"720p"}`},

		"4K":                       {work: picture(task.Tier("4K"))},
		"a ratio":                  {work: picture(task.Ratio("21:9"))},
		"four references":          {work: picture(task.From("a", "b", "c", "d"))},
		"a clip of a clip":         {work: clip(task.From("a.mp4"))},
		"frames beside references": {work: clip(task.From("first_frame=a", "reference=b"))},
		"a last frame alone":       {work: clip(task.From("last_frame=a"))},
		"older model, last frame":  {work: clip(task.From("first_frame=a", "last_frame=b"), task.Model("grok-imagine-video"))},
		"older model, no audio":    {work: clip(task.Model("grok-imagine-video"), task.Params(`{"audio":false}`))},
		"older model, 1080p":       {work: clip(task.Model("grok-imagine-video"), task.Tier("1080p"))},
		"1080p with references":    {work: clip(task.From("reference=a"), task.Tier("1080p"))},
		"sixteen seconds":          {work: clip(task.Seconds(16))},
		"a seed":                   {work: clip(task.Params(`{"seed":7}`))},
		"reference audio":          {work: clip(task.Params(`{"reference_audios":[{"url":"http://10.0.0.1"}]}`))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.CheckSubmission(t, xai.Provider, fakestudio.NewXAI(t), tt.work, "/v1/"+tt.path, tt.body)
		})
	}
}

// TestVideos tests tasks that edit or extend a video. The line must reject a task without a path here.
func TestVideos(t *testing.T) {
	t.Parallel()
	older := task.Model("grok-imagine-video")
	for name, tt := range map[string]struct {
		role       string
		work       jobcall.Task
		path, body string
	}{
		"changed": {"edit", clip(older, task.From("a.mp4"), task.Seconds(0)), "/v1/videos/edits",
			`{"model":"grok-imagine-video","prompt":"waves","video":{"url":"https://media.example/a.mp4"}}`},
		"continued": {"extend", clip(older, task.From("reference=a.mp4"), task.Seconds(7)), "/v1/videos/extensions",
			`{"duration":7,"model":"grok-imagine-video","prompt":"waves","video":{"url":"https://media.example/a.mp4"}}`},
		"continued, default length": {"extend", clip(older, task.From("a.mp4"), task.Seconds(0)), "/v1/videos/extensions",
			`{"model":"grok-imagine-video","prompt":"waves","video":{"url":"https://media.example/a.mp4"}}`},

		"without the option":       {work: clip(older, task.From("a.mp4"), task.Seconds(0))},
		"newer model":              {role: "edit", work: clip(task.From("a.mp4"), task.Seconds(0))},
		"changed, with a duration": {role: "edit", work: clip(older, task.From("a.mp4"))},
		"11 seconds":               {role: "extend", work: clip(older, task.From("a.mp4"), task.Seconds(11))},
		"1 second":                 {role: "extend", work: clip(older, task.From("a.mp4"), task.Seconds(1))},
		"with a ratio":             {role: "extend", work: clip(older, task.From("a.mp4"), task.Ratio("1:1"))},
		"larger than 720p":         {role: "extend", work: clip(older, task.From("a.mp4"), task.Larger("720p"))},
		"without a prompt":         {role: "extend", work: clip(older, task.From("a.mp4"), task.Prompt(""))},
		"two":                      {role: "extend", work: clip(older, task.From("a.mp4", "b.mp4"))},
		"beside a picture":         {role: "extend", work: clip(older, task.From("a.mp4", "b"))},
		"inline":                   {role: "extend", work: clip(older, task.From("inline.mp4"))},
		"webm": {role: "extend",
			work: clip(older, task.References(task.Reference("video/webm", "https://m.example/a", "abc")))},
		"a picture from a video": {role: "edit", work: picture(task.From("a.mp4"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := map[string]any{}
			if tt.role != "" {
				options["video_role"] = tt.role
			}
			conformance.CheckSubmissionWith(t, xai.Provider, options, fakestudio.NewXAI(t), tt.work, tt.path, tt.body)
		})
	}
	if err := xai.Info().CheckOptions(map[string]any{"video_role": "reference"}); err == nil {
		t.Error("video_role accepts reference")
	}
}

// TestOutcomes tests errors in their three formats, and output withheld by the content review. Such
// output is billed and not tried again.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindVideo)
	expired := v.Failed
	expired.Job = fault.RenderTimeout
	unexplained := v.Broken.Then(upstream.NextPoll)
	respond := func(status int, body string) fakestudio.Behaviour {
		return fakestudio.Behaviour{Status: status, Body: body}
	}
	failed := func(body string) fakestudio.Behaviour { return fakestudio.Behaviour{Failed: body} }
	for _, tt := range []struct {
		studio fakestudio.Behaviour
		want   conformance.Outcome
	}{
		{respond(400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***"}`), v.Account},
		{respond(403, `{"error":"Your team has used all available credits"}`), v.Account},
		{respond(429, `{"error":{"message":"You have reached your monthly spending limit.","type":"x"}}`), v.Account},
		{respond(429, `{"error":"Too many requests"}`), v.Busy},
		{respond(403, `{"code":"forbidden","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_X"}`), v.Flagged},
		{respond(422, `{"error":"duration is invalid"}`), v.Refused},
		{failed(`{"http":400,"code":"Client specified an invalid argument","error":"Generated video rejected by content moderation.",` +
			`"usage":{"cost_in_usd_ticks":1}}`), v.Flagged},
		{failed(`{"http":400,"code":"Client specified an invalid argument","error":"the image cannot be decoded"}`), v.Failed},
		{failed(`{"status":"done","video":{"url":"https://v.example/x.mp4","respect_moderation":false}}`), v.Flagged},
		{failed(`{"status":"failed","error":{"code":"internal_error","message":"oops"}}`), v.Failed},
		{failed(`{"status":"expired"}`), expired},
		{failed(`{"status":"done"}`), v.Empty},
		{failed(`{"http":500,"error":"x"}`), unexplained},
	} {
		if got := conformance.OutcomeAfter(t, xai.Provider, fakestudio.NewXAI(t), tt.studio, clip()); got != tt.want {
			t.Errorf("%s%s: %+v, want %+v", tt.studio.Body, tt.studio.Failed, got, tt.want)
		}
	}
	withheld := conformance.OutcomeAfter(t, xai.Provider, fakestudio.NewXAI(t), failed("all"), picture())
	if withheld != conformance.OutcomesOf(upstream.KindImage).FlaggedOutput {
		t.Errorf("withheld pictures: %+v", withheld)
	}
}

// TestClipWithoutAStatus tests that a response with a clip is done, with or without a status.
func TestClipWithoutAStatus(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewXAI(t)
	studio.Expect(fakestudio.Behaviour{Failed: `{"video":{"url":"https://v.example/x.mp4"}}`})
	status, err := conformance.SubmitAndPoll(t, conformance.Line(t, xai.Provider, studio.URL(), nil), clip())
	if err != nil || status.Results[0].Ref != "https://v.example/x.mp4" {
		t.Errorf("%+v, %v", status, err)
	}
}
