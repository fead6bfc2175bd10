package conformance

import (
	"bytes"
	"encoding/json"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// vocabulary tests that a field common to all models is sent to the provider or makes the task
// unsuitable, and different values lead to different submissions.
func (p MediaProvider) vocabulary(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		task.Count = 1
		for name, params := range map[string]string{"seed": `{"seed":41417}`, "negative_prompt": `{"negative_prompt":"no 41417 dogs"}`} {
			variant := task
			variant.Params = json.RawMessage(params)
			if body := p.submission(t, name, variant); body != nil && !bytes.Contains(body, []byte("41417")) {
				t.Errorf("%s is not in the submission %s", name, body)
			}
		}
		p.checkDistinct(t, task, "sound", map[string]func(*jobcall.Task){
			"on":  func(task *jobcall.Task) { task.Params = json.RawMessage(`{"audio":true}`) },
			"off": func(task *jobcall.Task) { task.Params = json.RawMessage(`{"audio":false}`) },
		})
		if task.Kind != upstream.KindVideo {
			return
		}
		cases := map[string]func(*jobcall.Task){}
		for _, roles := range [][]string{{jobrequest.FirstFrame}, {jobrequest.LastFrame}, {jobrequest.Subject},
			{jobrequest.FirstFrame, jobrequest.LastFrame}, {jobrequest.LastFrame, jobrequest.FirstFrame}, {jobrequest.Subject, jobrequest.Subject},
			{jobrequest.FirstFrame, jobrequest.Subject}} {
			name := ""
			for _, role := range roles {
				name += " " + role
			}
			cases[name] = func(task *jobcall.Task) {
				task.Ratio, task.Width, task.Height, task.References = "", 0, 0, nil
				for i, role := range roles {
					task.References = append(task.References, picture(i, role))
				}
			}
		}
		p.checkDistinct(t, task, "references", cases)
	})
}

// picture returns the n-th reference picture, with a role.
func picture(n int, role string) jobcall.Reference {
	r := task.Reference("image/png", "", string(fakestudio.Picture(n)))
	r.Role = role
	return r
}

// checkDistinct submits a task with each change and fails the test if two submissions are the same.
func (p MediaProvider) checkDistinct(t *testing.T, task jobcall.Task, what string, changes map[string]func(*jobcall.Task)) {
	t.Helper()
	seen := map[string]string{}
	for name, change := range changes {
		variant := task
		change(&variant)
		body := p.submission(t, what+" "+name, variant)
		if other, twice := seen[string(body)]; twice && body != nil {
			t.Errorf("%s: %s and %s lead to the same submission %.500s", what, name, other, body)
		}
		seen[string(body)] = name
	}
}

// submission submits a task and returns the submission's path and body, or nil if the task is unsuitable
// or the provider does not use HTTP.
func (p MediaProvider) submission(t *testing.T, what string, task jobcall.Task) []byte {
	t.Helper()
	g, studio := p.openFor(t, Succeeds)
	if studio == nil {
		_, _ = jobcall.Submit(t.Context(), g, task)
		return nil
	}
	defer studio.Close()
	s := submitTask(t, what, g, studio, task)
	if s == nil {
		return nil
	}
	return append([]byte(s.Path+" "), s.Body...)
}
