package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// hiddenRequest returns a request of a messages client, with more members and a continued history.
func hiddenRequest(more, history string) string {
	return `{"model":"m","max_tokens":2000,"tools":[{"name":"f","input_schema":{"type":"object"}}]` + more +
		`,"messages":[{"role":"user","content":"x"}` + history + `]}`
}

// TestThinkingIsShownOnlyIfAsked expects the text or the call as the first block for a messages client
// without `thinking`, from all lines, and the line's state in the next request to the same line.
func TestThinkingIsShownOnlyIfAsked(t *testing.T) {
	t.Parallel()
	here, elsewhere := pairtest.Identity(), pairtest.Identity()
	here.Origin, elsewhere.Origin = "a", "b"
	in := wire.Translation{Edits: wire.Edits{Model: "v"}, MaxOutput: 99, Reasoning: true}
	returns := map[wire.Form]string{ // the state returned with the call
		wire.FormChat:      `"reasoning_content":"Hm \"so\"."`,
		wire.FormResponses: `"encrypted_content":"c2ln+/=="},{"type":"function_call"`,
		wire.FormGemini:    `"args":{"a":1}},"thoughtSignature":"c2ln+/=="`,
	}
	for line, want := range returns {
		for _, more := range []string{"", `,"thinking":{"type":"disabled"}`, `,"thinking":{"type":"adaptive","display":"omitted"}`,
			`,"output_config":{"effort":"high"}`} {
			for _, text := range []string{"", "One moment."} {
				pair := New(pairtest.Messages(t, hiddenRequest(more, "")), line, here)
				o := modelOutput{thought: `Hm "so".`, text: text, signature: "c2ln+/==", tool: "f", arguments: []string{`{"a":1}`, `{"a":2}`}}
				if line == wire.FormChat {
					o.signature = ""
				}
				whole, stream := answers(t, pair, line, o)
				if err := wiretest.CheckMessages([]byte(stream)); err != nil {
					t.Errorf("%s: %v in %s", line, err, stream)
				}
				for what, raw := range map[string]string{"whole": whole, "streamed": string(wholeOf(t, wire.FormMessages, []byte(stream)))} {
					where := fmt.Sprintf("%s%s, text %q, %s", line, more, text, what)
					var answer struct {
						Content []struct {
							Type, Text, ID string
						}
					}
					if err := json.Unmarshal([]byte(raw), &answer); err != nil {
						t.Fatal(err)
					}
					kinds := ""
					for _, b := range answer.Content {
						kinds += b.Type + " "
					}
					if wanted := strings.TrimLeft(map[bool]string{true: "text "}[text != ""]+"tool_use tool_use ", " "); kinds != wanted {
						t.Errorf("%s: got the blocks %s, want %s: %s", where, kinds, wanted, raw)
						continue
					}
					n := len(answer.Content)
					content := raw[strings.Index(raw, "[") : strings.LastIndex(raw, "]")+1]
					history := `,{"role":"assistant","content":` + content + `},{"role":"user","content":[` +
						fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"r1"},{"type":"tool_result","tool_use_id":%q,"content":"r2"}]}`,
							answer.Content[n-2].ID, answer.Content[n-1].ID)
					for _, next := range []struct {
						line wire.Form
						id   wire.Identity
					}{{line, here}, {line, elsewhere}, {wire.FormMessages, here}, {wire.FormResponses, elsewhere}, {wire.FormGemini, elsewhere}} {
						body, err := pairtest.Body(New(pairtest.Messages(t, hiddenRequest(more, history)), next.line, next.id), in)
						sent := string(body)
						returned := next.line == line && (next.id == here || line == wire.FormChat)
						if err != nil || !json.Valid(body) || strings.Contains(sent, "tg1") || strings.Contains(sent, want) != returned ||
							!strings.Contains(sent, `"t0"`) || !strings.Contains(sent, `"t1"`) {
							t.Errorf("%s: the line %s of %s got %s, %v; want %s: %v", where, next.line, next.id.Origin, sent, err, want, returned)
						}
					}
				}
			}
		}
	}
}

// TestHiddenThinkingShowsLife expects keep-alives instead of hidden thinking.
func TestHiddenThinkingShowsLife(t *testing.T) {
	t.Parallel()
	for line := range map[wire.Form]bool{wire.FormChat: true, wire.FormResponses: true, wire.FormGemini: true} {
		pair := New(pairtest.Messages(t, hiddenRequest("", "")), line, pairtest.Identity())
		_, stream := answers(t, pair, line, modelOutput{thought: "Hm.", text: "Yes."})
		if line != wire.FormResponses && !strings.Contains(stream, ": keep-alive") {
			t.Errorf("%s: got %s, want signs of life", line, stream)
		}
		if strings.Contains(stream, "Hm.") || !strings.HasPrefix(stream, "event: message_start") {
			t.Errorf("%s: got %s, want no thinking", line, stream)
		}
	}
}
