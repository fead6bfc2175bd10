package kling_test

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/kling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func clip(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("kling-3.0"), change...)
}

func picture(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("kling-v3"), change...)
}

// TestSubmissions tests the path and body of each submission. A case without a path must be
// unsuitable.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	const options = `"options":{"external_task_id":"sub_1"},`
	conformance.CheckSubmissions(t, kling.Provider, nil, map[string]conformance.Submission{
		"text": {clip(), "/text-to-video/kling-3.0", `{"contents":[{"type":"prompt","text":"waves"}],` + options +
			`"settings":{"aspect_ratio":"16:9","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"frames": {clip(task.Refs("last_frame=b", "first_frame=a"), task.Params(`{"audio":true}`)), "/image-to-video/kling-3.0",
			`{"contents":[{"type":"prompt","text":"waves"},{"type":"last_frame","url":"https://media.example/b"},` +
				`{"type":"first_frame","url":"https://media.example/a"}],` + options +
				`"settings":{"audio":"native","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"inline": {clip(task.Refs("inline"), task.Model("kling-3.0-turbo"), task.Params(`{"audio":true}`)), "/image-to-video/kling-3.0-turbo",
			`{"contents":[{"type":"prompt","text":"waves"},{"type":"first_frame","url":"data:image/png;base64,YWJj"}],` + options +
				`"settings":{"duration":5,"resolution":"720p"}}`},
		"references": {clip(task.Refs("reference=a", "reference=b"), task.Model("kling-3.0-omni"), task.Params(`{"audio":false}`)),
			"/omni-video/kling-3.0-omni", `{"contents":[{"type":"prompt","text":"waves"},` +
				`{"type":"refer_image","url":"https://media.example/a","id":"image_1"},` +
				`{"type":"refer_image","url":"https://media.example/b","id":"image_2"}],` + options +
				`"settings":{"aspect_ratio":"16:9","audio":"off","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"a video": {clip(task.Refs("a.mp4"), task.Model("kling-o1")), "/omni-video/kling-o1", `{"contents":[{"type":"prompt","text":"waves"},` +
			`{"type":"feature_video","url":"https://media.example/a.mp4"}],` + options +
			`"settings":{"duration":5,"multi_shot":true,"resolution":"720p"}}`},
		"the newest with references": {clip(task.Refs("reference=a"), task.Model("kling-4.0")), "/omni-video/kling-4.0",
			`{"contents":[{"type":"prompt","text":"waves"},{"type":"refer_image","url":"https://media.example/a","id":"image_1"}],` + options +
				`"settings":{"aspect_ratio":"16:9","duration":5,"multi_shot":false,"resolution":"720p"}}`},
		"pictures": {picture(task.Params(`{"negative_prompt":"fog"}`)), "/v1/images/generations",
			`{"aspect_ratio":"16:9","external_task_id":"sub_1","model_name":"kling-v3","n":1,"negative_prompt":"fog",` +
				`"prompt":"a lighthouse","resolution":"1k"}`},
		"from a picture": {picture(task.Refs("inline")), "/v1/images/generations", `{"external_task_id":"sub_1","image":"YWJj",` +
			`"model_name":"kling-v3","n":1,"prompt":"a lighthouse","resolution":"1k"}`},
		"from pictures": {picture(task.Refs("inline", "b"), task.Tier("4K"), task.Model("kling-v3-omni")), "/v1/images/omni-image",
			`{"external_task_id":"sub_1","image_list":[{"image":"YWJj"},{"image":"https://media.example/b"}],` +
				`"model_name":"kling-v3-omni","n":1,"prompt":"a lighthouse","resolution":"4k"}`},

		"a last frame alone":              {Task: clip(task.Refs("last_frame=a"))},
		"a last frame of turbo":           {Task: clip(task.Refs("first_frame=a", "last_frame=b"), task.Model("kling-3.0-turbo"))},
		"two pictures of turbo":           {Task: clip(task.Refs("a", "b"), task.Model("kling-3.0-turbo"))},
		"references without omni":         {Task: clip(task.Refs("reference=a"))},
		"three pictures":                  {Task: clip(task.Refs("a", "b", "c"))},
		"a ratio beside a frame":          {Task: clip(task.Refs("a"), task.Ratio("16:9"))},
		"no sound of the newest":          {Task: clip(task.Model("kling-4.0"), task.Params(`{"audio":false}`))},
		"sound of 2.5":                    {Task: clip(task.Model("kling-2.5-turbo"), task.Params(`{"audio":true}`))},
		"sound of o1":                     {Task: clip(task.Model("kling-o1"), task.Params(`{"audio":true}`))},
		"sound of 2.6 in 720p":            {Task: clip(task.Model("kling-2.6"), task.Params(`{"audio":true}`))},
		"sound beside a video":            {Task: clip(task.Refs("a.mp4"), task.Model("kling-3.0-omni"), task.Params(`{"audio":true}`))},
		"a seed":                          {Task: clip(task.Params(`{"seed":7}`))},
		"480p":                            {Task: clip(task.Tier("480p"))},
		"several shots of turbo":          {Task: clip(task.Model("kling-3.0-turbo"), task.Params(`{"multi_shot":true}`))},
		"4K without omni":                 {Task: picture(task.Tier("4K"))},
		"a negative prompt and a picture": {Task: picture(task.Refs("a"), task.Params(`{"negative_prompt":"fog"}`))},
		"ten pictures":                    {Task: picture(task.Count(10))},
		"a large picture":                 {Task: picture(task.Refs("a"), func(job *jobcall.Task) { job.References[0].Size = 11 << 20 })},
		"a strange model":                 {Task: clip(task.Model("../tasks"))},
	})
}

// TestLostAnswers tests a submission whose response was lost: Find finds the task by its key, and
// another submission with the key returns the same task.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, task := range []jobcall.Task{clip(), picture()} {
		studio := fakestudio.NewKling(t)
		a := conformance.Line(t, kling.Provider, studio.URL(), nil)
		find := a.(jobcall.Finder).Find
		if ticket, err := find(t.Context(), task); ticket != "" || err != nil {
			t.Errorf("%s: Find returned %q, %v before the submission", task.Kind, ticket, err)
		}
		studio.Expect(fakestudio.Behaviour{LoseAnswer: true})
		_, err := jobcall.Submit(t.Context(), a, task)
		if !conformance.OutcomeOf(t, err).Lost {
			t.Errorf("%s: error %v, want a lost outcome", task.Kind, err)
		}
		found, err := find(t.Context(), task)
		if found == "" || err != nil {
			t.Errorf("%s: Find returned %q, %v", task.Kind, found, err)
		}
		again, err := jobcall.Submit(t.Context(), a, task)
		if err != nil || again.Ticket != found || studio.AcceptedCount() != 1 {
			t.Errorf("%s: the second submission returned %+v, %v; %d tasks were accepted, want 1", task.Kind, again, err, studio.AcceptedCount())
		}
	}
}

// TestCodes tests the outcome for each of Kling's error codes.
func TestCodes(t *testing.T) {
	t.Parallel()
	v := conformance.OutcomesOf(upstream.KindVideo)
	conformance.CheckFailures(t, kling.Provider, clip(), []conformance.Case{
		{errorReply(401, 1002, "token invalid"), v.Account},
		{errorReply(429, 1102, "resource pack used up"), v.Account},
		{errorReply(403, 1103, "not authorised"), v.Account},
		{errorReply(429, 1304, "not on the list of addresses"), v.Account},
		{errorReply(429, 1302, "rate"), v.Busy},
		{errorReply(429, 1303, "parallel task over limit"), v.Busy},
		{errorReply(400, 1300, "platform policy"), v.Flagged},
		{errorReply(400, 1301, "content security"), v.Flagged},
		{errorReply(400, 1201, "duration is invalid"), v.Refused},
		{errorReply(404, 1203, "no such model"), v.Model},
		{errorReply(500, 5000, "internal"), v.Broken},
		{errorReply(504, 5002, "timed out"), v.Lost},
		{fakestudio.Failure("Failure to pass the risk control system"), v.Flagged},
		{fakestudio.Failure("internal error"), v.Failed},
	})
}

// errorReply returns the behaviour that answers with an error.
func errorReply(status, code int, message string) fakestudio.Behaviour {
	body, _ := json.Marshal(map[string]any{"code": code, "message": message, "request_id": "r"})
	return fakestudio.Refusal(status, string(body))
}
