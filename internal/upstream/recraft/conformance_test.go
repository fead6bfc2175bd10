package recraft_test

import (
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/recraft"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func image(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("recraftv4_1"), change...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: recraft.Provider,
		Tasks: map[string]jobcall.Task{"pictures": image(task.Count(3)),
			"one from a reference": image(task.Refs("inline"))},
		Ticket: func(jobcall.Task) string { return "img-1" },
		Params: `{"seed":41417}`,
	})
}
