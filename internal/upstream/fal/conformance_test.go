package fal_test

import (
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/fal"
	"tollgate/internal/upstream/jobcall"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.Making{
		Provider: fal.Provider,
		Start:    func(t testing.TB) conformance.Studio { return fakestudio.NewFal(t) },
		Tasks:    map[string]jobcall.Task{"pictures": image(3), "clip": video()},
		Ticket:   func(jobcall.Task) string { return `{"id":"a","app":"b/c"}` },
		Params:   `{"seed":41417}`,
	})
}
