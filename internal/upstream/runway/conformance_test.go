package runway_test

import (
	"testing"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/runway"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: runway.Provider,
		Tasks: map[string]jobcall.Task{"picture": picture(), "clip": clip(), "veo": clip(task.Model("veo3.1_fast")),
			"kling": clip(task.Model("kling_4")), "seedance": clip(task.Model("seedance2")), "wan": clip(task.Model("wan3_prime"))},
		Ticket: func(jobcall.Task) string { return "clip-1" },
		Params: `{"contentModeration":{"publicFigureThreshold":"low"}}`,
		Marker: `"publicFigureThreshold":"low"`,
	})
}
