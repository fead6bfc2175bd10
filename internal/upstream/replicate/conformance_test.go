package replicate_test

import (
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/replicate"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.Making{
		Provider: replicate.Provider,
		Start:    func(t testing.TB) conformance.Studio { return fakestudio.NewReplicate(t) },
		Tasks:    map[string]jobcall.Task{"pictures": image(3), "clip": video()},
		Ticket:   func(jobcall.Task) string { return "abc" },
		Params:   `{"seed":41417}`,
	})
}
