package fal_test

import (
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/fal"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.Making{
		Provider: fal.Provider,
		Start:    func(t testing.TB) conformance.Studio { return fakestudio.NewFal(t) },
		Tasks:    map[string]upstream.Task{"pictures": image(3), "clip": video()},
		Ticket:   func(upstream.Task) string { return `{"id":"a","app":"b/c"}` },
		Params:   `{"seed":41417}`,
	})
}
