package runway_test

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
	"tollgate/internal/upstream/runway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "runway-line-credential-0123456789"

// at makes the adapter of a line at an address.
func at(t testing.TB, address string) *runway.Adapter {
	t.Helper()
	transport := exchange.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	a, err := runway.New(upstream.Target{Line: "main", Provider: runway.Provider, BaseURL: address, Key: key}, transport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func clip(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindVideo, Model: "gen4.5", Prompt: "waves", Count: 1, Tier: "720p", Ratio: "16:9",
		Width: 1280, Height: 720, Seconds: 5}
	for _, c := range change {
		c(&w)
	}
	return w
}

func picture(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindImage, Model: "gen4_image", Prompt: "a lighthouse", Count: 1, Tier: "1K", Ratio: "16:9",
		Width: 1360, Height: 768}
	for _, c := range change {
		c(&w)
	}
	return w
}

func model(id string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Model = id } }

func ratio(name string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Ratio = name } }

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
		"a text": {clip(params(`{"seed":7}`)), "text_to_video",
			`{"duration":5,"model":"gen4.5","promptText":"waves","ratio":"1280:720","seed":7}`},
		"a first frame": {clip(refs("inline"), ratio("4:3"), func(w *jobcall.Task) { w.Prompt = "" }), "image_to_video",
			`{"duration":5,"model":"gen4.5","promptImage":[{"position":"first","uri":"data:image/png;base64,YWJj"}],"ratio":"1104:832"}`},
		"frames of Veo": {clip(refs("last_frame=b", "first_frame=a"), model("veo3.1"), tier("1080p"),
			params(`{"audio":false,"negative_prompt":"fog"}`)), "image_to_video",
			`{"audio":false,"duration":5,"model":"veo3.1","negativePrompt":"fog",` +
				`"promptImage":[{"position":"first","uri":"https://m.example/a"},{"position":"last","uri":"https://m.example/b"}],` +
				`"promptText":"waves","ratio":"1920:1080"}`},
		"Kling": {clip(model("klingO3_4k"), tier("4K"), ratio("1:1")), "text_to_video",
			`{"duration":5,"model":"klingO3_4k","promptText":"waves","ratio":"2880:2880"}`},
		"the shape of a frame": {clip(refs("a"), model("kling_4"), tier("1080p")), "image_to_video",
			`{"duration":5,"model":"kling_4","promptImage":[{"position":"first","uri":"https://m.example/a"}],` +
				`"promptText":"waves","ratio":"auto_1080p"}`},
		"another model": {clip(model("seedance2")), "text_to_video",
			`{"duration":5,"model":"seedance2","promptText":"waves","ratio":"1280:720"}`},
		"a picture": {picture(tier("1080p")), "text_to_image", `{"model":"gen4_image","promptText":"a lighthouse","ratio":"1920:1080"}`},
		"a picture of pictures": {picture(refs("a", "inline"), model("gen4_image_turbo")), "text_to_image",
			`{"model":"gen4_image_turbo","promptText":"a lighthouse","ratio":"1024:1024",` +
				`"referenceImages":[{"tag":"image_1","uri":"https://m.example/a"},{"tag":"image_2","uri":"data:image/png;base64,YWJj"}]}`},

		"two pictures":                {work: picture(func(w *jobcall.Task) { w.Count = 2 })},
		"4K":                          {work: picture(tier("4K"))},
		"turbo without a picture":     {work: picture(model("gen4_image_turbo"))},
		"a square text of gen4.5":     {work: clip(ratio("1:1"))},
		"1080p of gen4.5":             {work: clip(tier("1080p"))},
		"turbo without a frame":       {work: clip(model("gen4_turbo"))},
		"a last frame of gen4.5":      {work: clip(refs("first_frame=a", "last_frame=b"))},
		"two pictures of gen4.5":      {work: clip(refs("a", "b"))},
		"a last frame alone":          {work: clip(refs("last_frame=b"), model("veo3.1"))},
		"a reference":                 {work: clip(refs("reference=b"), model("veo3.1"))},
		"a video":                     {work: clip(refs("a.mp4"))},
		"sound of gen4.5":             {work: clip(params(`{"audio":true}`))},
		"a seed of Veo":               {work: clip(model("veo3.1"), params(`{"seed":1}`))},
		"a ratio beside a frame":      {work: clip(refs("a"), model("kling_4"), ratio("16:9"))},
		"pixels that it has not":      {work: clip(func(w *jobcall.Task) { w.Exact, w.Width = true, 1282 })},
		"a picture beyond what it is": {work: clip(refs("inline"), func(w *jobcall.Task) { w.References[0].Size = 4 << 20 })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewRunway(t)
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
	param  string
}

// TestVerdicts is Runway's table of failures.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	policy := verdict{fault.ContentPolicy, upstream.NextNone, upstream.HealthNone, ""}
	again := verdict{fault.RenderFailed, upstream.NextSame, upstream.HealthFail, ""}
	failed := func(code string) fakestudio.Behaviour {
		return fakestudio.Behaviour{Failed: `{"failureCode":"` + code + `","failure":"m"}`}
	}
	for _, tt := range []struct {
		how  fakestudio.Behaviour
		want verdict
	}{
		{failed("SAFETY.INPUT.TEXT"), policy},
		{failed("SAFETY.INPUT.IMAGE"), policy},
		{failed("SAFETY.OUTPUT.VIDEO"), policy},
		{failed("SAFETY.OUTPUT.AUDIO"), verdict{fault.ContentPolicy, upstream.NextNone, upstream.HealthNone, "audio"}},
		{failed("INPUT_PREPROCESSING.SAFETY.TEXT"), policy},
		{failed("THIRD_PARTY.SAFETY"), policy},
		{failed("ASSET.INVALID"), verdict{fault.InvalidMaterial, upstream.NextLine, upstream.HealthNone, ""}},
		{failed("INTERNAL.BAD_OUTPUT.CODE01"), again},
		{failed("INTERNAL"), again},
		{failed("INPUT_PREPROCESSING.INTERNAL"), again},
		{failed("THIRD_PARTY.UNAVAILABLE"), again},
		{fakestudio.Behaviour{Failed: `{}`}, again},
		{fakestudio.Behaviour{Failed: `{"status":"CANCELLED"}`}, verdict{fault.RenderFailed, upstream.NextLine, upstream.HealthFail, ""}},
		{fakestudio.Behaviour{Status: 400, Body: `{"error":"You do not have enough credits to run this task."}`},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential, ""}},
		{fakestudio.Behaviour{Status: 400, Body: `{"error":"Validation of body failed","issues":[]}`},
			verdict{fault.InvalidRequest, upstream.NextLine, upstream.HealthNone, ""}},
		{fakestudio.Behaviour{Status: 429, Body: `{"error":"You have reached the daily limit of generations"}`},
			verdict{fault.UpstreamError, upstream.NextLater, upstream.HealthCool, ""}},
	} {
		studio := fakestudio.NewRunway(t)
		studio.Expect(tt.how)
		a, w := at(t, studio.URL()), clip()
		made, err := jobcall.Submit(t.Context(), a, w)
		for err == nil && !made.Done {
			made, err = a.Poll(t.Context(), w, made.Ticket)
		}
		var f *upstream.JobFailure
		if !errors.As(err, &f) {
			t.Errorf("%+v: %v", tt.how, err)
		} else if got := (verdict{f.Job, f.Next, f.Health, f.Param}); got != tt.want || f.Lost {
			t.Errorf("%s%s: %+v, %v", tt.how.Body, tt.how.Failed, got, f)
		}
	}
}
