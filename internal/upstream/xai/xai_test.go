package xai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/xai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "xai-line-credential-0123456789"

// at makes the adapter of a line at an address.
func at(t testing.TB, address string) *xai.Adapter {
	t.Helper()
	transport := exchange.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	a, err := xai.New(upstream.Target{Line: "main", Provider: xai.Provider, BaseURL: address, Key: key}, transport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func clip(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindVideo, Model: "grok-imagine-video-1.5", Prompt: "waves", Count: 1, Tier: "720p", Ratio: "16:9",
		Width: 1280, Height: 720, Seconds: 5}
	for _, c := range change {
		c(&w)
	}
	return w
}

func picture(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindImage, Model: "grok-imagine-image-2.0", Prompt: "a lighthouse", Count: 1, Tier: "1K", Ratio: "16:9",
		Width: 1360, Height: 768}
	for _, c := range change {
		c(&w)
	}
	return w
}

func model(id string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Model = id } }

func tier(name string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Tier = name } }

func params(object string) func(*jobcall.Task) {
	return func(w *jobcall.Task) { w.Params = json.RawMessage(object) }
}

// refs gives a task references: `role=address`, or an address.
func refs(list ...string) func(*jobcall.Task) {
	return func(w *jobcall.Task) {
		w.References, w.Ratio, w.Width, w.Height = nil, "", 0, 0
		for _, text := range list {
			role, url, ok := strings.Cut(text, "=")
			if !ok {
				role, url = "", text
			}
			r := jobcall.Reference{Type: "image/png", Size: 3, Role: role,
				Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("abc"))), nil }}
			if strings.HasSuffix(url, ".mp4") {
				r.Type = "video/mp4"
			}
			if url != "inline" {
				r.URL = "https://m.example/" + url
			}
			w.References = append(w.References, r)
		}
	}
}

// TestSubmissions: what is sent, and where; without a path it is unsuitable.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		work       jobcall.Task
		path, body string
	}{
		"pictures": {picture(tier("2K"), func(w *jobcall.Task) { w.Count = 2 }), "images/generations",
			`{"aspect_ratio":"16:9","model":"grok-imagine-image-2.0","n":2,"prompt":"a lighthouse","resolution":"2k","response_format":"url"}`},
		"an edit": {picture(refs("inline"), params(`{"quality":"low"}`)), "images/edits",
			`{"image":{"type":"image_url","url":"data:image/png;base64,YWJj"},"model":"grok-imagine-image-2.0","n":1,` +
				`"prompt":"a lighthouse","quality":"low","resolution":"1k","response_format":"url"}`},
		"an edit of two": {picture(refs("a", "b")), "images/edits",
			`{"images":[{"type":"image_url","url":"https://m.example/a"},{"type":"image_url","url":"https://m.example/b"}],` +
				`"model":"grok-imagine-image-2.0","n":1,"prompt":"a lighthouse","resolution":"1k","response_format":"url"}`},
		"a clip": {clip(params(`{"audio":false}`)), "videos/generations", `{"aspect_ratio":"16:9","duration":5,"generate_audio":false,` +
			`"model":"grok-imagine-video-1.5","prompt":"waves","resolution":"720p"}`},
		"frames": {clip(refs("last_frame=b", "first_frame=a"), tier("1080p")), "videos/generations",
			`{"duration":5,"image":{"url":"https://m.example/a"},"last_frame":{"url":"https://m.example/b"},` +
				`"model":"grok-imagine-video-1.5","prompt":"waves","resolution":"1080p"}`},
		"one picture": {clip(refs("a"), model("grok-imagine-video")), "videos/generations",
			`{"duration":5,"image":{"url":"https://m.example/a"},"model":"grok-imagine-video","prompt":"waves","resolution":"720p"}`},
		"several": {clip(refs("a", "b")), "videos/generations", `{"duration":5,"model":"grok-imagine-video-1.5","prompt":"waves",` +
			`"reference_images":[{"url":"https://m.example/a"},{"url":"https://m.example/b"}],"resolution":"720p"}`},
		"a reference": {clip(refs("reference=a")), "videos/generations", `{"duration":5,"model":"grok-imagine-video-1.5","prompt":"waves",` +
			`"reference_images":[{"url":"https://m.example/a"}],"resolution":"720p"}`},

		"4K":                        {work: picture(tier("4K"))},
		"a ratio":                   {work: picture(func(w *jobcall.Task) { w.Ratio = "21:9" })},
		"four references":           {work: picture(refs("a", "b", "c", "d"))},
		"a clip of a clip":          {work: clip(refs("a.mp4"))},
		"frames beside references":  {work: clip(refs("first_frame=a", "reference=b"))},
		"a last frame alone":        {work: clip(refs("last_frame=a"))},
		"a last frame of the older": {work: clip(refs("first_frame=a", "last_frame=b"), model("grok-imagine-video"))},
		"silence of the older":      {work: clip(model("grok-imagine-video"), params(`{"audio":false}`))},
		"1080p of the older":        {work: clip(model("grok-imagine-video"), tier("1080p"))},
		"1080p with references":     {work: clip(refs("reference=a"), tier("1080p"))},
		"sixteen seconds":           {work: clip(func(w *jobcall.Task) { w.Seconds = 16 })},
		"a seed":                    {work: clip(params(`{"seed":7}`))},
		"audio of others":           {work: clip(params(`{"reference_audios":[{"url":"http://10.0.0.1"}]}`))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewXAI(t)
			_, err := jobcall.Submit(t.Context(), at(t, studio.URL()), tt.work)
			sent := studio.Submissions()
			if tt.path == "" {
				var f *upstream.JobFailure
				if !errors.As(err, &f) || f.Health != upstream.HealthNone || f.Next != upstream.NextLine || len(sent) != 0 {
					t.Errorf("%v, %d submissions", err, len(sent))
				}
				return
			}
			if err != nil || len(sent) != 1 {
				t.Fatalf("%v, %d submissions", err, len(sent))
			}
			if sent[0].Path != "/v1/"+tt.path || string(sent[0].Body) != tt.body || sent[0].Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s\n%s, want %s\n%s", sent[0].Path, sent[0].Body, tt.path, tt.body)
			}
		})
	}
}

// verdict is what a failure decides.
type verdict struct {
	job    fault.Code
	next   upstream.Next
	health upstream.Health
}

// TestVerdicts: errors in their three shapes, and what the review stopped, which
// is billed and not tried again.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	policy := verdict{fault.ContentPolicy, upstream.NextNone, upstream.HealthNone}
	rendering := verdict{fault.RenderFailed, upstream.NextLine, upstream.HealthFail}
	ours := verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential}
	says := func(status int, body string) fakestudio.Behaviour {
		return fakestudio.Behaviour{Status: status, Body: body}
	}
	failed := func(body string) fakestudio.Behaviour { return fakestudio.Behaviour{Failed: body} }
	for _, tt := range []struct {
		how  fakestudio.Behaviour
		want verdict
	}{
		{says(400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***"}`), ours},
		{says(403, `{"error":"Your team has used all available credits"}`), ours},
		{says(429, `{"error":{"message":"You have reached your monthly spending limit.","type":"x"}}`), ours},
		{says(429, `{"error":"Too many requests"}`), verdict{fault.UpstreamError, upstream.NextLater, upstream.HealthCool}},
		{says(403, `{"code":"forbidden","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_X"}`), policy},
		{says(422, `{"error":"duration is invalid"}`), verdict{fault.InvalidRequest, upstream.NextLine, upstream.HealthNone}},
		{failed(`{"http":400,"code":"Client specified an invalid argument","error":"Generated video rejected by content moderation.",` +
			`"usage":{"cost_in_usd_ticks":1}}`), policy},
		{failed(`{"http":400,"code":"Client specified an invalid argument","error":"the image cannot be decoded"}`), rendering},
		{failed(`{"status":"done","video":{"url":"https://v.example/x.mp4","respect_moderation":false}}`), policy},
		{failed(`{"status":"failed","error":{"code":"internal_error","message":"oops"}}`), rendering},
		{failed(`{"status":"expired"}`), verdict{fault.RenderTimeout, upstream.NextLine, upstream.HealthFail}},
		{failed(`{"status":"done"}`), verdict{fault.RenderFailed, upstream.NextSame, upstream.HealthHalf}},
		{failed(`{"http":500,"error":"x"}`), verdict{fault.UpstreamError, upstream.NextPoll, upstream.HealthFail}},
	} {
		studio := fakestudio.NewXAI(t)
		studio.Expect(tt.how)
		a, w := at(t, studio.URL()), clip()
		made, err := jobcall.Submit(t.Context(), a, w)
		for err == nil && !made.Done {
			made, err = a.Poll(t.Context(), w, made.Ticket)
		}
		var f *upstream.JobFailure
		if !errors.As(err, &f) {
			t.Errorf("%+v: %v", tt.how, err)
		} else if got := (verdict{f.Job, f.Next, f.Health}); got != tt.want || f.Lost {
			t.Errorf("%s%s: %+v, %v", tt.how.Body, tt.how.Failed, got, f)
		}
	}
	studio := fakestudio.NewXAI(t)
	studio.Expect(failed("all"))
	_, err := jobcall.Submit(t.Context(), at(t, studio.URL()), picture())
	var f *upstream.JobFailure
	if !errors.As(err, &f) || f.Job != fault.ModerationBlocked || f.Next != upstream.NextNone {
		t.Errorf("withheld pictures: %v", err)
	}
}

// TestClipWithoutAStatus: a clip that is there is done, whether or not it is said.
func TestClipWithoutAStatus(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewXAI(t)
	studio.Expect(fakestudio.Behaviour{Failed: `{"video":{"url":"https://v.example/x.mp4"}}`})
	a, w := at(t, studio.URL()), clip()
	made, err := jobcall.Submit(t.Context(), a, w)
	for err == nil && !made.Done {
		made, err = a.Poll(t.Context(), w, made.Ticket)
	}
	if err != nil || made.Results[0].Ref != "https://v.example/x.mp4" {
		t.Errorf("%+v, %v", made, err)
	}
}
