package replicate_test

import (
	"testing"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/replicate"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: replicate.Provider,
		Tasks:    map[string]jobcall.Task{"pictures": image(3), "clip": video()},
		Ticket:   func(jobcall.Task) string { return "abc" },
		Params:   `{"seed":41417}`,
	})
}
