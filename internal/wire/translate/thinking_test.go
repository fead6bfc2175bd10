package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// requestsOfAllForms returns a request of each form with an effort, and with tools and a choice if
// it is not empty.
func requestsOfAllForms(t *testing.T, effort, choice string) map[wire.Form]wire.Request {
	t.Helper()
	const parameters = `{"type":"object","properties":{}}`
	chat, messages, responses := "", "", ""
	if choice != "" {
		chat = `,"tools":[{"type":"function","function":{"name":"f","parameters":` + parameters + `}}],"tool_choice":`
		messages = `,"tools":[{"name":"f","input_schema":` + parameters + `}],"tool_choice":`
		responses = `,"tools":[{"type":"function","name":"f","parameters":` + parameters + `}],"tool_choice":`
		switch choice {
		case "named":
			chat += `{"type":"function","function":{"name":"f"}}`
			messages += `{"type":"tool","name":"f"}`
			responses += `{"type":"function","name":"f"}`
		case "allowed":
			chat += `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}`
			messages += `{"type":"any"}`
			responses += `{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}`
		case "required":
			chat, messages, responses = chat+`"required"`, messages+`{"type":"any"}`, responses+`"required"`
		default:
			chat, messages, responses = chat+`"auto"`, messages+`{"type":"auto"}`, responses+`"auto"`
		}
	}
	return map[wire.Form]wire.Request{
		wire.FormChat: pairtest.Chat(t, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"x"}],`+
			`"reasoning_effort":%q%s}`, effort, chat)),
		wire.FormMessages: openMessages(t, fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],`+
			`"output_config":{"effort":%q}%s}`, effort, messages)),
		wire.FormResponses: pairtest.Responses(t, fmt.Sprintf(`{"model":"m","input":"x",`+
			`"reasoning":{"summary":"auto","effort":%q}%s}`, effort, responses)),
	}
}

// TestEffortsThatAModelTakes expects a line of each form to get the nearest effort supported by
// its model, and the error for an unknown effort names the client's field.
func TestEffortsThatAModelTakes(t *testing.T) {
	t.Parallel()
	in := wire.Translation{Edits: wire.Edits{Model: "v", Efforts: []string{"low", "high"}}, Reasoning: true, MaxOutput: 9}
	sent := map[wire.Form]string{wire.FormChat: `"reasoning_effort":"high"`, wire.FormResponses: `"effort":"high"`,
		wire.FormMessages: `"effort":"high"`, wire.FormGemini: `"thinkingLevel":"HIGH"`}
	fields := map[wire.Form]string{wire.FormChat: "reasoning_effort", wire.FormMessages: "output_config.effort",
		wire.FormResponses: "reasoning.effort"}
	for _, asked := range []string{"medium", "high", "xhigh"} {
		for client, r := range requestsOfAllForms(t, asked, "") {
			for line, want := range sent {
				body, err := pairtest.Body(New(r, line, pairtest.Identity()), in)
				if err != nil || !json.Valid(body) || !strings.Contains(string(body), want) {
					t.Errorf("%s on %s, %s: %s, %v", client, line, asked, body, err)
				}
			}
		}
	}
	for client, r := range requestsOfAllForms(t, "much", "") {
		for line := range sent {
			var f *fault.Error
			_, err := pairtest.Body(New(r, line, pairtest.Identity()), in)
			if !errors.As(err, &f) || f.Code != fault.InvalidRequest || f.Param != fields[client] {
				t.Errorf("%s on %s: %v", client, line, err)
			}
		}
		if client == wire.FormMessages {
			continue // it has only its own words
		}
		if body, err := pairtest.Body(New(r, client, pairtest.Identity()), wire.Translation{Edits: wire.Edits{Model: "v"}}); err != nil {
			t.Errorf("%s, of a model of which nothing is known: %s, %v", client, body, err)
		}
	}
}

// TestForcedToolsStayForced checks that thinking and effort are omitted for a reasoning model that
// would reject a forced tool.
func TestForcedToolsStayForced(t *testing.T) {
	t.Parallel()
	in := wire.Translation{Edits: wire.Edits{Model: "v", NoThinking: wire.Member{Name: "thinking", Value: `{"type":"disabled"}`}},
		Reasoning: true}
	for _, choice := range []string{"required", "named", "allowed", "auto"} {
		for client, r := range requestsOfAllForms(t, "low", choice) {
			body, err := pairtest.Body(New(r, wire.FormChat, pairtest.Identity()), in)
			var sent struct {
				Thinking map[string]string `json:"thinking"`
				Effort   string            `json:"reasoning_effort"`
				Choice   json.RawMessage   `json:"tool_choice"`
			}
			if err := errors.Join(err, json.Unmarshal(body, &sent)); err != nil {
				t.Fatal(client, choice, err)
			}
			forced := choice != "auto"
			if (sent.Thinking["type"] == "disabled") != forced || (sent.Effort == "") != forced || (string(sent.Choice) == `"auto"`) == forced {
				t.Errorf("%s, %s: %s", client, choice, body)
			}
		}
	}
	own := pairtest.Chat(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"thinking":{"type":"enabled"},`+
		`"tools":[{"type":"function",`+
		`"function":{"name":"f"}}],"tool_choice":"required"}`)
	body, err := pairtest.Body(New(own, wire.FormChat, pairtest.Identity()), in)
	if err != nil || strings.Contains(string(body), "enabled") || !json.Valid(body) {
		t.Errorf("%s, %v", body, err)
	}
}

// TestThinkingOfClaudeIsShown expects the text of thinking from Claude 4.7 on, which hides it by default, if
// a chat client sets an effort, a responses client asks for a summary or a Gemini client for thoughts.
func TestThinkingOfClaudeIsShown(t *testing.T) {
	t.Parallel()
	const shown = `"thinking":{"type":"adaptive","display":"summarized"}`
	const chat, responses = `{"model":"m","messages":[{"role":"user","content":"x"}]%s}`, `{"model":"m","input":"x"%s}`
	const gemini = `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":%s}`
	for _, c := range []struct {
		client       wire.Form
		body, member string
		want         bool
	}{
		{wire.FormChat, chat, `,"reasoning_effort":"low"`, true},
		{wire.FormChat, chat, `,"reasoning_effort":"max"`, true},
		{wire.FormChat, chat, `,"reasoning_effort":"none"`, false},
		{wire.FormChat, chat, "", false},
		{wire.FormResponses, responses, `,"reasoning":{"summary":"auto"}`, true},
		{wire.FormResponses, responses, `,"reasoning":{"summary":"concise","effort":"high"}`, true},
		{wire.FormResponses, responses, `,"reasoning":{"generate_summary":"auto"}`, true},
		{wire.FormResponses, responses, `,"reasoning":{"effort":"high"}`, false},
		{wire.FormResponses, responses, `,"reasoning":{"summary":"auto","effort":"none"}`, false},
		{wire.FormResponses, responses, "", false},
		{wire.FormGemini, gemini, `{"thinkingConfig":{"includeThoughts":true}}`, true},
		{wire.FormGemini, gemini, `{"thinking_config":{"include_thoughts":true,"thinking_budget":-1}}`, true},
		{wire.FormGemini, gemini, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`, true},
		{wire.FormGemini, gemini, `{"thinkingConfig":{"thinkingLevel":"HIGH"}}`, false},
		{wire.FormGemini, gemini, `{}`, false},
	} {
		for model, hides := range map[string]bool{"claude-opus-4-7": true, "claude-sonnet-5": true, "us.anthropic.claude-haiku-5-5-v1:0": true,
			"claude-fable-5-1": true, "claude-opus-4-6": false, "claude-sonnet-4-5": false, "deepseek": false} {
			body, err := pairtest.Body(New(request(t, c.client, fmt.Sprintf(c.body, c.member)), wire.FormMessages, pairtest.Identity()),
				wire.Translation{Edits: wire.Edits{Model: model}, Reasoning: true, MaxOutput: 9000})
			if err != nil || strings.Contains(string(body), shown) != (c.want && hides) || strings.Contains(string(body), "display") && !hides {
				t.Errorf("%s%s on %s: the line got %s, %v; want thinking shown: %v", c.client, c.member, model, body, err, c.want && hides)
			}
		}
	}
}
