package ark_test

import (
	"testing"

	"tollgate/internal/upstream/ark"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: ark.Provider,
		Tasks:    map[string]jobcall.Task{"pictures": image(task.Count(3)), "clip": video()},
		Ticket:   func(jobcall.Task) string { return "cgt-1" },
		Params:   `{"seed":41417}`,
	})
}
