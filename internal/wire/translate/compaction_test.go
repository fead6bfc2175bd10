package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestShapesOfContextManagement checks that shapes unknown to the checks are rejected, because a
// lenient server could accept them.
func TestShapesOfContextManagement(t *testing.T) {
	t.Parallel()
	for form, values := range map[string]map[string]int{ // the number of calls added by a value; -1 if it is rejected
		"responses": {`[{"type":"compaction"}]`: 1, `[{"type":"compaction"},{"type":"compaction"}]`: 2, `[]`: 0, `null`: 0, `{}`: -1,
			`{"type":"compaction"}`: -1, `"compaction"`: -1, `true`: -1, `{"edits":[{"type":"compaction"}]}`: -1, `7`: -1},
		"messages": {`{"edits":[{"type":"compact_20260112"}]}`: 1, `{"edits":[{"type":"Compact_20260112"}]}`: -1, `{}`: 0, `null`: 0,
			`{"edits":[{"type":"clear_tool_uses_20250919"}]}`: 0, `{"edits":null}`: 0, `{"edits":{"type":"compact_20260112"}}`: -1,
			`[{"type":"compact_20260112"}]`: -1, `"compact_20260112"`: -1, `{"edits":"compact_20260112"}`: -1, `true`: -1,
			`{"edits":[{"type":"clear_tool_uses_20250919","keep":{"type":"tool_uses","value":3}},{"type":"clear_thinking_20251015"}]}`: 0,
			`{"edits":[{"type":"compact_20270101"}]}`: -1, `{"edits":[{"type":"summarize_20270101"}]}`: -1, `{"edits":[{}]}`: -1,
			`{"edits":["compact_20260112"]}`: -1, `{"edits":[{"type":"clear_tool_uses_20270101"}]}`: -1, `{"edits":[{"type":7}]}`: -1,
			`{"edits":[{"type":" clear_thinking_20251015"}]}`: -1, `{"edits":[],"strategy":"summarize"}`: -1, `{"strategy":null}`: 0},
	} {
		for value, calls := range values {
			a, err := checkedParams(form, fmt.Sprintf(plain[form], `,"context_management":`+value))
			switch {
			case calls < 0:
				if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || param == "" {
					t.Errorf("%s: %s: %v", form, value, err)
				}
			case err != nil || len(a.ModelCalls) != calls:
				t.Errorf("%s: %s: %+v, %v", form, value, a, err)
			}
		}
	}
}

// TestCompactionsBecomeText expects the summary of a compaction on lines of other forms, because the
// client no longer sends the conversation before it.
func TestCompactionsBecomeText(t *testing.T) {
	t.Parallel()
	const tides = `We spoke of \"tides\".`
	messages := func(history string) wire.Request {
		return pairtest.Messages(t, `{"model":"m","max_tokens":9,"messages":[`+history+`,{"role":"user","content":"And now?"}]}`)
	}
	block := `{"type":"compaction","content":"` + tides + `"}`
	for name, r := range map[string]wire.Request{
		"alone":       messages(`{"role":"assistant","content":[` + block + `]}`),
		"before text": messages(`{"role":"user","content":"x"},{"role":"assistant","content":[` + block + `,{"type":"text","text":"Yes."}]}`),
		"before a call": messages(`{"role":"assistant","content":[` + block + `,{"type":"tool_use","id":"t","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}`),
		"of the user": messages(`{"role":"user","content":[` + block + `]}`),
		"blocks":      messages(`{"role":"assistant","content":[{"type":"compaction","content":[{"type":"text","text":"` + tides + `"}]}]}`),
		"responses": pairtest.Responses(t, `{"model":"m","input":[{"type":"compaction","encrypted_content":"E","summary":[{`+
			`"type":"summary_text",`+
			`"text":"`+tides+`"}]},{"role":"user","content":"And now?"}]}`),
	} {
		for _, line := range lineForms {
			if own := map[bool]wire.Form{true: wire.FormResponses, false: wire.FormMessages}[name == "responses"]; line == own {
				continue
			}
			body, err := pairtest.Body(New(r, line, pairtest.Identity()), wire.Translation{Edits: wire.Edits{Model: "v"}, MaxOutput: 9})
			if err != nil || !json.Valid(body) || !strings.Contains(string(body), tides) || !strings.Contains(string(body), "And now?") {
				t.Errorf("%s: the %s line got %s, %v; want %s", name, line, body, err, tides)
			}
		}
	}
	empty := messages(`{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"compaction","content":null}]}`)
	if body, err := pairtest.Body(New(empty, wire.FormChat, pairtest.Identity()), wire.Translation{}); err != nil || !json.Valid(body) {
		t.Errorf("a compaction that failed: got %s, %v", body, err)
	}
}
