package conformance

import (
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// polledTasks runs a case for each polled task.
func (p MediaProvider) polledTasks(t *testing.T, run func(t *testing.T, task jobcall.Task)) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		if g := p.generator(t, "http://127.0.0.1:9", nil); !g.Blocks(task) {
			run(t, task)
		}
	})
}

// unusablePolls tests that a task continues after a poll with an error status, or with a body that does
// not have the task's status.
func (p MediaProvider) unusablePolls(t *testing.T) {
	p.polledTasks(t, func(t *testing.T, job jobcall.Task) {
		job.Count = 1
		for status, health := range map[int]upstream.Health{429: upstream.HealthCool, 500: upstream.HealthFail,
			503: upstream.HealthFail, 401: upstream.HealthCredential} {
			studio := p.start(t)
			studio.Expect(fakestudio.Behaviour{PollStatus: status, PollStatusTimes: 1})
			g := p.generator(t, studio.URL(), nil)
			task := submit(t, g, job)
			_, err := g.Poll(t.Context(), job, task.Ticket)
			if f := asJobFailure(t, "error status", err); f.Next != upstream.NextPoll || f.Health != health {
				t.Errorf("status %d: failure %+v, want NextPoll and health %s", status, f, health)
			}
			pollUntilDone(t, g, job, task)
		}
		for _, body := range []string{`{}`, `<html>`, `{"error":{"code":"InternalServiceError","message":"m"}}`, `{"id":"x","status"`, ``, `[]`} {
			for _, status := range []int{200, 404, 500} {
				task, err := LineWithReply(t, p.Provider, status, body).Poll(t.Context(), job, p.Ticket(job))
				if err == nil {
					if task.Done {
						t.Errorf("%d %s: the task is done, want it running", status, body)
					}
				} else if f := asJobFailure(t, body, err); f.Next != upstream.NextPoll && (status != 404 || body == "<html>") {
					t.Errorf("%d %s: failure %+v, want NextPoll", status, body, f)
				}
			}
		}
	})
}

// failedPolls tests that a failed poll does not end the task, unless the provider does not know the task.
// Count is 1, because several images may be separate tasks at the provider.
func (p MediaProvider) failedPolls(t *testing.T) {
	p.polledTasks(t, func(t *testing.T, task jobcall.Task) {
		task.Count = 1
		g, studio := p.openFor(t, BreaksPolls)
		status := submit(t, g, task)
		_, err := g.Poll(t.Context(), task, status.Ticket)
		if f := asJobFailure(t, "failed poll", err); f.Next != upstream.NextPoll {
			t.Errorf("failed poll: %+v, want NextPoll", f)
		}
		if studio != nil {
			pollUntilDone(t, g, task, status)
		}
		g, studio = p.openFor(t, Forgets)
		status = submit(t, g, task)
		_, err = g.Poll(t.Context(), task, status.Ticket)
		if f := asJobFailure(t, "unknown task", err); f.Job != OutcomesOf(task.Kind).Gone.Job || f.Next != upstream.NextLine {
			t.Errorf("unknown task: failure %+v, want code %s and NextLine", f, OutcomesOf(task.Kind).Gone.Job)
		}
		if studio != nil {
			studio.Close()
			_, err = g.Poll(t.Context(), task, status.Ticket)
			if f := asJobFailure(t, "unreachable provider", err); f.Next != upstream.NextPoll || f.Health != upstream.HealthFail {
				t.Errorf("unreachable provider: failure %+v, want NextPoll and HealthFail", f)
			}
		}
	})
}
