package kling_test

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
	"tollgate/internal/upstream/kling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "kling-line-credential-0123456789"

// at makes the adapter of a line at an address.
func at(t testing.TB, address string) *kling.Adapter {
	t.Helper()
	transport := exchange.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	a, err := kling.New(upstream.Target{Line: "main", Provider: kling.Provider, BaseURL: address, Key: key}, transport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func clip(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindVideo, Model: "kling-3.0", Prompt: "waves", Count: 1, Tier: "720p", Ratio: "16:9",
		Width: 1280, Height: 720, Seconds: 5, Key: "sub_1"}
	for _, c := range change {
		c(&w)
	}
	return w
}

func picture(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindImage, Model: "kling-v3", Prompt: "a lighthouse", Count: 1, Tier: "1K", Ratio: "16:9",
		Width: 1360, Height: 768, Key: "sub_1"}
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
			kind := "image/png"
			if strings.HasSuffix(url, ".mp4") {
				kind = "video/mp4"
			}
			r := jobcall.Reference{Type: kind, Size: 3, Role: role,
				Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("abc"))), nil }}
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
	const options = `"options":{"external_task_id":"sub_1"},`
	for name, tt := range map[string]struct {
		work       jobcall.Task
		path, body string
	}{
		"text": {clip(), "/text-to-video/kling-3.0", `{"contents":[{"type":"prompt","text":"waves"}],` + options +
			`"settings":{"aspect_ratio":"16:9","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"frames": {clip(refs("last_frame=b", "first_frame=a"), params(`{"audio":true}`)), "/image-to-video/kling-3.0",
			`{"contents":[{"type":"prompt","text":"waves"},{"type":"last_frame","url":"https://m.example/b"},` +
				`{"type":"first_frame","url":"https://m.example/a"}],` + options +
				`"settings":{"audio":"native","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"inline": {clip(refs("inline"), model("kling-3.0-turbo"), params(`{"audio":true}`)), "/image-to-video/kling-3.0-turbo",
			`{"contents":[{"type":"prompt","text":"waves"},{"type":"first_frame","url":"data:image/png;base64,YWJj"}],` + options +
				`"settings":{"duration":5,"resolution":"720p"}}`},
		"references": {clip(refs("reference=a", "reference=b"), model("kling-3.0-omni"), params(`{"audio":false}`)),
			"/omni-video/kling-3.0-omni", `{"contents":[{"type":"prompt","text":"waves"},` +
				`{"type":"refer_image","url":"https://m.example/a","id":"image_1"},` +
				`{"type":"refer_image","url":"https://m.example/b","id":"image_2"}],` + options +
				`"settings":{"aspect_ratio":"16:9","audio":"off","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"a video": {clip(refs("a.mp4"), model("kling-o1")), "/omni-video/kling-o1", `{"contents":[{"type":"prompt","text":"waves"},` +
			`{"type":"feature_video","url":"https://m.example/a.mp4"}],` + options +
			`"settings":{"duration":5,"multi_shot":true,"resolution":"720p"}}`},
		"the newest with references": {clip(refs("reference=a"), model("kling-4.0")), "/omni-video/kling-4.0",
			`{"contents":[{"type":"prompt","text":"waves"},{"type":"refer_image","url":"https://m.example/a","id":"image_1"}],` + options +
				`"settings":{"aspect_ratio":"16:9","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"pictures": {picture(params(`{"negative_prompt":"fog"}`)), "/v1/images/generations",
			`{"aspect_ratio":"16:9","external_task_id":"sub_1","model_name":"kling-v3","n":1,"negative_prompt":"fog",` +
				`"prompt":"a lighthouse","resolution":"1k"}`},
		"from a picture": {picture(refs("inline")), "/v1/images/generations", `{"external_task_id":"sub_1","image":"YWJj",` +
			`"model_name":"kling-v3","n":1,"prompt":"a lighthouse","resolution":"1k"}`},
		"from pictures": {picture(refs("inline", "b"), tier("4K"), model("kling-v3-omni")), "/v1/images/omni-image",
			`{"external_task_id":"sub_1","image_list":[{"image":"YWJj"},{"image":"https://m.example/b"}],` +
				`"model_name":"kling-v3-omni","n":1,"prompt":"a lighthouse","resolution":"4k"}`},

		"a last frame alone":         {work: clip(refs("last_frame=a"))},
		"a last frame of turbo":      {work: clip(refs("first_frame=a", "last_frame=b"), model("kling-3.0-turbo"))},
		"two pictures of turbo":      {work: clip(refs("a", "b"), model("kling-3.0-turbo"))},
		"references without omni":    {work: clip(refs("reference=a"))},
		"three pictures":             {work: clip(refs("a", "b", "c"))},
		"a ratio beside a frame":     {work: clip(refs("a"), func(w *jobcall.Task) { w.Ratio = "16:9" })},
		"silence of the newest":      {work: clip(model("kling-4.0"), params(`{"audio":false}`))},
		"sound of 2.5":               {work: clip(model("kling-2.5-turbo"), params(`{"audio":true}`))},
		"sound of o1":                {work: clip(model("kling-o1"), params(`{"audio":true}`))},
		"sound of 2.6 in 720p":       {work: clip(model("kling-2.6"), params(`{"audio":true}`))},
		"sound beside a video":       {work: clip(refs("a.mp4"), model("kling-3.0-omni"), params(`{"audio":true}`))},
		"a seed":                     {work: clip(params(`{"seed":7}`))},
		"480p":                       {work: clip(tier("480p"))},
		"several shots of turbo":     {work: clip(model("kling-3.0-turbo"), params(`{"multi_shot":true}`))},
		"4K without omni":            {work: picture(tier("4K"))},
		"what to avoid, and a model": {work: picture(refs("a"), params(`{"negative_prompt":"fog"}`))},
		"ten pictures":               {work: picture(func(w *jobcall.Task) { w.Count = 10 })},
		"a large picture":            {work: picture(refs("a"), func(w *jobcall.Task) { w.References[0].Size = 11 << 20 })},
		"a strange model":            {work: clip(model("../tasks"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewKling(t)
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
			if sent[0].Path != tt.path || string(sent[0].Body) != tt.body || sent[0].Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s\n%s, want %s\n%s", sent[0].Path, sent[0].Body, tt.path, tt.body)
			}
		})
	}
}

// TestLostAnswers: a task whose answer was lost is found by its key, and a
// repetition of its submission is that task.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, w := range []jobcall.Task{clip(), picture()} {
		studio := fakestudio.NewKling(t)
		a := at(t, studio.URL())
		if ticket, err := a.Find(t.Context(), w); ticket != "" || err != nil {
			t.Errorf("%s: %q, %v before anything was sent", w.Kind, ticket, err)
		}
		studio.Expect(fakestudio.Behaviour{LoseAnswer: true})
		_, err := jobcall.Submit(t.Context(), a, w)
		var f *upstream.JobFailure
		if !errors.As(err, &f) || !f.Lost {
			t.Errorf("%s: %v", w.Kind, err)
		}
		found, err := a.Find(t.Context(), w)
		if found == "" || err != nil {
			t.Errorf("%s: %q, %v", w.Kind, found, err)
		}
		again, err := jobcall.Submit(t.Context(), a, w)
		if err != nil || again.Ticket != found || studio.Accepted() != 1 {
			t.Errorf("%s: %+v, %v; %d were accepted", w.Kind, again, err, studio.Accepted())
		}
	}
}

// TestCodes is Kling's table of codes.
func TestCodes(t *testing.T) {
	t.Parallel()
	type verdict struct {
		job    fault.Code
		next   upstream.Next
		health upstream.Health
	}
	ours := verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential}
	busy := verdict{fault.UpstreamError, upstream.NextLater, upstream.HealthCool}
	broken := verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail}
	policy := verdict{fault.ContentPolicy, upstream.NextNone, upstream.HealthNone}
	parameter := verdict{fault.InvalidRequest, upstream.NextLine, upstream.HealthNone}
	for _, tt := range []struct {
		how  fakestudio.Behaviour
		want verdict
	}{
		{says(401, 1002, "token invalid"), ours},
		{says(429, 1102, "resource pack used up"), ours},
		{says(403, 1103, "not authorised"), ours},
		{says(429, 1304, "not on the list of addresses"), ours},
		{says(429, 1302, "rate"), busy},
		{says(429, 1303, "parallel task over limit"), busy},
		{says(400, 1300, "platform policy"), policy},
		{says(400, 1301, "content security"), policy},
		{says(400, 1201, "duration is invalid"), parameter},
		{says(404, 1203, "no such model"), verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthModel}},
		{says(500, 5000, "internal"), broken},
		{says(504, 5002, "timed out"), broken},
		{fakestudio.Behaviour{Failed: "Failure to pass the risk control system"}, policy},
		{fakestudio.Behaviour{Failed: "internal error"}, verdict{fault.RenderFailed, upstream.NextLine, upstream.HealthFail}},
	} {
		studio := fakestudio.NewKling(t)
		studio.Expect(tt.how)
		a, w := at(t, studio.URL()), clip()
		made, err := jobcall.Submit(t.Context(), a, w)
		for err == nil && !made.Done {
			made, err = a.Poll(t.Context(), w, made.Ticket)
		}
		var f *upstream.JobFailure
		if !errors.As(err, &f) {
			t.Errorf("%+v: %v", tt.how, err)
			continue
		}
		if got := (verdict{f.Job, f.Next, f.Health}); got != tt.want || f.Lost != strings.Contains(tt.how.Body, "5002") {
			t.Errorf("%s%s: %+v, lost %t", tt.how.Body, tt.how.Failed, got, f.Lost)
		}
	}
}

func says(status, code int, message string) fakestudio.Behaviour {
	body, _ := json.Marshal(map[string]any{"code": code, "message": message, "request_id": "r"})
	return fakestudio.Behaviour{Status: status, Body: string(body)}
}
