package translate

import (
	"encoding/json"
	"testing"

	"tollgate/internal/wire"
)

// TestGeminiThinking tests thinking levels on newer models and thinking budgets on older models.
func TestGeminiThinking(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model, effort string
		reasoning     bool
		want          string
	}{
		{"gemini-3-pro", `"none"`, true, `{"thinkingLevel":"LOW"}`},
		{"gemini-3-pro", `"minimal"`, false, `{"thinkingLevel":"LOW"}`},
		{"gemini-3-pro-preview", `"medium"`, false, `{"thinkingLevel":"HIGH"}`},
		{"models/gemini-3.1-pro-preview", `"none"`, true, `{"thinkingLevel":"LOW"}`},
		{"gemini-3.1-pro-preview", `"medium"`, false, `{"thinkingLevel":"MEDIUM"}`},
		{"gemini-3.7-flash", `"minimal"`, false, `{"thinkingLevel":"LOW"}`},
		{"gemini-3.8-flash", `"none"`, true, `{"thinkingLevel":"LOW"}`},
		{"gemini-flash-latest", `"none"`, true, `{"thinkingLevel":"LOW"}`},
		{"gemini-4-argon", `"minimal"`, true, `{"thinkingLevel":"LOW","includeThoughts":true}`},
		{"vendor-flash", `"minimal"`, false, `{"thinkingLevel":"LOW"}`},
		{"gemini-3-flash-preview", `"none"`, true, `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3.5-flash", `"minimal"`, false, `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3.5-flash-lite", `"none"`, true, `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-pro", `"xhigh"`, true, `{"thinkingLevel":"HIGH","includeThoughts":true}`},
		{"gemini-3-pro", `null`, true, `{"includeThoughts":true}`},
		{"gemini-2.5-flash", `"none"`, true, `{"thinkingBudget":0}`},
		{"gemini-2.5-pro", `"none"`, true, `{"thinkingBudget":128}`},
		{"gemini-2.5-flash", `"medium"`, true, `{"thinkingBudget":8192,"includeThoughts":true}`},
		{"gemini-3-pro", `null`, false, ``},
	} {
		body, err := toGemini(t, `{"model":"m","messages":[`+hi+`],"reasoning_effort":`+tt.effort+`}`,
			wire.Translation{Edits: wire.Edits{Model: tt.model}, Reasoning: tt.reasoning})
		if err != nil {
			t.Fatal(err)
		}
		var sent sentRequest
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		if got := string(sent.GenerationConfig["thinkingConfig"]); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.model, tt.effort, got, tt.want)
		}
	}
}
