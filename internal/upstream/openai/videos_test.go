package openai_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/openai"
)

func clip(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("sora-2", task.Prompt("a fox runs"), task.Seconds(8)), change...)
}

// TestVideos tests the path and form of each submission.
func TestVideos(t *testing.T) {
	t.Parallel()
	const path = "/v1/videos"
	png := task.References(task.Reference("image/png", "", string(fakestudio.Picture(1))))
	conformance.CheckSubmissions(t, openai.Provider, nil, map[string]conformance.Submission{
		"from words": {clip(), path, `{"model":"sora-2","prompt":"a fox runs","seconds":"8","size":"1280x720"}`},
		"the nearest size": {clip(task.Tier("1080p"), task.Shape("9:16", 1080, 1920)), path,
			`{"model":"sora-2","prompt":"a fox runs","seconds":"8","size":"1024x1792"}`},
		"another vendor": {clip(task.Model("v-1"), task.Tier("1080p"), task.NoRatio(), task.Seconds(5)), path,
			`{"model":"v-1","prompt":"a fox runs","seconds":"5","size":"1920x1080"}`},
	})
	conformance.CheckUnsuitable(t, openai.Provider, map[string]jobcall.Task{
		"no prompt":      clip(png, task.Prompt("")),
		"two references": clip(task.Refs("a", "b")),
		"a video":        clip(task.Refs("a.mp4")),
		"a mask":         clip(task.Mask(task.ParseReference("a"))),
		"five seconds":   clip(task.Seconds(5)),
		"480p":           clip(task.Tier("480p"), task.Shape("16:9", 854, 480)),
		"square":         clip(task.Shape("1:1", 720, 720)),
		"exact pixels":   clip(task.Pixels(1282, 720)),
		"no tier":        clip(task.Tier("HD"), task.NoRatio()),
		"our own field":  clip(task.Params(`{"seconds":"12"}`)),
		"no fields":      clip(task.Params(`7`)),
	})
}

// TestVideoFromPicture tests the form with a file, and the wait between polls.
func TestVideoFromPicture(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	a := conformance.Line(t, openai.Provider, studio.URL(), nil)
	job := clip(task.References(task.Reference("image/png", "", string(fakestudio.Picture(1)))),
		task.Seconds(0), task.Params(`{"style":"noir"}`))
	p, err := jobcall.Submit(t.Context(), a, job)
	if err != nil {
		t.Fatal(err)
	}
	got := studio.Submissions()[0]
	want := map[string]string{"model": "sora-2", "prompt": "a fox runs", "size": "1280x720", "style": "noir",
		"input_reference": string(fakestudio.Picture(1))}
	if form := conformance.Form(t, &got); p.Ticket != got.Ticket || !maps.Equal(form, want) ||
		fileNames(got) != `[name="input_reference"; filename="reference.png"]` {
		t.Errorf("%+v, form %q, files %s", p, form, fileNames(got))
	}
	if got.Header.Get("Idempotency-Key") != "sub_1" {
		t.Errorf("headers %v", got.Header)
	}
	if p, err = a.Poll(t.Context(), job, p.Ticket); err != nil || p.Done || p.Wait != 1500*time.Millisecond {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestVideoTroubles(t *testing.T) {
	t.Parallel()
	cred := clips.Account
	conformance.CheckOutcomes(t, openai.Provider, clip(), map[string]conformance.Case{
		"moderation":   {fakestudio.Refusal(400, openAIError("invalid_request_error", "moderation_blocked")), clips.Flagged},
		"field":        {fakestudio.Refusal(400, openAIError("invalid_request_error", "invalid_value")), clips.Refused},
		"reference":    {fakestudio.Refusal(400, openAIError("invalid_request_error", "invalid_image")), clips.Material},
		"key":          {fakestudio.Refusal(401, openAIError("invalid_request_error", "invalid_api_key")), cred},
		"quota":        {fakestudio.Refusal(429, openAIError("insufficient_quota", "insufficient_quota")), cred},
		"rate":         {fakestudio.Refusal(429, openAIError("requests", "rate_limit_exceeded")), clips.Busy},
		"model":        {fakestudio.Refusal(404, openAIError("invalid_request_error", "model_not_found")), clips.Model},
		"no id":        {fakestudio.Refusal(200, `{"object":"video","error":null}`), clips.Lost},
		"an odd id":    {fakestudio.Refusal(200, `{"id":"../../x"}`), clips.Lost},
		"error in 200": {fakestudio.Refusal(200, openAIError("x", "moderation_blocked")), clips.Flagged},
	})
}

func TestVideoEnds(t *testing.T) {
	t.Parallel()
	sound := clips.Flagged
	sound.Param = "audio"
	conformance.CheckOutcomes(t, openai.Provider, clip(), map[string]conformance.Case{
		"moderation": {fakestudio.Failure(`{"code":"moderation_blocked","message":"no"}`), clips.Flagged},
		"sentinel":   {fakestudio.Failure(`{"code":"sentinel_block","message":"the audio"}`), sound},
		"rendering":  {fakestudio.Failure(`{"code":"video_generation_failed","message":"x"}`), clips.Failed},
		"internal":   {fakestudio.Failure(`{"code":"internal_error","message":"x"}`), clips.Failed},
		"words":      {fakestudio.Failure(`"gone wrong"`), clips.Failed},
		"no reason":  {fakestudio.Failure(`null`), clips.Failed},
		"lost id":    {fakestudio.Behaviour{Lost: true}, clips.Gone},
		"poll 429": {fakestudio.Behaviour{PollStatus: 429, PollStatusTimes: 5},
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthCool)},
		"poll 401": {fakestudio.Behaviour{PollStatus: 401, PollStatusTimes: 5},
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthCredential)},
	})
}

// TestVideoStatus tests the statuses of compatible vendors.
func TestVideoStatus(t *testing.T) {
	t.Parallel()
	a, answer := conformance.LineWithScript(t, openai.Provider)
	for status, next := range map[string]upstream.Next{"expired": upstream.NextLine, "canceled": upstream.NextLine,
		"thinking": upstream.NextPoll, "": upstream.NextPoll} {
		answer([]byte(`{"status":"`+status+`"}`), 200)
		_, err := a.Poll(t.Context(), clip(), "video_1")
		if m := conformance.JobFailure(t, err); m.Next != next || status == "expired" && m.Job != fault.RenderTimeout {
			t.Errorf("%q: %+v", status, m)
		}
	}
	for _, status := range []string{"queued", "in_progress", "pending", "processing", "running", "succeeded"} {
		answer([]byte(`{"status":"`+status+`"}`), 200)
		if p, err := a.Poll(t.Context(), clip(), "video_1"); err != nil || p.Done != (status == "succeeded") {
			t.Errorf("%q: %+v, %v", status, p, err)
		}
	}
	for name, body := range map[string]string{"page": "<html>", "list": "[]", "nothing": ""} {
		for _, status := range []int{200, 404, 502} {
			answer([]byte(body), status)
			_, err := a.Poll(t.Context(), clip(), "video_1")
			if m := conformance.JobFailure(t, err); m.Next != upstream.NextPoll {
				t.Errorf("%s with %d: %+v", name, status, m)
			}
		}
	}
}

func TestVideoCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	a := conformance.Line(t, openai.Provider, studio.URL(), nil)
	p, err := jobcall.Submit(t.Context(), a, clip())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // cancelling twice is a no-op
		if err := a.Cancel(t.Context(), clip(), p.Ticket); err != nil {
			t.Fatal(err)
		}
	}
	if got := studio.CancelledTickets(); !slices.Equal(got, []string{p.Ticket}) {
		t.Errorf("cancelled %v", got)
	}
}

func FuzzVideos(f *testing.F) {
	for _, seed := range []string{`{"id":"video_1","status":"completed"}`, `{"status":"failed","error":{"code":"x"}}`, `{"status":"queued"}`,
		`{"id":7}`, `[]`, `<`} {
		f.Add([]byte(seed), 200)
	}
	a, answer := conformance.LineWithScript(f, openai.Provider)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		answer(body, 200+(status%400+400)%400)
		if p, err := jobcall.Submit(t.Context(), a, clip()); err != nil {
			_ = conformance.JobFailure(t, err).UserMessage()
		} else if p.Ticket == "" || p.Done {
			t.Errorf("%+v", p)
		}
		if p, err := a.Poll(t.Context(), clip(), "video_1"); err != nil {
			_ = conformance.JobFailure(t, err).UserMessage()
		} else if p.Done != (len(p.Results) == 1) {
			t.Errorf("%+v", p)
		}
	})
}
