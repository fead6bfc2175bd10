package translate

import (
	"errors"
	"io"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/sse"
)

// someAnswer returns the identity of the answers in all tests.
func someAnswer() wire.Identity {
	return wire.Identity{Request: "req_0001", Model: "swift-1", Created: 1700000000}
}

// TestGeminiByChain sends clients of the other forms a Gemini stream, translated through
// chat completions, with the text, the tool call and the last event.
func TestGeminiByChain(t *testing.T) {
	t.Parallel()
	const stream = `data: {"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true},` +
		`{"text":"Hello"}]}}],"usageMetadata":{"promptTokenCount":5}}` + "\n\n" +
		`data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"n":12345678901234567890}}}]},` +
		`"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7}}` + "\n\n"
	r, err := responses.Open([]byte(`{"model":"swift-1","input":"hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	native, err := messages.Open([]byte(`{"model":"swift-1","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		request wire.Request
		want    []string
	}{
		"messages": {native, []string{`"text":"Hello"`, `"name":"look"`, `12345678901234567890`,
			`"stop_reason":"tool_use"`, "event: message_stop\n"}},
		"responses": {r, []string{`"delta":"Hello"`, `"name":"look"`, `12345678901234567890`, `"output_tokens":7`,
			"event: response.completed\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := sse.NewReader(strings.NewReader(stream), 1<<20)
			meter, chain := New(tt.request, wire.FormGemini, someAnswer()).Events()
			var out []byte
			for {
				e, err := events.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				f, err := meter.Read(e)
				if err != nil {
					t.Fatal(err)
				}
				out = chain.Append(out, e, f)
			}
			u, _ := meter.Usage()
			out = chain.End(out, u)
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %s in\n%s", want, out)
				}
			}
		})
	}
}
