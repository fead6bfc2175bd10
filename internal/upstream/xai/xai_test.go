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
	return task.ApplyChanges(task.Video("grok-imagine-video-1.5"), change...)
}

func picture(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("grok-imagine-image-2.0"), change...)
}

// TestSubmissions tests the path and body of each submission. The line must reject a task without a
// path here.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	conformance.CheckSubmissions(t, xai.Provider, nil, map[string]conformance.Submission{
		"pictures": {picture(task.Tier("2K"), task.Count(2)), "/v1/images/generations",
			`{"aspect_ratio":"16:9","model":"grok-imagine-image-2.0","n":2,"prompt":"a lighthouse","resolution":"2k","response_format":"url"}`},
		"an edit": {picture(task.Refs("inline"), task.Params(`{"quality":"low"}`)), "/v1/images/edits",
			`{"image":{"type":"image_url","url":"data:image/png;base64,YWJj"},"model":"grok-imagine-image-2.0","n":1,` +
				`"prompt":"a lighthouse","quality":"low","resolution":"1k","response_format":"url"}`},
		"an edit of two": {picture(task.Refs("a", "b")), "/v1/images/edits",
			`{"images":[{"type":"image_url","url":"https://media.example/a"},{"type":"image_url","url":"https://media.example/b"}],` +
				`"model":"grok-imagine-image-2.0","n":1,"prompt":"a lighthouse","resolution":"1k","response_format":"url"}`},
		"a clip": {clip(task.Params(`{"audio":false}`)), "/v1/videos/generations", `{"aspect_ratio":"16:9","duration":5,"generate_audio":false,` +
			`"model":"grok-imagine-video-1.5","prompt":"waves","resolution":"720p"}`},
		"frames": {clip(task.Refs("last_frame=b", "first_frame=a"), task.Tier("1080p")), "/v1/videos/generations",
			`{"duration":5,"image":{"url":"https://media.example/a"},"last_frame":{"url":"https://media.example/b"},` +
				`"model":"grok-imagine-video-1.5","prompt":"waves","resolution":"1080p"}`},
		"one picture": {clip(task.Refs("a"), task.Model("grok-imagine-video")), "/v1/videos/generations",
			`{"duration":5,"image":{"url":"https://media.example/a"},"model":"grok-imagine-video","prompt":"waves","resolution":"720p"}`},
		"several": {clip(task.Refs("a", "b")), "/v1/videos/generations", `{"duration":5,"model":"grok-imagine-video-1.5","prompt":"waves",` +
			`"reference_images":[{"url":"https://media.example/a"},{"url":"https://media.example/b"}],"resolution":"720p"}`},
		"a reference": {clip(task.Refs("reference=a")), "/v1/videos/generations",
			`{"duration":5,"model":"grok-imagine-video-1.5","prompt":"waves",` +
				`"reference_images":[{"url":"https://media.example/a"}],"resolution":"720p"}`},

		"4K":                       {Task: picture(task.Tier("4K"))},
		"a ratio":                  {Task: picture(task.Ratio("21:9"))},
		"four references":          {Task: picture(task.Refs("a", "b", "c", "d"))},
		"a clip of a clip":         {Task: clip(task.Refs("a.mp4"))},
		"frames beside references": {Task: clip(task.Refs("first_frame=a", "reference=b"))},
		"a last frame alone":       {Task: clip(task.Refs("last_frame=a"))},
		"older model, last frame":  {Task: clip(task.Refs("first_frame=a", "last_frame=b"), task.Model("grok-imagine-video"))},
		"older model, no audio":    {Task: clip(task.Model("grok-imagine-video"), task.Params(`{"audio":false}`))},
		"older model, 1080p":       {Task: clip(task.Model("grok-imagine-video"), task.Tier("1080p"))},
		"1080p with references":    {Task: clip(task.Refs("reference=a"), task.Tier("1080p"))},
		"sixteen seconds":          {Task: clip(task.Seconds(16))},
		"a seed":                   {Task: clip(task.Params(`{"seed":7}`))},
		"reference audio":          {Task: clip(task.Params(`{"reference_audios":[{"url":"http://10.0.0.1"}]}`))},
	})
}

// TestVideos tests tasks that edit or extend a video. The line must reject a task without a path here.
func TestVideos(t *testing.T) {
	t.Parallel()
	older := task.Model("grok-imagine-video")
	conformance.CheckSubmissions(t, xai.Provider, nil, map[string]conformance.Submission{
		"without the option": {Task: clip(older, task.Refs("a.mp4"), task.Seconds(0))},
	})
	conformance.CheckSubmissions(t, xai.Provider, map[string]any{"video_role": "edit"}, map[string]conformance.Submission{
		"changed": {clip(older, task.Refs("a.mp4"), task.Seconds(0)), "/v1/videos/edits",
			`{"model":"grok-imagine-video","prompt":"waves","video":{"url":"https://media.example/a.mp4"}}`},
		"newer model":              {Task: clip(task.Refs("a.mp4"), task.Seconds(0))},
		"changed, with a duration": {Task: clip(older, task.Refs("a.mp4"))},
		"a picture from a video":   {Task: picture(task.Refs("a.mp4"))},
	})
	conformance.CheckSubmissions(t, xai.Provider, map[string]any{"video_role": "extend"}, map[string]conformance.Submission{
		"continued": {clip(older, task.Refs("reference=a.mp4"), task.Seconds(7)), "/v1/videos/extensions",
			`{"duration":7,"model":"grok-imagine-video","prompt":"waves","video":{"url":"https://media.example/a.mp4"}}`},
		"continued, default length": {clip(older, task.Refs("a.mp4"), task.Seconds(0)), "/v1/videos/extensions",
			`{"model":"grok-imagine-video","prompt":"waves","video":{"url":"https://media.example/a.mp4"}}`},
		"11 seconds":       {Task: clip(older, task.Refs("a.mp4"), task.Seconds(11))},
		"1 second":         {Task: clip(older, task.Refs("a.mp4"), task.Seconds(1))},
		"with a ratio":     {Task: clip(older, task.Refs("a.mp4"), task.Ratio("1:1"))},
		"larger than 720p": {Task: clip(older, task.Refs("a.mp4"), task.LargerTier("720p"))},
		"without a prompt": {Task: clip(older, task.Refs("a.mp4"), task.Prompt(""))},
		"two":              {Task: clip(older, task.Refs("a.mp4", "b.mp4"))},
		"beside a picture": {Task: clip(older, task.Refs("a.mp4", "b"))},
		"inline":           {Task: clip(older, task.Refs("inline.mp4"))},
		"webm":             {Task: clip(older, task.References(task.Reference("video/webm", "https://m.example/a", "abc")))},
	})
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
	unexplained := v.Broken.WithNext(upstream.NextPoll)
	respond, failed := fakestudio.Refusal, fakestudio.Failure
	conformance.CheckFailures(t, xai.Provider, clip(), []conformance.Case{
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
	})
	withheld := conformance.OutcomeAfter(t, xai.Provider, fakestudio.NewXAI(t), failed("all"), picture())
	if withheld != conformance.OutcomesOf(upstream.KindImage).FlaggedOutput {
		t.Errorf("withheld pictures: %+v", withheld)
	}
}

// TestClipWithoutAStatus tests that a response with a clip is done, with or without a status.
func TestClipWithoutAStatus(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewXAI(t)
	studio.Expect(fakestudio.Failure(`{"video":{"url":"https://v.example/x.mp4"}}`))
	status, err := conformance.SubmitAndPoll(t, conformance.Line(t, xai.Provider, studio.URL(), nil), clip())
	if err != nil || status.Results[0].Ref != "https://v.example/x.mp4" {
		t.Errorf("%+v, %v", status, err)
	}
}
