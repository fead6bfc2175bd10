package vertex_test

import (
	"testing"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/vertex"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.Chatting{
		Provider: vertex.Provider, Call: func(form wire.Form) chatcall.Call { return call(form, false) },
	})
}
