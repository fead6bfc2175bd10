package ark_test

import (
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/ark"
	"tollgate/internal/upstream/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.Making{
		Provider: ark.Provider,
		Start:    func(t testing.TB) conformance.Studio { return fakestudio.NewArk(t) },
		Tasks:    map[string]upstream.Task{"pictures": image(count(3)), "clip": video()},
		Ticket:   func(upstream.Task) string { return "cgt-1" },
		Params:   `{"seed":41417}`,
	})
}
