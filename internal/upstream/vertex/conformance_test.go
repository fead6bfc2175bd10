package vertex_test

import (
	"testing"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/vertex"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.ChatProvider{
		Provider: vertex.Provider, Call: func(form wire.Form) chatcall.Call { return call(form, false) },
	})
	conformance.Media(t, conformance.MediaProvider{
		Provider: vertex.Provider,
		Tasks:    map[string]jobcall.Task{"pictures": picture(task.Count(3)), "clip": clip()},
		Ticket: func(jobcall.Task) string {
			return "projects/p1/locations/us-central1/publishers/google/models/veo-3.1-generate-001/operations/abc"
		},
		Params: `{"seed":41417}`,
	})
}
