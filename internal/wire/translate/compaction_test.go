package translate

import (
	"fmt"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire/internal/wiretest"
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
