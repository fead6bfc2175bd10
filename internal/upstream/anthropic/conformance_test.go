package anthropic_test

import (
	"testing"

	"tollgate/internal/upstream/anthropic"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.ChatProvider{Provider: anthropic.Provider, Call: func(wire.Form) chatcall.Call { return call(false) }})
}
