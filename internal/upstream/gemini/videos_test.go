package gemini_test

import (
	"bytes"
	"slices"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/jobcall"
)

func clip(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("gemini-omni-1.1-flash", task.Prompt("a fox runs"), task.Seconds(8)), change...)
}

func veo(task *jobcall.Task) { task.Model = "veo-3.1-generate" }

// TestVideos tests the path and body of each submission.
func TestVideos(t *testing.T) {
	t.Parallel()
	const (
		interactions, operations = "/v1beta/interactions", "/v1beta/models/veo-3.1-generate:predictLongRunning"

		text    = `{"text":"a fox runs","type":"text"}`
		image   = `{"data":"YWJj","mime_type":"image/png","type":"image"}`
		video   = `{"data":"YWJj","mime_type":"video/mp4","type":"video"}`
		asset   = `{"image":{"bytesBase64Encoded":"YWJj","mimeType":"image/png"},"referenceType":"asset"}`
		seconds = `"duration":"8s",`
	)
	omni := func(config, input, format, more string) string {
		return `{"background":true,"generation_config":{` + config + `},"input":[` + input + `],"model":"gemini-omni-1.1-flash",` +
			`"response_format":{` + format + `,"type":"video"}` + more + `}`
	}
	doing := func(task string) string { return `"video_config":{"task":"` + task + `"}` }
	const hd, wide = `"delivery":"uri",` + seconds + `"resolution":"720p"`, `"aspect_ratio":"16:9",`
	large := jobcall.Reference{Type: "video/mp4", Size: 30 << 20}
	conformance.CheckSubmissions(t, gemini.Provider, nil, map[string]conformance.Submission{
		"omni": {clip(), interactions, omni(doing("text_to_video"), text, wide+hd, "")},
		"omni from a picture": {clip(task.Model("models/gemini-omni-1.1-flash"), task.Prompt(""), task.Refs("a"),
			task.Tier("4K"), task.Seconds(0)),
			interactions, omni(doing("image_to_video"), image, `"delivery":"uri","resolution":"4k"`, "")},
		"omni from pictures": {clip(task.Refs("a", "b"), task.Params(`{"seed":7,"safety_settings":[{"category":"X","threshold":"Y"}]}`)),
			interactions, omni(`"seed":7,`+doing("reference_to_video"), text+","+image+","+image, hd,
				`,"safety_settings":[{"category":"X","threshold":"Y"}]`)},
		"omni from a clip": {clip(task.Refs("a.mp4", "b"), task.Ratio("16:9")), interactions,
			omni(doing("edit"), text+","+video+","+image, wide+hd, "")},
		"omni with a task": {clip(task.Refs("a.mp4"), task.Params(`{"task":"extend"}`)), interactions,
			omni(doing("extend"), text+","+video, hd, "")},

		"veo": {clip(veo), operations, `{"instances":[{"prompt":"a fox runs"}],` +
			`"parameters":{"aspectRatio":"16:9","durationSeconds":8,"resolution":"720p","sampleCount":1}}`},
		"veo from a picture": {clip(veo, task.Refs("a"), task.Seconds(0), task.Prompt(""),
			task.Params(`{"negativePrompt":"dogs","generateAudio":false}`)), operations,
			`{"instances":[{"image":{"bytesBase64Encoded":"YWJj","mimeType":"image/png"},"prompt":""}],` +
				`"parameters":{"generateAudio":false,"negativePrompt":"dogs","resolution":"720p","sampleCount":1}}`},
		"veo from pictures": {clip(veo, task.Refs("a", "b"), task.Ratio("16:9"), task.Tier("2160p")), operations,
			`{"instances":[{"prompt":"a fox runs","referenceImages":[` + asset + `,` + asset + `]}],` +
				`"parameters":{"aspectRatio":"16:9","durationSeconds":8,"resolution":"4k","sampleCount":1}}`},
	})
	conformance.CheckUnsuitable(t, gemini.Provider, map[string]jobcall.Task{
		"ratio":                     clip(task.Ratio("1:1")),
		"480p":                      clip(task.Tier("480p")),
		"two seconds":               clip(task.Seconds(2)),
		"eleven seconds":            clip(task.Seconds(11)),
		"neither":                   clip(task.Prompt("")),
		"eight references":          clip(task.Refs(slices.Repeat([]string{"a"}, 8)...)),
		"a mask":                    clip(task.Refs("a"), task.Mask(task.ParseReference("b"))),
		"a large clip":              clip(task.References(large)),
		"a field that nobody knows": clip(task.Params(`{"store":false}`)),
		"veo: no prompt":            clip(veo, task.Prompt("")),
		"veo: pictures alone":       clip(veo, task.Prompt(""), task.Refs("a", "b")),
		"veo: four":                 clip(veo, task.Refs("a", "b", "c", "d")),
		"veo: a clip":               clip(veo, task.Refs("a.mp4")),
		"veo: 360p":                 clip(veo, task.Tier("360p")),
		"veo: a field of omni's":    clip(veo, task.Params(`{"task":"edit"}`)),
	})
}

// TestInlineClip tests operations in the format of Vertex AI: the clip is in the response to a poll.
func TestInlineClip(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	studio.Vertex = true
	p, err := conformance.SubmitAndPoll(t, conformance.Line(t, gemini.Provider, studio.URL(), nil), clip(veo))
	if err != nil || len(p.Results) != 1 || p.Results[0].Ref != "" || !bytes.Equal(p.Results[0].Data, fakestudio.Clip()) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestVideoTroubles tests submissions that are not accepted.
func TestVideoTroubles(t *testing.T) {
	t.Parallel()
	audio := policy
	audio.Param = "audio"
	argument := func(message string) fakestudio.Behaviour {
		return fakestudio.Refusal(400, googleError(400, "INVALID_ARGUMENT", message))
	}
	cases := map[string]conformance.Case{
		"argument":       {argument("1080p needs 8 seconds."), field},
		"policy":         {argument("This prompt contains words that violate our usage guidelines."), policy},
		"sound":          {argument("The audio would violate our guidelines."), audio},
		"reference":      {argument("Unable to process input image."), material},
		"safety token":   {fakestudio.Refusal(400, googleError(400, "SAFETY", "no")), policy},
		"another token":  {fakestudio.Refusal(400, `{"error":{"code":"PROHIBITED_CONTENT","message":"no"}}`), policy},
		"key":            {fakestudio.Refusal(400, badKey), cred},
		"billing":        {fakestudio.Refusal(400, googleError(400, "FAILED_PRECONDITION", "x")), cred},
		"model":          {fakestudio.Refusal(404, googleError(404, "NOT_FOUND", "x")), noModel},
		"exhausted":      {fakestudio.Refusal(429, googleError(429, "RESOURCE_EXHAUSTED", "x")), busy},
		"overload":       {fakestudio.Refusal(503, googleError(503, "UNAVAILABLE", "The model is overloaded.")), busy},
		"internal":       {fakestudio.Refusal(500, googleError(500, "INTERNAL", "x")), broken},
		"names nothing":  {fakestudio.Refusal(200, `{"status":"queued"}`), lost},
		"a strange name": {fakestudio.Refusal(200, `{"name":"models/veo/operations/../../x","id":"../x"}`), lost},
		"a page of 200":  {fakestudio.Refusal(200, `<html>`), lost},
		"error in 200":   {fakestudio.Refusal(200, googleError(429, "RESOURCE_EXHAUSTED", "x")), busy},
	}
	t.Run("omni", func(t *testing.T) { conformance.CheckOutcomes(t, gemini.Provider, clip(), cases) })
	t.Run("veo", func(t *testing.T) { conformance.CheckOutcomes(t, gemini.Provider, clip(veo), cases) })
}

// TestVideoEnds tests accepted tasks without a clip.
func TestVideoEnds(t *testing.T) {
	t.Parallel()
	again, audio := policy, policy
	again.Next = upstream.NextSame
	audio.Next, audio.Param = upstream.NextSame, "audio"
	timeout := conformance.NewOutcome(fault.RenderTimeout, upstream.NextLine, upstream.HealthFail)
	none, unstable := clips.Empty, clips.Gone
	fails := fakestudio.Failure
	conformance.CheckOutcomes(t, gemini.Provider, clip(veo), map[string]conformance.Case{
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
	})
	conformance.CheckOutcomes(t, gemini.Provider, clip(), map[string]conformance.Case{
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
	})
}

func TestVideoCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewGemini(t)
	a := conformance.Line(t, gemini.Provider, studio.URL(), nil)
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
	a, answer := conformance.LineWithScript(f, gemini.Provider)
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
