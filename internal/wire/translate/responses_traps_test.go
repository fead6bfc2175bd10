package translate

import (
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// forResponses returns a member of the line's request for a chat or a messages request with the
// given members.
func forResponses(t *testing.T, chat bool, members, words, name string) string {
	t.Helper()
	body := `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"u"}]` + members + `}`
	out, err := pairtest.Body(onResponses(t, body, chat), toResponses(words))
	if err != nil {
		t.Fatal(err)
	}
	if wrong := checkInput(out); wrong != "" {
		t.Errorf("%s in %s", wrong, out)
	}
	return string(rawjson.Field(out, name))
}

// TestResponsesRefuse expects errors for unsupported values to name the client's field.
func TestResponsesRefuse(t *testing.T) {
	t.Parallel()
	const user = `{"role":"user","content":"u"}`
	chat := func(members string) string { return `{"messages":[` + user + `]` + members + `}` }
	request := func(message string) string { return `{"max_tokens":9,"messages":[` + message + `]}` }
	native := func(members string) string { return `{"max_tokens":9,"messages":[` + user + `]` + members + `}` }
	for _, c := range []struct {
		chat       bool
		body, want string
	}{
		{true, chat(`,"n":2`), "n"},
		{true, chat(`,"logprobs":true`), "logprobs"},
		{true, chat(`,"moderation":{}`), "moderation"},
		{true, chat(`,"web_search_options":{}`), "web_search_options"},
		{true, chat(`,"modalities":["text","image"]`), "modalities"},
		{true, chat(`,"reasoning_effort":"huge"`), "reasoning_effort"},
		{true, chat(`,"response_format":{"type":"grammar"}`), "response_format.type"},
		{true, chat(`,"response_format":{"type":"json_schema","json_schema":{"schema":7}}`), "response_format.json_schema.schema"},
		{true, chat(`,"tools":[{"type":"nobody_knows"}]`), "tools[0].type"},
		{true, chat(`,"tools":[{"type":"function","function":{}}]`), "tools[0].function.name"},
		{true, chat(`,"tools":[{"type":"function","function":{"name":"f","parameters":7}}]`), "tools[0].function.parameters"},
		{true, chat(`,"tools":[{"type":"custom","custom":{}}]`), "tools[0].custom.name"},
		{true, chat(`,"functions":[{}]`), "functions[0].name"},
		{true, chat(`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"some"`), "tool_choice"},
		{true, chat(`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools",` +
			`"allowed_tools":{"tools":[{}]}}`),
			"tool_choice.allowed_tools.tools[0]"},
		{true, request(`{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://e.com"}}]}`), "messages[0].content[0].type"},
		{true, request(`{"role":"user","content":[{"type":"file","file":{}}]}`), "messages[0].content[0].file.file_data"},
		{true, request(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://e.com"}}]}`), "messages[0].content[0]"},
		{true, request(`{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}`), "messages[0].tool_calls[0].function.name"},
		{true, request(`{"role":"assistant","tool_calls":[{"id":"a","type":"nobody_knows"}]}`), "messages[0].tool_calls[0].type"},

		{false, native(`,"mcp_servers":[]`), "mcp_servers"},
		{false, native(`,"tools":[{"type":"bash_20250124","name":"bash"}]`), "tools[0].type"},
		{false, native(`,"tools":[{"type":"web_search_20250305","name":"web_search"}]`), "tools[0].type"},
		{false, native(`,"tools":[{"name":"f"}]`), "tools[0].input_schema"},
		{false, native(`,"output_config":{"effort":"huge"}`), "output_config.effort"},
		{false, native(`,"output_config":{"format":{"type":"grammar"}}`), "output_config.format"},
		{false, native(`,"output_format":{"type":"grammar"}`), "output_format"},
		{false, request(`{"role":"robot","content":"u"}`), "messages[0].role"},
		{false, request(`{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://e.com/a.pdf"}}]}`),
			"messages[0].content[0].source.type"},
		{false, request(`{"role":"user","content":[{"type":"video"}]}`), "messages[0].content[0].type"},
		{false, request(`{"role":"assistant","content":[{"type":"tool_use","id":"","name":"f"}]}`), "messages[0].content[0]"},
	} {
		_, err := pairtest.Body(onResponses(t, c.body, c.chat), toResponses("reasoning"))
		if code, param := wiretest.CodeOf(t, err); code != "invalid_request" || param != c.want {
			t.Errorf("%s: %s %q, want %q", c.body, code, param, c.want)
		}
	}
}

// TestResponsesFields tests single fields; the scenarios test whole requests.
func TestResponsesFields(t *testing.T) {
	t.Parallel()
	const tools = `,"tools":[{"name":"f","input_schema":{}}]`
	const functions = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, c := range []struct {
		chat                       bool
		members, words, name, want string
	}{
		{true, `,"max_completion_tokens":3`, "", "max_output_tokens", "16"},
		{false, ``, "", "max_output_tokens", "100"},
		{true, `,"reasoning_effort":"xhigh"`, "reasoning", "reasoning", `{"effort":"xhigh","summary":"auto"}`},
		{true, `,"reasoning_effort":"none"`, "reasoning", "reasoning", `{"effort":"none"}`},
		{true, `,"reasoning_effort":"xhigh"`, "", "reasoning", ``},
		{true, `,"reasoning_effort":"none"`, "reasoning", "reasoning", `{"effort":"none"}`},
		{true, ``, "reasoning", "include", `["reasoning.encrypted_content"]`},
		{true, ``, "", "include", ``},
		{true, `,"temperature":0.5`, "reasoning", "temperature", ``},
		{true, `,"service_tier":"flex"`, "", "service_tier", `"flex"`},
		{true, `,"parallel_tool_calls":false`, "", "parallel_tool_calls", ``},
		{true, `,"tool_choice":"auto"`, "", "tool_choice", ``},
		{true, functions + `,"tool_choice":"required"`, "", "tool_choice", `"required"`},
		{true, functions + `,"tool_choice":{"type":"function","function":{"name":"f"}}`, "reasoning", "tool_choice",
			`{"type":"function","name":"f"}`},
		{true, `,"functions":[{"name":"f"}],"function_call":{"name":"f"}`, "", "tool_choice", `{"type":"function","name":"f"}`},
		{true, `,"prompt_cache_retention":"24h"`, "", "prompt_cache_retention", ``},
		{true, `,"prompt_cache_retention":"24h"`, "openai", "prompt_cache_retention", `"24h"`},
		{true, `,"stream":true,"stream_options":{"include_usage":true}`, "", "stream_options", ``},
		{true, `,"store":true`, "", "store", `false`},
		{true, `,"seed":1,"logit_bias":{},"frequency_penalty":1,"metadata":{"a":"b"}`, "", "metadata", ``},
		{true, `,"response_format":{"type":"json_schema","json_schema":{"name":"a b","strict":true,"description":"d","schema":{}}}`, "", "text",
			`{"format":{"type":"json_schema","name":"a_b_10a3f9f2","description":"d","schema":{},"strict":true}}`},
		{false, tools, "", "tools", `[{"type":"function","name":"f","parameters":{"type":"object"},"strict":false}]`},
		{false, tools + `,"tool_choice":{"type":"any"}`, "", "tool_choice", `"required"`},
		{false, tools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":false}`, "", "parallel_tool_calls", `true`},
		{false, `,"thinking":{"type":"disabled"}`, "reasoning", "reasoning", `{"effort":"none"}`},
		{false, `,"thinking":{"type":"enabled","budget_tokens":1024}`, "reasoning", "reasoning", `{"effort":"low","summary":"auto"}`},
		{false, `,"thinking":{"type":"enabled","budget_tokens":8000}`, "reasoning", "reasoning", `{"effort":"medium","summary":"auto"}`},
		{false, `,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"low"}`, "reasoning", "reasoning",
			`{"effort":"low"}`},
		{false, `,"thinking":{"type":"adaptive"}`, "reasoning", "reasoning", `{"summary":"auto"}`},
		{false, `,"thinking":{"type":"adaptive"}`, "", "reasoning", ``},
		{false, `,"metadata":{"user_id":"user_1_account__session_5e0c"}`, "", "prompt_cache_key", `"5e0c"`},
		{false, `,"metadata":{"user_id":"plain"}`, "", "prompt_cache_key", ``},
		{false, `,"metadata":{"user_id":"plain"}`, "", "safety_identifier", `"plain"`},
		{false, `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{}}}}}`, "", "text",
			`{"format":{"type":"json_schema","name":"output","schema":{"type":"object","properties":{"a":{}}},"strict":false}}`},
	} {
		if got := forResponses(t, c.chat, c.members, c.words, c.name); got != c.want {
			t.Errorf("chat %v %s (%s): %s is %s, want %s", c.chat, c.members, c.words, c.name, got, c.want)
		}
	}
}

// TestTrapNamesAndIDsThatTheLineRefuses checks that names and ids are changed for the line and restored for
// the client.
func TestTrapNamesAndIDsThatTheLineRefuses(t *testing.T) {
	t.Parallel()
	long, id := "mcp.server/"+strings.Repeat("x", 60), "call_"+strings.Repeat("y", 80)
	body := `{"messages":[{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"` + id + `","function":{"name":"` + long +
		`","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"r"},{"role":"user","content":"v"},` +
		`{"role":"assistant","tool_calls":[{"id":"` + id + `","function":{"name":"` + long + `","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"` + id + `","content":"r"}],` +
		`"tools":[{"type":"function","function":{"name":"` + long + `"}}]}`
	pair := onResponses(t, body, true)
	out, err := pairtest.Body(pair, toResponses(""))
	if err != nil {
		t.Fatal(err)
	}
	if wrong := checkInput(out); wrong != "" {
		t.Errorf("%s in %s", wrong, out)
	}
	line := conversation.LineName(long)
	if n := strings.Count(string(out), line); n != 3 || len(line) > 64 || strings.Contains(string(out), long) {
		t.Errorf("%d times %s in %s", n, line, out)
	}
	answer := `{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"` + line + `","arguments":"{}"}]}`
	if got := responsesAnswerFor(t, pair, answer); !strings.Contains(got, `"name":"`+long+`"`) {
		t.Error(got)
	}
}

// TestTrapArgumentsReachTheLineAsTheyAre tests both directions.
func TestTrapArgumentsReachTheLineAsTheyAre(t *testing.T) {
	t.Parallel()
	const odd = `{ "b" : 1.500, "a":1E2,"big":123456789012345678901234567890,"e":"\u00e9\/" }`
	text, err := json.Marshal(odd)
	if err != nil {
		t.Fatal(err)
	}
	got := forResponses(t, false, `,"system":[],"metadata":{}`, "", "input")
	if got != `[{"type":"message","role":"user","content":"u"}]` {
		t.Error(got)
	}
	for chat, body := range map[bool]string{
		true: `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":` + string(text) + `}}]}]}`,
		false: `{"max_tokens":9,"messages":[{"role":"user","content":"u"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":` + odd + `}]}]}`,
	} {
		out, err := pairtest.Body(onResponses(t, body, chat), toResponses(""))
		if err != nil || !strings.Contains(string(out), `"arguments":`+string(text)) {
			t.Errorf("chat %v: %v: %s", chat, err, out)
		}
		answer := `{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":` + string(text) + `}]}`
		want := `"arguments":` + string(text)
		if !chat {
			want = `"input":` + strings.TrimSpace(odd)
		}
		if got := responsesAnswerFor(t, onResponses(t, body, chat), answer); !strings.Contains(got, want) {
			t.Errorf("chat %v: %s", chat, got)
		}
	}
}

// TestTrapSealsHoldTheirOrigin checks that data encrypted by one account is sent to no other, and
// the seal holds no secret.
func TestTrapSealsHoldTheirOrigin(t *testing.T) {
	t.Parallel()
	answer := `{"status":"completed","output":[{"type":"reasoning","summary":[],"encrypted_content":"E"},` +
		`{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`
	other := fromResponses()
	other.Origin = "openai\nhttps://api.openai.com\n${OTHER}"
	for chat, carried := range map[bool]string{
		true: `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"x","reasoning_details":[{"data":"%"}]},` +
			`{"role":"user","content":"v"}]}`,
		false: `{"max_tokens":9,"messages":[{"role":"user","content":"u"},{"role":"assistant","content":[` +
			`{"type":"redacted_thinking","data":"%"},{"type":"text","text":"x"}]},{"role":"user","content":"v"}]}`,
	} {
		got := responsesAnswerFor(t, answersOfResponses(chat), answer)
		if !strings.Contains(got, seal("E")) || strings.Contains(got, "KEY") {
			t.Errorf("chat %v: %s", chat, got)
		}
		body := strings.Replace(carried, "%", seal("E"), 1)
		for _, c := range []struct {
			id   wire.Identity
			want bool
		}{{fromResponses(), true}, {other, false}} {
			pair := New(openChatOr(t, body, chat), wire.FormResponses, c.id)
			out, err := pairtest.Body(pair, toResponses("reasoning"))
			if err != nil || strings.Contains(string(out), `"encrypted_content":"E"`) != c.want || strings.Contains(string(out), "tg1.") {
				t.Errorf("chat %v, %q: %v: %s", chat, c.id.Origin, err, out)
			}
		}
	}
}

// openChatOr opens and checks a chat request, or a messages request.
func openChatOr(t *testing.T, body string, chat bool) wire.Request {
	if chat {
		return pairtest.Chat(t, body)
	}
	return pairtest.Messages(t, body)
}

// TestTrapSealsDoNotReachOtherForms checks that signatures are sent only to lines of the form that
// issued them, because other lines would reject them.
func TestTrapSealsDoNotReachOtherForms(t *testing.T) {
	t.Parallel()
	for chat, body := range map[bool]string{
		true: `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"x","reasoning_content":"h","reasoning_details":[` +
			`{"type":"reasoning.encrypted","data":"` + seal("E") + `","format":"openai-responses-v1","index":0}]},{"role":"user","content":"v"}]}`,
		false: `{"max_tokens":9,"messages":[{"role":"user","content":"u"},{"role":"assistant","content":[` +
			`{"type":"thinking","thinking":"h","signature":"` + seal("E") + `"},{"type":"text","text":"x"},` +
			`{"type":"redacted_thinking","data":"` + seal("E") + `"}]},{"role":"user","content":"v"}]}`,
	} {
		for _, line := range []wire.Form{wire.FormChat, wire.FormMessages, wire.FormGemini} {
			out, err := pairtest.Body(New(openChatOr(t, body, chat), line, fromResponses()), toResponses("reasoning"))
			if err != nil || strings.Contains(string(out), "tg1.") || !json.Valid(out) || !strings.Contains(string(out), `"v"`) {
				t.Errorf("chat %v on %s: %v: %s", chat, line, err, out)
			}
		}
	}
}
