package anthropic_test

import (
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/anthropic"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.Chatting{Provider: anthropic.Provider, Call: func(wire.Form) upstream.Call { return call(false) }})
}
