package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	return task.With(task.Video("sora-2", task.Prompt("a fox runs"), task.Seconds(8)), change...)
}

func TestVideo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		work   jobcall.Task
		fields map[string]string
		files  []string
	}{
		"from words": {clip(), map[string]string{"model": "sora-2", "prompt": "a fox runs", "size": "1280x720", "seconds": "8"}, nil},
		"from a picture": {clip(func(w *jobcall.Task) {
			w.References, w.Seconds = []jobcall.Reference{task.Reference("image/png", "", string(fakestudio.Picture(1)))}, 0
			w.Params = json.RawMessage(`{"style":"noir"}`)
		}), map[string]string{"model": "sora-2", "prompt": "a fox runs", "size": "1280x720", "style": "noir"},
			[]string{"input_reference=reference.png"}},
		"the nearest size": {clip(func(w *jobcall.Task) { w.Tier, w.Ratio, w.Width, w.Height = "1080p", "9:16", 1080, 1920 }),
			map[string]string{"model": "sora-2", "prompt": "a fox runs", "size": "1024x1792", "seconds": "8"}, nil},
		"another vendor": {clip(func(w *jobcall.Task) {
			w.Model, w.Tier, w.Ratio, w.Width, w.Height, w.Seconds = "v-1", "1080p", "", 0, 0, 5
		}),
			map[string]string{"model": "v-1", "prompt": "a fox runs", "size": "1920x1080", "seconds": "5"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewOpenAI(t)
			studio.Expect(fakestudio.Behaviour{Polls: 2, PollStatus: 503, PollStatusTimes: 1})
			a := conformance.Line(t, openai.Provider, studio.URL(), nil)
			if a.Blocks(tt.work) {
				t.Error("clips block")
			}
			p, err := jobcall.Submit(t.Context(), a, tt.work)
			if err != nil {
				t.Fatal(err)
			}
			got := studio.Submissions()[0]
			fields, files := parts(t, got)
			if p.Ticket != got.Ticket || p.Done || fmt.Sprint(fields) != fmt.Sprint(tt.fields) || !slices.Equal(files, tt.files) {
				t.Fatalf("%+v, fields %v, files %v", p, fields, files)
			}
			if got.Header.Get("Idempotency-Key") != "sub_1" {
				t.Errorf("headers %v", got.Header)
			}
			// Another node polls.
			a, ticket := conformance.Line(t, openai.Provider, studio.URL(), nil), p.Ticket
			_, err = a.Poll(t.Context(), tt.work, ticket)
			if m := conformance.JobFailure(t, err); m.Next != upstream.NextPoll {
				t.Errorf("a poll that was answered 503: %+v", m)
			}
			for range 2 {
				if p, err = a.Poll(t.Context(), tt.work, ticket); err != nil || p.Done || p.Ticket != ticket || p.Wait != 1500*time.Millisecond {
					t.Fatalf("%+v, %v", p, err)
				}
			}
			if p, err = a.Poll(t.Context(), tt.work, ticket); err != nil || !p.Done || len(p.Results) != 1 {
				t.Fatalf("%+v, %v", p, err)
			}
			if data, _ := conformance.Fetch(t, a, tt.work, p.Results[0]); !bytes.Equal(data, fakestudio.Clip()) {
				t.Error("another clip")
			}
		})
	}
}

func TestVideoUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	a := conformance.Line(t, openai.Provider, studio.URL(), nil)
	ref := task.Reference("image/png", "", string(fakestudio.Picture(1)))
	for name, change := range map[string]task.Change{
		"no prompt":      func(w *jobcall.Task) { w.Prompt, w.References = "", []jobcall.Reference{ref} },
		"two references": func(w *jobcall.Task) { w.References = []jobcall.Reference{ref, ref} },
		"a video": func(w *jobcall.Task) {
			w.References = []jobcall.Reference{task.Reference("video/mp4", "", string(fakestudio.Clip()))}
		},
		"a mask":        func(w *jobcall.Task) { w.Mask = &ref },
		"five seconds":  func(w *jobcall.Task) { w.Seconds = 5 },
		"480p":          func(w *jobcall.Task) { w.Tier, w.Width, w.Height = "480p", 854, 480 },
		"square":        func(w *jobcall.Task) { w.Ratio, w.Width, w.Height = "1:1", 720, 720 },
		"exact pixels":  func(w *jobcall.Task) { w.Width, w.Height, w.Exact = 1282, 720, true },
		"no tier":       func(w *jobcall.Task) { w.Tier, w.Ratio, w.Width, w.Height = "HD", "", 0, 0 },
		"our own field": task.Params(`{"seconds":"12"}`),
		"no fields":     task.Params(`7`),
	} {
		_, err := jobcall.Submit(t.Context(), a, clip(change))
		conformance.CheckOutcome(t, name, err, clips.Refused)
	}
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestVideoTroubles(t *testing.T) {
	t.Parallel()
	cred := clips.Account
	for name, tt := range map[string]struct {
		how  fakestudio.Behaviour
		want conformance.Outcome
	}{
		"moderation": {fakestudio.Behaviour{Status: 400, Body: openAIError("invalid_request_error", "moderation_blocked")},
			clips.Flagged},
		"field": {fakestudio.Behaviour{Status: 400, Body: openAIError("invalid_request_error", "invalid_value")},
			clips.Refused},
		"reference": {fakestudio.Behaviour{Status: 400, Body: openAIError("invalid_request_error", "invalid_image")},
			clips.Material},
		"key":   {fakestudio.Behaviour{Status: 401, Body: openAIError("invalid_request_error", "invalid_api_key")}, cred},
		"quota": {fakestudio.Behaviour{Status: 429, Body: openAIError("insufficient_quota", "insufficient_quota")}, cred},
		"rate":  {fakestudio.Behaviour{Status: 429, Body: openAIError("requests", "rate_limit_exceeded")}, clips.Busy},
		"model": {fakestudio.Behaviour{Status: 404, Body: openAIError("invalid_request_error", "model_not_found")},
			clips.Model},
		"server":       {fakestudio.Behaviour{Status: 503, Body: "<html>"}, clips.Broken},
		"lost":         {fakestudio.Behaviour{LoseAnswer: true}, clips.Lost},
		"no id":        {fakestudio.Behaviour{Status: 200, Body: `{"object":"video","error":null}`}, clips.Lost},
		"an odd id":    {fakestudio.Behaviour{Status: 200, Body: `{"id":"../../x"}`}, clips.Lost},
		"error in 200": {fakestudio.Behaviour{Status: 200, Body: openAIError("x", "moderation_blocked")}, clips.Flagged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewOpenAI(t)
			studio.Expect(tt.how)
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), clip())
			conformance.CheckOutcome(t, "a submission", err, tt.want)
		})
	}
}

func TestVideoEnds(t *testing.T) {
	t.Parallel()
	sound := clips.Flagged
	sound.Param = "audio"
	for name, tt := range map[string]struct {
		how  fakestudio.Behaviour
		want conformance.Outcome
	}{
		"moderation": {fakestudio.Behaviour{Failed: `{"code":"moderation_blocked","message":"no"}`}, clips.Flagged},
		"sentinel":   {fakestudio.Behaviour{Failed: `{"code":"sentinel_block","message":"the audio"}`}, sound},
		"rendering":  {fakestudio.Behaviour{Failed: `{"code":"video_generation_failed","message":"x"}`}, clips.Failed},
		"internal":   {fakestudio.Behaviour{Failed: `{"code":"internal_error","message":"x"}`}, clips.Failed},
		"words":      {fakestudio.Behaviour{Failed: `"gone wrong"`}, clips.Failed},
		"no reason":  {fakestudio.Behaviour{Failed: `null`}, clips.Failed},
		"lost id":    {fakestudio.Behaviour{Lost: true}, clips.Gone},
		"poll 429": {fakestudio.Behaviour{PollStatus: 429, PollStatusTimes: 5},
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthCool)},
		"poll 401": {fakestudio.Behaviour{PollStatus: 401, PollStatusTimes: 5},
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthCredential)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewOpenAI(t)
			studio.Expect(tt.how)
			a := conformance.Line(t, openai.Provider, studio.URL(), nil)
			p, err := jobcall.Submit(t.Context(), a, clip())
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err = a.Poll(t.Context(), clip(), p.Ticket)
			}
			conformance.CheckOutcome(t, "the end", err, tt.want)
		})
	}
}

// TestVideoStatus tests the statuses of compatible vendors.
func TestVideoStatus(t *testing.T) {
	t.Parallel()
	a, answer := conformance.LineScripted(t, openai.Provider)
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
	for range 2 { // twice is once
		if err := a.Cancel(t.Context(), clip(), p.Ticket); err != nil {
			t.Fatal(err)
		}
	}
	if got := studio.Cancelled(); !slices.Equal(got, []string{p.Ticket}) {
		t.Errorf("cancelled %v", got)
	}
}

func FuzzVideos(f *testing.F) {
	for _, seed := range []string{`{"id":"video_1","status":"completed"}`, `{"status":"failed","error":{"code":"x"}}`, `{"status":"queued"}`,
		`{"id":7}`, `[]`, `<`} {
		f.Add([]byte(seed), 200)
	}
	a, answer := conformance.LineScripted(f, openai.Provider)
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
