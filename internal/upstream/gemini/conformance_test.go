package gemini_test

import (
	"testing"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.ChatProvider{Provider: gemini.Provider, Call: func(wire.Form) chatcall.Call { return call(false) }})
	conformance.Media(t, conformance.MediaProvider{
		Provider: gemini.Provider,
		Tasks: map[string]jobcall.Task{
			"pictures": picture(func(task *jobcall.Task) { task.Count = 3 }), "clip of Omni": clip(),
			"clip of Veo": clip(func(task *jobcall.Task) { task.Model = "veo-3.1-generate-preview" }),
		},
		Ticket: func(task jobcall.Task) string {
			if task.Model == clip().Model {
				return "v1_abc"
			}
			return "models/veo-3.1/operations/abc"
		},
		Params: `{"seed":41417}`,
	})
}
