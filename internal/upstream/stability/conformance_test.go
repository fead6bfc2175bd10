package stability_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/stability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("ultra"), change...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: stability.Provider,
		Tasks: map[string]jobcall.Task{"pictures": image(task.Count(3)),
			"edited picture": image(task.Model("sd3.5-large"), task.Refs("inline"))},
		Ticket: func(jobcall.Task) string { return "t-1" },
		Params: `{"seed":41417}`,
	})
}
