package minimax_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/minimax"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("image-01"), change...)
}

func video(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("MiniMax-H3", task.Tier("768p")), change...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: minimax.Provider,
		Tasks: map[string]jobcall.Task{"pictures": image(task.Count(3)),
			"one from another": image(task.Refs("inline")), "clip": video()},
		Ticket: func(jobcall.Task) string { return "task-1" },
		Params: `{"aigc_watermark":41417}`,
	})
}
