package ideogram_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/ideogram"
	"tollgate/internal/upstream/jobcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("ideogram-4-5"), change...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: ideogram.Provider,
		Tasks: map[string]jobcall.Task{"pictures": image(task.Count(3)),
			"one from another": image(task.Refs("inline"))},
		Ticket: func(jobcall.Task) string { return "gen_1" },
		Params: `{"seed":41417}`,
	})
}
