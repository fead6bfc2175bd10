package xai_test

import (
	"testing"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/xai"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: xai.Provider,
		Tasks: map[string]jobcall.Task{"pictures": picture(task.Count(3)), "clip": clip(),
			"older clip": clip(task.Model("grok-imagine-video"))},
		Ticket: func(jobcall.Task) string { return "vid-1" },
		Params: `{"user":"41417"}`,
	})
}
