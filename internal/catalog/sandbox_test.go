package catalog

import (
	"slices"
	"testing"
)

// TestHidesSandbox checks that sandbox models are hidden as soon as the catalog has an enabled line
// of another provider, unless the model itself has such a line.
func TestHidesSandbox(t *testing.T) {
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
		hidden      []string
		open        []string
	}{
		{"only sandbox lines", "", nil, nil},
		{"real line of another model", "  - {id: x, provider: chatonly, models: {real: r}}\n",
			[]string{"play", "both", "gone"}, []string{"play", "both"}},
		{"real line of a sandbox model", "  - {id: x, provider: chatonly, models: {both: r}}\n", []string{"play", "gone"}, []string{"play"}},
		{"disabled real line", "  - {id: x, provider: chatonly, enabled: false, models: {both: r, real: r}}\n", nil, nil},
		{"two sandbox lines", "  - {id: x, provider: sandbox, models: {both: r, real: r}}\n", nil, nil},
		{"two sandbox lines and a real line", "  - {id: x, provider: sandbox, models: {play: r}}\n" +
			"  - {id: y, provider: chatonly, models: {real: r}}\n", []string{"play", "both", "gone"}, []string{"play", "both"}},
	} {
		doc, _, err := Parse([]byte(models+tt.lines), testProviders())
		if err != nil {
			t.Fatalf("%s: error %v, want none", tt.name, err)
		}
		s := NewSnapshot(1, doc, testProviders(), func(string) (string, bool) { return "", false })
		hasWarning := slices.ContainsFunc(NodeWarnings(doc, testProviders(), func(string) (string, bool) { return "", false }),
			func(w Warning) bool { return w.Path == "models" })
		if hasWarning != (len(tt.open) > 0) {
			t.Errorf("%s: warning about open models %v, want %v", tt.name, hasWarning, len(tt.open) > 0)
		}
		var hidden []string
		for _, m := range s.Models() {
			if s.HidesSandbox(m.ID, false, nil) {
				hidden = append(hidden, m.ID)
			}
			if s.HidesSandbox(m.ID, false, []string{"other"}) != s.HidesSandbox(m.ID, false, nil) || s.HidesSandbox(m.ID, true, nil) ||
				s.HidesSandbox(m.ID, true, []string{"other"}) || s.HidesSandbox(m.ID, false, []string{"other", m.ID}) {
				t.Errorf("%s: model %s must be visible to test accounts and to keys with the model, and hidden from other keys", tt.name, m.ID)
			}
		}
		if open := s.OpenSandboxModels(); !slices.Equal(hidden, tt.hidden) || !slices.Equal(open, tt.open) {
			t.Errorf("%s: hidden %v, open %v, want %v, %v", tt.name, hidden, open, tt.hidden, tt.open)
		}
	}
}
