package show_test

import (
	"strings"
	"testing"

	"tollgate/internal/app"
	"tollgate/internal/catalog"
	"tollgate/internal/console/show"
)

// TestSnippetsUseWhatIsSold: ways to use a key name a model that has a line of its own,
// and one that only plays where there is no other.
func TestSnippetsUseWhatIsSold(t *testing.T) {
	t.Parallel()
	const model = `  - {id: MODEL, kind: chat, forms: [chat, responses, messages], context_window: 1000, max_output_tokens: 100,
      price: {input: 1, output: 1}}
`
	const lines = `lines:
  - {id: sandbox, provider: sandbox, models: {plays: sandbox-chat}}
`
	for catalogue, want := range map[string]string{
		strings.ReplaceAll(model, "MODEL", "plays") + lines: "plays",
		strings.ReplaceAll(model, "MODEL", "plays") + strings.ReplaceAll(model, "MODEL", "nowhere") +
			strings.ReplaceAll(model, "MODEL", "sold") + lines +
			"  - {id: main, provider: openai, api_key: \"${X}\", models: {sold: x}}\n": "sold",
	} {
		doc, _, err := catalog.Parse([]byte("models:\n"+catalogue), app.Providers())
		if err != nil {
			t.Fatal(err)
		}
		snapshot := catalog.NewSnapshot(1, doc, app.Providers(), func(string) (string, bool) { return "", false })
		for _, s := range show.KeySnippets("https://gate.example", snapshot, "") {
			if !strings.Contains(s.Text, want) {
				t.Errorf("%s does not use %s: %s", s.Name, want, s.Text)
			}
		}
	}
}
