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

// TestSubmissions: what is sent, and where; without a path it is unsuitable.
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

		"4K":                        {work: picture(task.Tier("4K"))},
		"a ratio":                   {work: picture(task.Ratio("21:9"))},
		"four references":           {work: picture(task.From("a", "b", "c", "d"))},
		"a clip of a clip":          {work: clip(task.From("a.mp4"))},
		"frames beside references":  {work: clip(task.From("first_frame=a", "reference=b"))},
		"a last frame alone":        {work: clip(task.From("last_frame=a"))},
		"a last frame of the older": {work: clip(task.From("first_frame=a", "last_frame=b"), task.Model("grok-imagine-video"))},
		"silence of the older":      {work: clip(task.Model("grok-imagine-video"), task.Params(`{"audio":false}`))},
		"1080p of the older":        {work: clip(task.Model("grok-imagine-video"), task.Tier("1080p"))},
		"1080p with references":     {work: clip(task.From("reference=a"), task.Tier("1080p"))},
		"sixteen seconds":           {work: clip(task.Seconds(16))},
		"a seed":                    {work: clip(task.Params(`{"seed":7}`))},
		"audio of others":           {work: clip(task.Params(`{"reference_audios":[{"url":"http://10.0.0.1"}]}`))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Asks(t, xai.Provider, fakestudio.NewXAI(t), tt.work, "/v1/"+tt.path, tt.body)
		})
	}
}

// TestVerdicts: errors in their three shapes, and what the review stopped, which
// is billed and not tried again.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	v := conformance.VerdictsOf(upstream.KindVideo)
	expired := v.Failed
	expired.Job = fault.RenderTimeout
	unsaid := v.Broken.Then(upstream.NextPoll)
	says := func(status int, body string) fakestudio.Behaviour {
		return fakestudio.Behaviour{Status: status, Body: body}
	}
	failed := func(body string) fakestudio.Behaviour { return fakestudio.Behaviour{Failed: body} }
	for _, tt := range []struct {
		how  fakestudio.Behaviour
		want conformance.Verdict
	}{
		{says(400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***"}`), v.Account},
		{says(403, `{"error":"Your team has used all available credits"}`), v.Account},
		{says(429, `{"error":{"message":"You have reached your monthly spending limit.","type":"x"}}`), v.Account},
		{says(429, `{"error":"Too many requests"}`), v.Busy},
		{says(403, `{"code":"forbidden","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_X"}`), v.Flagged},
		{says(422, `{"error":"duration is invalid"}`), v.Refused},
		{failed(`{"http":400,"code":"Client specified an invalid argument","error":"Generated video rejected by content moderation.",` +
			`"usage":{"cost_in_usd_ticks":1}}`), v.Flagged},
		{failed(`{"http":400,"code":"Client specified an invalid argument","error":"the image cannot be decoded"}`), v.Failed},
		{failed(`{"status":"done","video":{"url":"https://v.example/x.mp4","respect_moderation":false}}`), v.Flagged},
		{failed(`{"status":"failed","error":{"code":"internal_error","message":"oops"}}`), v.Failed},
		{failed(`{"status":"expired"}`), expired},
		{failed(`{"status":"done"}`), v.Empty},
		{failed(`{"http":500,"error":"x"}`), unsaid},
	} {
		if got := conformance.Fate(t, xai.Provider, fakestudio.NewXAI(t), tt.how, clip()); got != tt.want {
			t.Errorf("%s%s: %+v, want %+v", tt.how.Body, tt.how.Failed, got, tt.want)
		}
	}
	withheld := conformance.Fate(t, xai.Provider, fakestudio.NewXAI(t), failed("all"), picture())
	if withheld != conformance.VerdictsOf(upstream.KindImage).FlaggedOutput {
		t.Errorf("withheld pictures: %+v", withheld)
	}
}

// TestClipWithoutAStatus: a clip that is there is done, whether or not it is said.
func TestClipWithoutAStatus(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewXAI(t)
	studio.Expect(fakestudio.Behaviour{Failed: `{"video":{"url":"https://v.example/x.mp4"}}`})
	made, err := conformance.Polled(t, conformance.Line(t, xai.Provider, studio.URL(), nil), clip())
	if err != nil || made.Results[0].Ref != "https://v.example/x.mp4" {
		t.Errorf("%+v, %v", made, err)
	}
}
