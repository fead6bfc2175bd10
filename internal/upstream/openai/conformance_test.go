package openai_test

import (
	"testing"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/openai"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.ChatProvider{Provider: openai.Provider, Call: func(wire.Form) chatcall.Call { return call(false) }})
	conformance.Media(t, conformance.MediaProvider{
		Provider: openai.Provider,
		Tasks:    map[string]jobcall.Task{"pictures": picture(func(task *jobcall.Task) { task.Count = 3 }), "clip": clip()},
		Ticket:   func(jobcall.Task) string { return "video_1" },
		Params:   `{"user":"41417"}`,
	})
	conformance.Kinds(t, conformance.KindsProvider{Provider: openai.Provider})
}
