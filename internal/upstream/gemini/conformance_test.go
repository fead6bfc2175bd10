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
			"pictures": picture(func(w *jobcall.Task) { w.Count = 3 }), "clip of Omni": clip(),
			"clip of Veo": clip(func(w *jobcall.Task) { w.Model = "veo-3.1-generate-preview" }),
		},
		Ticket: func(w jobcall.Task) string {
			if w.Model == clip().Model {
				return "v1_abc"
			}
			return "models/veo-3.1/operations/abc"
		},
		Params: `{"seed":41417}`,
	})
}
