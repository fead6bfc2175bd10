package luma_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/luma"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("uni-1"), change...)
}

func video(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("ray-3.2"), change...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: luma.Provider,
		Tasks: map[string]jobcall.Task{"pictures": image(task.Count(3)),
			"one from another": image(task.Refs("inline")), "clip": video()},
		Ticket: func(jobcall.Task) string { return "0b6a1f7e-1" },
		Params: `{"style":41417}`,
	})
}
