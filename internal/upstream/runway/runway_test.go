package runway_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/runway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func clip(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("gen4.5"), change...)
}

func picture(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("gen4_image"), change...)
}

// TestSubmissions tests the path and body of each submission. A case without a path must be
// unsuitable.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	conformance.CheckSubmissions(t, runway.Provider, nil, map[string]conformance.Submission{
		"a text": {clip(task.Params(`{"seed":7}`)), "/v1/text_to_video",
			`{"duration":5,"model":"gen4.5","promptText":"waves","ratio":"1280:720","seed":7}`},
		"a first frame": {clip(task.Refs("inline"), task.Ratio("4:3"), task.Prompt("")), "/v1/image_to_video",
			`{"duration":5,"model":"gen4.5","promptImage":[{"position":"first","uri":"data:image/png;base64,YWJj"}],"ratio":"1104:832"}`},
		"frames of Veo": {clip(task.Refs("last_frame=b", "first_frame=a"), task.Model("veo3.1"), task.Tier("1080p"),
			task.Params(`{"audio":false,"negative_prompt":"fog"}`)), "/v1/image_to_video",
			`{"audio":false,"duration":5,"model":"veo3.1","negativePrompt":"fog",` +
				`"promptImage":[{"position":"first","uri":"https://media.example/a"},{"position":"last","uri":"https://media.example/b"}],` +
				`"promptText":"waves","ratio":"1920:1080"}`},
		"Kling": {clip(task.Model("klingO3_4k"), task.Tier("4K"), task.Ratio("1:1")), "/v1/text_to_video",
			`{"duration":5,"model":"klingO3_4k","promptText":"waves","ratio":"2880:2880"}`},
		"the shape of a frame": {clip(task.Refs("a"), task.Model("kling_4"), task.Tier("1080p")), "/v1/image_to_video",
			`{"duration":5,"model":"kling_4","promptImage":[{"position":"first","uri":"https://media.example/a"}],` +
				`"promptText":"waves","ratio":"auto_1080p"}`},
		"another model": {clip(task.Model("seedance2")), "/v1/text_to_video",
			`{"duration":5,"model":"seedance2","promptText":"waves","ratio":"1280:720"}`},
		"what it shows": {clip(task.Refs("reference=a", "reference=inline", "reference=c.mp4"), task.Model("seedance2"), task.Tier("4K"),
			task.Ratio("21:9"), task.Params(`{"audio":false,"seed":7}`)), "/v1/text_to_video", `{"audio":false,"duration":5,"model":"seedance2",` +
			`"promptText":"waves","ratio":"3840:1646","referenceVideos":[{"type":"video","uri":"https://media.example/c.mp4"}],` +
			`"references":[{"uri":"https://media.example/a"},{"uri":"data:image/png;base64,YWJj"}],"seed":7}`},
		"three pictures without roles": {clip(task.Refs("a", "b", "c"), task.Model("wan3"), task.Tier("480p")), "/v1/text_to_video",
			`{"duration":5,"model":"wan3","promptText":"waves","ratio":"832:480",` +
				`"references":[{"uri":"https://media.example/a"},{"uri":"https://media.example/b"},{"uri":"https://media.example/c"}]}`},
		"one picture to show": {clip(task.Refs("reference=a"), task.Model("seedance2_5"), task.Tier("480p"), task.Ratio("9:16")),
			"/v1/text_to_video",
			`{"duration":5,"model":"seedance2_5","promptText":"waves","ratio":"480:854","references":[{"uri":"https://media.example/a"}]}`},
		"frames of Wan": {clip(task.Refs("a", "b"), task.Model("wan3")), "/v1/image_to_video", `{"duration":5,"model":"wan3",` +
			`"promptImage":[{"position":"first","uri":"https://media.example/a"},{"position":"last","uri":"https://media.example/b"}],` +
			`"promptText":"waves","ratio":"auto_720p"}`},
		"a video, changed": {clip(task.Refs("reference=a.mp4", "first_frame=b"), task.Model("aleph2"), task.Seconds(0), task.Ratio("21:9"),
			task.Params(`{"seed":7}`)), "/v1/video_to_video", `{"keyframes":[{"seconds":0,"uri":"https://media.example/b"}],"model":"aleph2",` +
			`"promptText":"waves","seed":7,"targetAspectRatio":"21:9","videoUri":"https://media.example/a.mp4"}`},
		"a seed of Veo": {clip(task.Model("veo3.1"), task.Params(`{"seed":1}`)), "/v1/text_to_video",
			`{"duration":5,"model":"veo3.1","promptText":"waves","ratio":"1280:720","seed":1}`},
		"a picture": {picture(task.Tier("1080p")), "/v1/text_to_image", `{"model":"gen4_image","promptText":"a lighthouse","ratio":"1920:1080"}`},
		"a picture of pictures": {picture(task.Refs("a", "inline"), task.Model("gen4_image_turbo")), "/v1/text_to_image",
			`{"model":"gen4_image_turbo","promptText":"a lighthouse","ratio":"1024:1024",` +
				`"referenceImages":[{"tag":"image_1","uri":"https://media.example/a"},{"tag":"image_2","uri":"data:image/png;base64,YWJj"}]}`},

		"two pictures":                {Task: picture(task.Count(2))},
		"4K":                          {Task: picture(task.Tier("4K"))},
		"turbo without a picture":     {Task: picture(task.Model("gen4_image_turbo"))},
		"a square text of gen4.5":     {Task: clip(task.Ratio("1:1"))},
		"1080p of gen4.5":             {Task: clip(task.Tier("1080p"))},
		"turbo without a frame":       {Task: clip(task.Model("gen4_turbo"))},
		"a last frame of gen4.5":      {Task: clip(task.Refs("first_frame=a", "last_frame=b"))},
		"two pictures of gen4.5":      {Task: clip(task.Refs("a", "b"))},
		"a last frame alone":          {Task: clip(task.Refs("last_frame=b"), task.Model("veo3.1"))},
		"a reference":                 {Task: clip(task.Refs("reference=b"), task.Model("veo3.1"))},
		"a video":                     {Task: clip(task.Refs("a.mp4"))},
		"sound of gen4.5":             {Task: clip(task.Params(`{"audio":true}`))},
		"a seed of Wan":               {Task: clip(task.Model("wan3"), task.Params(`{"seed":1}`))},
		"frames beside references":    {Task: clip(task.Refs("first_frame=a", "reference=b"), task.Model("seedance2"))},
		"ten references of seedance2": {Task: clip(task.Refs("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), task.Model("seedance2"))},
		"four videos":                 {Task: clip(task.Refs("a.mp4", "b.mp4", "c.mp4", "d.mp4"), task.Model("seedance2"))},
		"1080p of the mini":           {Task: clip(task.Model("seedance2_mini"), task.Tier("1080p"))},
		"a ratio beside Wan's frame":  {Task: clip(task.Refs("a"), task.Model("wan3"), task.Ratio("16:9"))},
		"a video changed for seconds": {Task: clip(task.Refs("a.mp4"), task.Model("aleph2"))},
		"no video to change":          {Task: clip(task.Model("aleph2"), task.NoRatio(), task.Seconds(0))},
		"two videos to change":        {Task: clip(task.Refs("a.mp4", "b.mp4"), task.Model("aleph2"), task.Seconds(0))},
		"a video changed, a last frame": {Task: clip(task.Refs("reference=a.mp4", "last_frame=b"), task.Model("aleph2"),
			task.Seconds(0))},
		"a video changed without words": {Task: clip(task.Refs("a.mp4"), task.Model("aleph2"), task.Seconds(0), task.Prompt(""))},
		"a video changed, a paid tier":  {Task: clip(task.Refs("a.mp4"), task.Model("aleph2"), task.Seconds(0), task.LargerTier("1080p"))},
		"a video changed, with sound": {Task: clip(task.Refs("a.mp4"), task.Model("aleph2"), task.Seconds(0),
			task.Params(`{"audio":true}`))},
		"a large video": {Task: clip(task.Refs("inline.mp4"), task.Model("seedance2"),
			func(job *jobcall.Task) { job.References[0].Size = 4 << 20 })},
		"a ratio beside a frame":      {Task: clip(task.Refs("a"), task.Model("kling_4"), task.Ratio("16:9"))},
		"pixels that it has not":      {Task: clip(func(job *jobcall.Task) { job.Exact, job.Width = true, 1282 })},
		"a picture beyond what it is": {Task: clip(task.Refs("inline"), func(job *jobcall.Task) { job.References[0].Size = 4 << 20 })},
	})
}

// TestOutcomes tests the outcome for each of Runway's failures.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindVideo)
	again, sound := v.Failed.WithNext(upstream.NextSame), v.Flagged
	sound.Param = "audio"
	failed := func(code string) fakestudio.Behaviour {
		return fakestudio.Failure(`{"failureCode":"` + code + `","failure":"m"}`)
	}
	conformance.CheckFailures(t, runway.Provider, clip(), []conformance.Case{
		{failed("SAFETY.INPUT.TEXT"), v.Flagged},
		{failed("SAFETY.INPUT.IMAGE"), v.Flagged},
		{failed("SAFETY.OUTPUT.VIDEO"), v.Flagged},
		{failed("SAFETY.OUTPUT.AUDIO"), sound},
		{failed("INPUT_PREPROCESSING.SAFETY.TEXT"), v.Flagged},
		{failed("THIRD_PARTY.SAFETY"), v.Flagged},
		{failed("ASSET.INVALID"), v.Material},
		{failed("INTERNAL.BAD_OUTPUT.CODE01"), again},
		{failed("INTERNAL"), again},
		{failed("INPUT_PREPROCESSING.INTERNAL"), again},
		{failed("THIRD_PARTY.UNAVAILABLE"), again},
		{fakestudio.Failure(`{}`), again},
		{fakestudio.Failure(`{"status":"CANCELLED"}`), v.Failed},
		{fakestudio.Refusal(400, `{"error":"You do not have enough credits to run this task."}`),
			v.Account},
		{fakestudio.Refusal(400, `{"error":"Validation of body failed","issues":[]}`),
			v.Refused},
		{fakestudio.Refusal(429, `{"error":"You have reached the daily limit of generations"}`),
			v.Busy},
	})
}
