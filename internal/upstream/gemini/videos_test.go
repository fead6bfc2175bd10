package gemini_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/jobcall"
)

func clip(change ...task.Change) jobcall.Task {
	return task.With(task.Video("gemini-omni-1.1-flash", task.Prompt("a fox runs"), task.Seconds(8)), change...)
}

func veo(w *jobcall.Task) { w.Model = "veo-3.1-generate" }

func TestVideos(t *testing.T) {
	t.Parallel()
	png := task.Reference("image/png", "https://media.example/1", string(fakestudio.Picture(9)))
	mp4 := task.Reference("video/mp4", "https://media.example/1", string(fakestudio.Clip()))
	for name, tt := range map[string]struct {
		work   jobcall.Task
		vertex bool
		sent   string
	}{
		"omni": {work: clip(),
			sent: `{"background":true,"generation_config":{"video_config":{"task":"text_to_video"}},"input":[{"text":"a fox runs","type":"text"}],` +
				`"model":"gemini-omni-1.1-flash",` +
				`"response_format":{"aspect_ratio":"16:9","delivery":"uri","duration":"8s","resolution":"720p","type":"video"}}`},
		"omni from a picture": {work: clip(func(w *jobcall.Task) {
			w.Model, w.Prompt, w.Ratio, w.Tier, w.Seconds = "models/gemini-omni-1.1-flash", "", "", "4K", 0
			w.References = []jobcall.Reference{png}
		}), sent: `{"background":true,"generation_config":{"video_config":{"task":"image_to_video"}},` +
			`"input":[{"data":"…","mime_type":"image/png","type":"image"}],"model":"gemini-omni-1.1-flash",` +
			`"response_format":{"delivery":"uri","resolution":"4k","type":"video"}}`},
		"omni from pictures": {work: clip(func(w *jobcall.Task) {
			w.References = []jobcall.Reference{png, png}
			w.Params = json.RawMessage(`{"seed":7,"safety_settings":[{"category":"X","threshold":"Y"}]}`)
		}), sent: `{"background":true,"generation_config":{"seed":7,"video_config":{"task":"reference_to_video"}},` +
			`"input":[{"text":"a fox runs","type":"text"},` +
			`{"data":"…","mime_type":"image/png","type":"image"},{"data":"…","mime_type":"image/png","type":"image"}],` +
			`"model":"gemini-omni-1.1-flash",` +
			`"response_format":{"aspect_ratio":"16:9","delivery":"uri","duration":"8s","resolution":"720p","type":"video"},` +
			`"safety_settings":[{"category":"X","threshold":"Y"}]}`},
		"omni from a clip": {work: clip(func(w *jobcall.Task) { w.References = []jobcall.Reference{mp4, png} }),
			sent: `{"background":true,"generation_config":{"video_config":{"task":"edit"}},"input":[{"text":"a fox runs","type":"text"},` +
				`{"data":"…","mime_type":"video/mp4","type":"video"},{"data":"…","mime_type":"image/png","type":"image"}],` +
				`"model":"gemini-omni-1.1-flash",` +
				`"response_format":{"aspect_ratio":"16:9","delivery":"uri","duration":"8s","resolution":"720p","type":"video"}}`},
		"omni with a task": {work: clip(func(w *jobcall.Task) {
			w.References, w.Params = []jobcall.Reference{mp4}, json.RawMessage(`{"task":"extend"}`)
		}),
			sent: `{"background":true,"generation_config":{"video_config":{"task":"extend"}},"input":[{"text":"a fox runs","type":"text"},` +
				`{"data":"…","mime_type":"video/mp4","type":"video"}],"model":"gemini-omni-1.1-flash",` +
				`"response_format":{"aspect_ratio":"16:9","delivery":"uri","duration":"8s","resolution":"720p","type":"video"}}`},
		"veo": {work: clip(veo), sent: `{"instances":[{"prompt":"a fox runs"}],` +
			`"parameters":{"aspectRatio":"16:9","durationSeconds":8,"resolution":"720p","sampleCount":1}}`},
		"veo from a picture": {work: clip(veo, func(w *jobcall.Task) {
			w.References, w.Ratio, w.Seconds, w.Prompt = []jobcall.Reference{png}, "", 0, ""
			w.Params = json.RawMessage(`{"negativePrompt":"dogs","generateAudio":false}`)
		}), sent: `{"instances":[{"image":{"bytesBase64Encoded":"…","mimeType":"image/png"},"prompt":""}],` +
			`"parameters":{"generateAudio":false,"negativePrompt":"dogs","resolution":"720p","sampleCount":1}}`},
		"veo from pictures": {work: clip(veo, func(w *jobcall.Task) { w.References, w.Tier = []jobcall.Reference{png, png}, "2160p" }),
			sent: `{"instances":[{"prompt":"a fox runs","referenceImages":[` +
				`{"image":{"bytesBase64Encoded":"…","mimeType":"image/png"},"referenceType":"asset"},` +
				`{"image":{"bytesBase64Encoded":"…","mimeType":"image/png"},"referenceType":"asset"}]}],` +
				`"parameters":{"aspectRatio":"16:9","durationSeconds":8,"resolution":"4k","sampleCount":1}}`},
		"veo on vertex": {work: clip(veo), vertex: true, sent: `{"instances":[{"prompt":"a fox runs"}],` +
			`"parameters":{"aspectRatio":"16:9","durationSeconds":8,"resolution":"720p","sampleCount":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewGemini(t)
			studio.Vertex = tt.vertex
			studio.Expect(fakestudio.Behaviour{Polls: 2, PollStatus: 503, PollStatusTimes: 1})
			a := conformance.Line(t, gemini.Provider, studio.URL(), nil)
			if a.Blocks(tt.work) {
				t.Error("clips block")
			}
			p, err := jobcall.Submit(t.Context(), a, tt.work)
			if err != nil {
				t.Fatal(err)
			}
			got := studio.Submissions()[0]
			if p.Done || !strings.HasSuffix(p.Ticket, got.Ticket) {
				t.Fatalf("%+v", p)
			}
			sent := string(got.Body)
			for _, path := range []string{"input.#.data", "instances.0.image.bytesBase64Encoded",
				"instances.0.referenceImages.#.image.bytesBase64Encoded"} {
				for _, data := range gjson.Get(sent, path).Array() {
					sent = strings.ReplaceAll(sent, data.Str, "…")
				}
			}
			if sent != tt.sent {
				t.Errorf("sent %s\nwant %s", sent, tt.sent)
			}
			// Another node polls.
			a, ticket := conformance.Line(t, gemini.Provider, studio.URL(), nil), p.Ticket
			_, err = a.Poll(t.Context(), tt.work, ticket)
			if m := conformance.JobFailure(t, err); m.Next != upstream.NextPoll {
				t.Errorf("a poll that was answered 503: %+v", m)
			}
			for range 2 {
				if p, err = a.Poll(t.Context(), tt.work, ticket); err != nil || p.Done || p.Ticket != ticket {
					t.Fatalf("%+v, %v", p, err)
				}
			}
			if p, err = a.Poll(t.Context(), tt.work, ticket); err != nil || !p.Done || len(p.Results) != 1 {
				t.Fatalf("%+v, %v", p, err)
			}
			data, _ := conformance.Fetch(t, a, tt.work, p.Results[0])
			if (p.Results[0].Ref == "") != tt.vertex || !bytes.Equal(data, fakestudio.Clip()) {
				t.Error("another clip")
			}
		})
	}
}

func TestVideosUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	a := conformance.Line(t, gemini.Provider, studio.URL(), nil)
	png := task.Reference("image/png", "https://media.example/1", string(fakestudio.Picture(1)))
	mp4 := task.Reference("video/mp4", "https://media.example/1", string(fakestudio.Clip()))
	for name, work := range map[string]jobcall.Task{
		"veo: no prompt":            clip(veo, func(w *jobcall.Task) { w.Prompt = "" }),
		"veo: pictures alone":       clip(veo, func(w *jobcall.Task) { w.Prompt, w.References = "", []jobcall.Reference{png, png} }),
		"veo: four":                 clip(veo, func(w *jobcall.Task) { w.References = slices.Repeat([]jobcall.Reference{png}, 4) }),
		"veo: a clip":               clip(veo, func(w *jobcall.Task) { w.References = []jobcall.Reference{mp4} }),
		"veo: 360p":                 clip(veo, func(w *jobcall.Task) { w.Tier = "360p" }),
		"veo: a field of omni's":    clip(veo, task.Params(`{"task":"edit"}`)),
		"ratio":                     clip(func(w *jobcall.Task) { w.Ratio = "1:1" }),
		"480p":                      clip(func(w *jobcall.Task) { w.Tier = "480p" }),
		"two seconds":               clip(func(w *jobcall.Task) { w.Seconds = 2 }),
		"eleven seconds":            clip(func(w *jobcall.Task) { w.Seconds = 11 }),
		"neither":                   clip(func(w *jobcall.Task) { w.Prompt = "" }),
		"eight references":          clip(func(w *jobcall.Task) { w.References = slices.Repeat([]jobcall.Reference{png}, 8) }),
		"a mask":                    clip(func(w *jobcall.Task) { w.References, w.Mask = []jobcall.Reference{png}, &png }),
		"a large clip":              clip(func(w *jobcall.Task) { w.References = []jobcall.Reference{{Type: "video/mp4", Size: 30 << 20}} }),
		"a field that nobody knows": clip(task.Params(`{"store":false}`)),
	} {
		_, err := jobcall.Submit(t.Context(), a, work)
		if got, want := conformance.OutcomeOf(t, err), field; got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestVideoTroubles tests submissions not accepted.
func TestVideoTroubles(t *testing.T) {
	t.Parallel()
	audio := policy
	audio.Param = "audio"
	for name, tt := range map[string]struct {
		how  fakestudio.Behaviour
		want conformance.Outcome
	}{
		"argument": {fakestudio.Behaviour{Status: 400, Body: googleError(400, "INVALID_ARGUMENT", "1080p needs 8 seconds.")}, field},
		"policy": {fakestudio.Behaviour{Status: 400,
			Body: googleError(400, "INVALID_ARGUMENT", "This prompt contains words that violate our usage guidelines.")}, policy},
		"sound": {fakestudio.Behaviour{Status: 400,
			Body: googleError(400, "INVALID_ARGUMENT", "The audio would violate our guidelines.")}, audio},
		"reference": {fakestudio.Behaviour{Status: 400,
			Body: googleError(400, "INVALID_ARGUMENT", "Unable to process input image.")}, material},
		"safety token":  {fakestudio.Behaviour{Status: 400, Body: googleError(400, "SAFETY", "no")}, policy},
		"another token": {fakestudio.Behaviour{Status: 400, Body: `{"error":{"code":"PROHIBITED_CONTENT","message":"no"}}`}, policy},
		"key": {fakestudio.Behaviour{Status: 400,
			Body: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"x","details":[{"reason":"API_KEY_INVALID"}]}}`}, cred},
		"billing":        {fakestudio.Behaviour{Status: 400, Body: googleError(400, "FAILED_PRECONDITION", "x")}, cred},
		"model":          {fakestudio.Behaviour{Status: 404, Body: googleError(404, "NOT_FOUND", "x")}, noModel},
		"exhausted":      {fakestudio.Behaviour{Status: 429, Body: googleError(429, "RESOURCE_EXHAUSTED", "x")}, busy},
		"overload":       {fakestudio.Behaviour{Status: 503, Body: googleError(503, "UNAVAILABLE", "The model is overloaded.")}, busy},
		"internal":       {fakestudio.Behaviour{Status: 500, Body: googleError(500, "INTERNAL", "x")}, broken},
		"page":           {fakestudio.Behaviour{Status: 502, Body: "<html>"}, broken},
		"lost":           {fakestudio.Behaviour{LoseAnswer: true}, lost},
		"names nothing":  {fakestudio.Behaviour{Status: 200, Body: `{"status":"queued"}`}, lost},
		"a strange name": {fakestudio.Behaviour{Status: 200, Body: `{"name":"models/veo/operations/../../x","id":"../x"}`}, lost},
		"a page of 200":  {fakestudio.Behaviour{Status: 200, Body: `<html>`}, lost},
		"error in 200":   {fakestudio.Behaviour{Status: 200, Body: googleError(429, "RESOURCE_EXHAUSTED", "x")}, busy},
	} {
		for protocol, work := range map[string]jobcall.Task{"omni": clip(), "veo": clip(veo)} {
			t.Run(name+" of "+protocol, func(t *testing.T) {
				t.Parallel()
				studio := fakestudio.NewGemini(t)
				studio.Expect(tt.how)
				_, err := jobcall.Submit(t.Context(), conformance.Line(t, gemini.Provider, studio.URL(), nil), work)
				conformance.CheckOutcome(t, "a submission", err, tt.want)
			})
		}
	}
}

// TestVideoEnds tests accepted tasks without a clip.
func TestVideoEnds(t *testing.T) {
	t.Parallel()
	again, audio := policy, policy
	again.Next = upstream.NextSame
	audio.Next, audio.Param = upstream.NextSame, "audio"
	timeout := conformance.NewOutcome(fault.RenderTimeout, upstream.NextLine, upstream.HealthFail)
	none, unstable := clips.Empty, clips.Gone
	type row struct {
		how  fakestudio.Behaviour
		want conformance.Outcome
	}
	fails := func(failed string) fakestudio.Behaviour { return fakestudio.Behaviour{Failed: failed} }
	veoRows := map[string]row{
		"filtered": {fails(`{"response":{"generateVideoResponse":{"raiMediaFilteredCount":1,` +
			`"raiMediaFilteredReasons":["Sorry. Support codes: 1"]}}}`), again},
		"sound": {fails(`{"response":{"generateVideoResponse":{"raiMediaFilteredCount":1,` +
			`"raiMediaFilteredReasons":["The audio could not be processed."]}}}`), audio},
		"filtered on v": {fails(`{"response":{"raiMediaFilteredCount":1}}`), again},
		"nothing":       {fails(`{"response":{"generateVideoResponse":{}}}`), none},
		"in a bucket":   {fails(`{"response":{"videos":[{"gcsUri":"gs://b/1.mp4"}]}}`), none},
		"no base64":     {fails(`{"response":{"videos":[{"bytesBase64Encoded":"*"}]}}`), none},
		"input refused": {fails(`{"error":{"code":3,"message":"The prompt could not be submitted. It may violate our policies."}}`), policy},
		"argument":      {fails(`{"error":{"code":3,"message":"durationSeconds is out of bound"}}`), field},
		"reference":     {fails(`{"error":{"code":3,"message":"Unable to process input image"}}`), material},
		"deadline":      {fails(`{"error":{"code":4,"message":"x"}}`), timeout},
		"permission":    {fails(`{"error":{"code":7,"message":"x"}}`), cred},
		"exhausted":     {fails(`{"error":{"code":8,"message":"x"}}`), busy},
		"internal":      {fails(`{"error":{"code":13,"message":"x"}}`), rendering},
		"unavailable":   {fails(`{"error":{"code":14,"message":"x"}}`), rendering},
		"empty error":   {fails(`{"error":{}}`), rendering},
		"lost id":       {fakestudio.Behaviour{Lost: true}, unstable},
		"a poll too many": {fakestudio.Behaviour{PollStatus: 429, PollStatusTimes: 9},
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthCool)},
	}
	omniRows := map[string]row{
		"refused in words": {fails(`{"steps":[{"type":"model_output","content":[{"type":"text","text":"I cannot make this."}]}]}`), policy},
		"refused silently": {fails(`{}`), policy},
		"only an input":    {fails(`{"steps":[{"type":"user_input","content":[{"type":"video","uri":"https://x/1"}]}]}`), policy},
		"safety":           {fails(`{"status":"failed","error":{"code":"PROHIBITED_CONTENT","message":"no"}}`), policy},
		"argument":         {fails(`{"status":"failed","errors":[{"code":400,"message":"duration"}]}`), field},
		"policy":           {fails(`{"status":"failed","errors":[{"code":"invalid_argument","message":"violates"}]}`), policy},
		"deadline":         {fails(`{"status":"failed","error":{"code":"deadline_exceeded","message":"x"}}`), timeout},
		"exhausted":        {fails(`{"status":"failed","error":{"code":429,"message":"x"}}`), busy},
		"internal":         {fails(`{"status":"failed","error":{"code":500,"message":"x"}}`), rendering},
		"no reason":        {fails(`{"status":"failed"}`), rendering},
		"cancelled":        {fails(`{"status":"cancelled"}`), rendering},
		"incomplete":       {fails(`{"status":"incomplete"}`), rendering},
		"budget":           {fails(`{"status":"budget_exceeded"}`), rendering},
		"an odd status":    {fails(`{"status":"dreaming"}`), conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthFail)},
		"lost id":          {fakestudio.Behaviour{Lost: true}, unstable},
		"a poll too many": {fakestudio.Behaviour{PollStatus: 500, PollStatusTimes: 9},
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthFail)},
		"a poll with 400": {fakestudio.Behaviour{PollStatus: 400, PollStatusTimes: 9},
			conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, upstream.HealthNone)},
	}
	for protocol, rows := range map[string]map[string]row{"veo": veoRows, "omni": omniRows} {
		for name, tt := range rows {
			t.Run(name+" of "+protocol, func(t *testing.T) {
				t.Parallel()
				work := clip()
				if protocol == "veo" {
					work = clip(veo)
				}
				studio := fakestudio.NewGemini(t)
				studio.Expect(tt.how)
				a := conformance.Line(t, gemini.Provider, studio.URL(), nil)
				p, err := jobcall.Submit(t.Context(), a, work)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					_, err = a.Poll(t.Context(), work, p.Ticket)
				}
				conformance.CheckOutcome(t, "the end", err, tt.want)
			})
		}
	}
}

func TestVideoCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	a := conformance.Line(t, gemini.Provider, studio.URL(), nil)
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
	if err := a.Cancel(t.Context(), clip(veo), "models/veo/operations/1"); err != nil {
		t.Error(err)
	}
}

func FuzzVideos(f *testing.F) {
	for _, seed := range []string{
		`{"name":"models/veo/operations/1","done":true,` +
			`"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"http://x/files/1"}}]}}}`,
		`{"id":"1","status":"completed","steps":[{"type":"model_output","content":[{"type":"video","uri":"http://x/1"}]}]}`,
		`{"done":true,"error":{"code":3,"message":"x"}}`, `{"status":"failed","errors":[1]}`, `[]`, `<`} {
		f.Add([]byte(seed), 200)
	}
	a, answer := conformance.LineScripted(f, gemini.Provider)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		answer(body, 200+(status%400+400)%400)
		for ticket, work := range map[string]jobcall.Task{"v1_1": clip(), "models/veo/operations/1": clip(veo),
			"projects/p/operations/1": clip(veo)} {
			if p, err := jobcall.Submit(t.Context(), a, work); err != nil {
				_ = conformance.JobFailure(t, err).UserMessage()
			} else if p.Ticket == "" || p.Done {
				t.Errorf("%+v", p)
			}
			p, err := a.Poll(t.Context(), work, ticket)
			if err != nil {
				_ = conformance.JobFailure(t, err).UserMessage()
				continue
			}
			if p.Done != (len(p.Results) == 1) || p.Done && p.Results[0].Ref == "" && len(p.Results[0].Data) == 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}
