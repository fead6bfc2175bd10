package bfl_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/upstream/bfl"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("flux-2-pro"), change...)
}

func video(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("flux-3-video"), change...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: bfl.Provider,
		Tasks: map[string]jobcall.Task{"pictures": image(task.Count(3)),
			"a named size": image(task.Model("flux-3-image")), "clip": video()},
		Ticket: func(jobcall.Task) string { return "/v1/get_result?id=0b6a1f7e-1" },
		Params: `{"safety_tolerance":41417}`,
	})
}
