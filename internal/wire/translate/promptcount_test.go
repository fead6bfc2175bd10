package translate

import (
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestMessageStartCountsThePrompt checks that a translated stream begins with the gateway's count of
// the prompt and ends with the charged one.
func TestMessageStartCountsThePrompt(t *testing.T) {
	t.Parallel()
	r := pairtest.Messages(t, `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	id := pairtest.Identity()
	id.Prompt = 12
	m, w := New(r, wire.FormChat, id).Events()
	stream := `data: {"choices":[{"index":0,"delta":{"content":"Yes"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + "data: [DONE]\n\n"
	out := string(pairtest.Flow([]byte(stream), w, m, wire.Usage{Prompt: 34, Completion: 1}))
	start, rest, _ := strings.Cut(out, "\n\n")
	if !strings.HasPrefix(start, "event: message_start\n") || !strings.Contains(start, `"input_tokens":12`) {
		t.Errorf("got %s, want message_start with 12 tokens", start)
	}
	if !strings.Contains(rest, `"input_tokens":34`) {
		t.Errorf("got %s, want 34 tokens at the end", rest)
	}
}
