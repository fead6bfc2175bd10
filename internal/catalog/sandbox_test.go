package catalog

import (
	"slices"
	"testing"
)

// TestClosedSandbox tests that sandbox models are hidden as soon as the catalog has an enabled line of
// another provider, except models with such a line themselves.
func TestClosedSandbox(t *testing.T) {
	t.Parallel()
	const models = `
models:
  - {id: play, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: both, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: real, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: gone, kind: chat, state: retired, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: bare, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
  - {id: sand, provider: sandbox, models: {play: a, both: b, gone: c}}
`
	for _, tt := range []struct {
		name, lines string
		closed      []string
		open        []string
	}{
		{"sandbox alone", "", nil, nil},
		{"a line of another model", "  - {id: x, provider: chatonly, models: {real: r}}\n",
			[]string{"play", "both", "gone"}, []string{"play", "both"}},
		{"a line of one of them", "  - {id: x, provider: chatonly, models: {both: r}}\n", []string{"play", "gone"}, []string{"play"}},
		{"a line that is off", "  - {id: x, provider: chatonly, enabled: false, models: {both: r, real: r}}\n", nil, nil},
		{"two sandbox lines", "  - {id: x, provider: sandbox, models: {both: r, real: r}}\n", nil, nil},
		{"a second sandbox line, and a real one", "  - {id: x, provider: sandbox, models: {play: r}}\n" +
			"  - {id: y, provider: chatonly, models: {real: r}}\n", []string{"play", "both", "gone"}, []string{"play", "both"}},
	} {
		doc, _, err := Parse([]byte(models+tt.lines), testProviders())
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		s := NewSnapshot(1, doc, testProviders(), func(string) (string, bool) { return "", false })
		warned := slices.ContainsFunc(NodeWarnings(doc, testProviders(), func(string) (string, bool) { return "", false }),
			func(w Warning) bool { return w.Path == "models" })
		if warned != (len(tt.open) > 0) {
			t.Errorf("%s: warned %v", tt.name, warned)
		}
		var closed []string
		for _, m := range s.Models() {
			if s.HidesSandbox(m.ID, false, nil) {
				closed = append(closed, m.ID)
			}
			if s.HidesSandbox(m.ID, false, []string{"other"}) != s.HidesSandbox(m.ID, false, nil) || s.HidesSandbox(m.ID, true, nil) ||
				s.HidesSandbox(m.ID, true, []string{"other"}) || s.HidesSandbox(m.ID, false, []string{"other", m.ID}) {
				t.Errorf("%s: %s is hidden from a test account or from a key with the model, or not from another key", tt.name, m.ID)
			}
		}
		if open := s.OpenSandboxModels(); !slices.Equal(closed, tt.closed) || !slices.Equal(open, tt.open) {
			t.Errorf("%s: closed %v, open %v; want %v, %v", tt.name, closed, open, tt.closed, tt.open)
		}
	}
}
