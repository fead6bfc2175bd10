package kling_test

import (
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/kling"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	omni := clip(task.Model("kling-3.0-omni"))
	conformance.Media(t, conformance.MediaProvider{
		Provider: kling.Provider,
		Tasks: map[string]jobcall.Task{"pictures": picture(task.Count(3)), "clip": clip(), "omni": omni,
			"turbo": clip(task.Model("kling-3.0-turbo")), "newest": clip(task.Model("kling-4.0"))},
		Ticket: func(job jobcall.Task) string {
			if job.Kind == upstream.KindImage {
				return "generations:1"
			}
			return "clip-1"
		},
		Params: `{"watermark_info":{"enabled":true}}`,
		Marker: `"watermark_info":{"enabled":true}`,
	})
}
