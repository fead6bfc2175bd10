package azure_test

import (
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream/azure"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.ChatProvider{
		Provider: azure.Provider, Call: func(form wire.Form) chatcall.Call { return call(form, false) },
		WithoutTokenCount: []wire.Form{wire.FormChat, wire.FormResponses},
	})
	conformance.Media(t, conformance.MediaProvider{
		Provider: azure.Provider,
		Start:    func(t testing.TB) fakestudio.Fake { return fakestudio.NewAzure(t) },
		Tasks:    map[string]jobcall.Task{"picture": picture(), "clip": clip()},
		Ticket:   func(jobcall.Task) string { return "video_1" },
		Params:   `{"user":"41417"}`,
	})
	conformance.Kinds(t, conformance.KindsProvider{Provider: azure.Provider})
}
