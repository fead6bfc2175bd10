package dashscope_test

import (
	"testing"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/dashscope"
	"tollgate/internal/upstream/jobcall"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.MediaProvider{
		Provider: dashscope.Provider,
		Tasks: map[string]jobcall.Task{"pictures": image(task.Count(3)), "pictures as a task": image(task.Count(2), task.Model("wan2.6-t2i")),
			"pictures from a text": image(task.Count(2), task.Model("wan2.2-t2i-flash")), "clip": video()},
		Ticket: func(jobcall.Task) string { return "t-1" },
		Params: `{"seed":41417}`,
	})
	conformance.Kinds(t, conformance.KindsProvider{
		Provider: dashscope.Provider,
		Fields:   map[string]string{"speech": `,"response_format":"pcm"`},
		Paths: map[string]string{"embedding": "/compatible-mode/v1/embeddings", "rerank": "/compatible-api/v1/reranks",
			"speech": "/services/aigc/multimodal-generation/generation"},
		Bodies:  map[string]string{"speech": `{"input":{"text":"ping","voice":"alloy"},"model":"m"}`},
		Answers: map[string]string{"speech": `data:{"output":{"audio":{"data":"AAAA"},"finish_reason":"stop"}}` + "\n\n"},
	})
}
