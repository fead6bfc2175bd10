package translate

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// toolRequest returns a request of a client with a forced tool and an earlier call of this tool.
func toolRequest(client wire.Form, name string) string {
	bodies := map[wire.Form]string{
		wire.FormChat: `{"model":"m","tools":[{"type":"function","function":{"name":%[1]q,"parameters":{"type":"object"}}}],` +
			`"tool_choice":{"type":"function","function":{"name":%[1]q}},"messages":[{"role":"user","content":"x"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":%[1]q,"arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"c","content":"r"}]}`,
		wire.FormMessages: `{"model":"m","max_tokens":99,"tools":[{"name":%[1]q,"input_schema":{"type":"object"}}],` +
			`"tool_choice":{"type":"tool","name":%[1]q},"messages":[{"role":"user","content":"x"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":%[1]q,"input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}]}`,
		wire.FormResponses: `{"model":"m","tools":[{"type":"function","name":%[1]q,"parameters":{"type":"object"}}],` +
			`"tool_choice":{"type":"function","name":%[1]q},"input":[{"role":"user","content":"x"},` +
			`{"type":"function_call","call_id":"c","name":%[1]q,"arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]}`,
	}
	return fmt.Sprintf(bodies[client], name)
}

// TestNamesOfToolsOnLines expects a valid name of a tool on each line of another form, in all places,
// and the client's own name in the answer.
func TestNamesOfToolsOnLines(t *testing.T) {
	t.Parallel()
	accepted := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	onLine := regexp.MustCompile(`"(?:name|allowedFunctionNames)":\[?"([^"]*)"`)
	for _, name := range []string{
		strings.Repeat("n", 65), strings.Repeat("n", 128), "mcp__" + strings.Repeat("server.", 12) + "tool", "a.b", "a b", "a:b/c", "größe",
		"3d_render", "-flag", "a", strings.Repeat("n", 64),
	} {
		seen := map[string]bool{}
		for _, client := range clientForms {
			for _, line := range lineForms {
				if client == line {
					continue
				}
				pair := New(request(t, client, toolRequest(client, name)), line, pairtest.Identity())
				body, err := pairtest.Body(pair, wire.Translation{Edits: wire.Edits{Model: "v"}, MaxOutput: 99})
				if err != nil {
					t.Fatalf("%s on %s, %s: %v", client, line, name, err)
				}
				found := onLine.FindAllStringSubmatch(string(body), -1)
				lineName := found[0][1]
				seen[lineName] = true
				for _, match := range found {
					if match[1] != lineName || !accepted.MatchString(match[1]) {
						t.Errorf("%s on %s, %s: the line got the name %s in %s", client, line, name, match[1], body)
					}
				}
				if want := 3; len(found) != want && line != wire.FormGemini { // a result on a Gemini line has the name too
					t.Errorf("%s on %s, %s: %d names in %s, want %d", client, line, name, len(found), body, want)
				}
				whole, stream := answers(t, pair, line, modelOutput{tool: lineName, arguments: []string{`{"a":1}`}})
				for what, answer := range map[string]string{"whole": whole, "streamed": stream} {
					if !strings.Contains(answer, `"name":"`+name+`"`) {
						t.Errorf("%s on %s, %s, %s: the client got %s", client, line, name, what, answer)
					}
				}
			}
		}
		if len(seen) != 1 {
			t.Errorf("%s has the names %v, want one on all lines", name, seen)
		}
	}
}
