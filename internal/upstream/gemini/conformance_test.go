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
	conformance.Chat(t, conformance.ChatProvider{Provider: gemini.Provider, Call: func(wire.Form) chatcall.Call { return call(false) },
		WithoutTokenCount: []wire.Form{wire.FormInteractions}})
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
	conformance.Kinds(t, conformance.KindsProvider{
		Provider: gemini.Provider,
		Fields:   map[string]string{"speech": `,"response_format":"pcm"`},
		Paths:    map[string]string{"speech": "/models/m:streamGenerateContent", "embedding": "/models/m:batchEmbedContents"},
		Bodies: map[string]string{
			"speech": `{"contents":[{"parts":[{"text":"ping"}],"role":"user"}],"generationConfig":{"responseModalities":["AUDIO"],` +
				`"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"alloy"}}}}}`,
			"embedding": `{"requests":[{"model":"models/m","content":{"parts":[{"text":"ping"}]}}]}`,
		},
		Answers: map[string]string{
			"speech": `data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;codec=pcm;rate=24000","data":"AAAA"}}]},` +
				`"finishReason":"STOP"}]}` + "\n\n",
			"embedding": `{"embeddings":[{"values":[0.5]}]}`,
		},
	})
}
