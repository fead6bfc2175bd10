package fal_test

import (
	"testing"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/fal"
	"tollgate/internal/upstream/jobcall"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: fal.Provider,
		Tasks:    map[string]jobcall.Task{"pictures": image(3), "clip": video()},
		Ticket:   func(jobcall.Task) string { return `{"id":"a","app":"b/c"}` },
		Params:   `{"seed":41417}`,
	})
}
