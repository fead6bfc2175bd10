package translate

import (
	"bytes"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// translation returns the properties of a messages line.
func translation(model string, reasoning bool) wire.Translation {
	return wire.Translation{Edits: wire.Edits{Model: model}, MaxOutput: 8192, Reasoning: reasoning}
}

// asMessages translates a chat request and returns the named members of the result, one per line.
func asMessages(t *testing.T, body string, in wire.Translation, names ...string) string {
	t.Helper()
	out, err := pairtest.Body(newChatOnMessages(pairtest.Chat(t, body), wire.Identity{}), in)
	if err != nil {
		t.Fatal(err)
	}
	return pairtest.Members(pairtest.Messages(t, string(out)).Doc, names...)
}

// TestChatAsMessagesFields tests single fields.
func TestChatAsMessagesFields(t *testing.T) {
	t.Parallel()
	const tool = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g",` +
		`"parameters":{"type":["object","null"]}}}]`
	say := func(more string) string {
		return wiretest.ChatMessages(`[{"role":"user","content":"hi"}` + more + `]`)
	}
	for name, test := range map[string]struct {
		body string
		read string
		want string
	}{
		"no limit":                 {wiretest.ChatBody(``), "max_tokens", `8192`},
		"limit":                    {wiretest.ChatBody(`"max_tokens":7`), "max_tokens", `7`},
		"newer limit":              {wiretest.ChatBody(`"max_completion_tokens":9`), "max_tokens", `9`},
		"the smaller of two":       {wiretest.ChatBody(`"max_completion_tokens":9,"max_tokens":7`), "max_tokens", `7`},
		"one stop":                 {wiretest.ChatBody(`"stop":"x"`), "stop_sequences", `["x"]`},
		"only blank stops":         {wiretest.ChatBody(`"stop":[" ","\n"]`), "stop_sequences", ``},
		"temperature":              {wiretest.ChatBody(`"temperature":0.30`), "temperature", `0.30`},
		"hot":                      {wiretest.ChatBody(`"temperature":2`), "temperature", `1`},
		"top_p":                    {wiretest.ChatBody(`"top_p":0.9`), "top_p", `0.9`},
		"top_p beside temperature": {wiretest.ChatBody(`"temperature":1,"top_p":0.9`), "top_p", ``},
		"without a counterpart": {
			wiretest.ChatBody(`"seed":1,"logit_bias":{},"presence_penalty":1,"frequency_penalty":1,"logprobs":true,"verbosity":"low",` +
				`"store":true,"service_tier":"auto","prediction":{}`),
			"seed", ``},
		"user": {wiretest.ChatBody(`"user":"u"`), "metadata", `{"user_id":"u"}`},
		"address of a user": {wiretest.ChatBody(`"user":"ann\u0040example.com"`), "metadata",
			`{"user_id":"71d4f55f72fa128dfb468a1a3901507c804b74316488744d769d7f4b16696476"}`},
		"safety identifier": {wiretest.ChatBody(`"user":"u","safety_identifier":"s"`), "metadata", `{"user_id":"s"}`},
		"long user":         {wiretest.ChatBody(`"user":"` + strings.Repeat("u", 300) + `"`), "metadata", ``},
		"schema of an object": {wiretest.ChatBody(tool), "tools",
			`[{"name":"f","input_schema":{"type":"object","properties":{}}},{"name":"g","input_schema":{"type":"object"}}]`},
		"schema without type": {wiretest.ChatBody(`"functions":[{"name":"f","parameters":{ "properties":{}}}]`), "tools",
			`[{"name":"f","input_schema":{"type":"object", "properties":{}}}]`},
		"a tool without type": {wiretest.ChatBody(`"tools":[{"function":{"name":"f","description":"d","strict":true}}]`),
			"tools", `[{"name":"f","description":"d","input_schema":{"type":"object","properties":{},"additionalProperties":false},"strict":true}]`},
		"schemas that cannot be strict": {wiretest.ChatBody(`"tools":[{"function":{"name":"f","strict":true,"parameters":` +
			`{"type":"object","additionalProperties":{"type":"string"}}}},{"function":{"name":"g","parameters":{"minimum":1}}}]`),
			"tools", `[{"name":"f","input_schema":{"type":"object","additionalProperties":{"type":"string"}}},` +
				`{"name":"g","input_schema":{"type":"object","minimum":1}}]`},
		"a schema of answers": {wiretest.ChatBody(`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` +
			`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":5}}}}}`),
			"output_config", `{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"integer",` +
				`"description":"minimum: 1, maximum: 5"}},"additionalProperties":false}}}`},
		"choice none":     {wiretest.ChatBody(tool + `,"tool_choice":"none"`), "tool_choice", `{"type":"none"}`},
		"choice auto":     {wiretest.ChatBody(tool + `,"tool_choice":"auto"`), "tool_choice", `{"type":"auto"}`},
		"choice required": {wiretest.ChatBody(tool + `,"tool_choice":"required"`), "tool_choice", `{"type":"any"}`},
		"choice named": {wiretest.ChatBody(tool + `,"tool_choice":{"type":"function","function":{"name":"g"}}`),
			"tool_choice", `{"type":"tool","name":"g"}`},
		"choice by function_call": {wiretest.ChatBody(tool + `,"function_call":{"name":"g"}`), "tool_choice", `{"type":"tool","name":"g"}`},
		"choice without tools":    {wiretest.ChatBody(`"tool_choice":"required"`), "tool_choice", ``},
		"allowed tools": {wiretest.ChatBody(
			tool + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","name":"f"}]}}`),
			"tools tool_choice", `[{"name":"f","input_schema":{"type":"object","properties":{}}}]` + "\n" + `{"type":"any"}`},
		"one call at a time": {wiretest.ChatBody(tool + `,"parallel_tool_calls":false`), "tool_choice",
			`{"type":"auto","disable_parallel_tool_use":true}`},
		"no call at a time": {wiretest.ChatBody(tool + `,"parallel_tool_calls":false,"tool_choice":"none"`),
			"tool_choice", `{"type":"none"}`},
		"text format":  {wiretest.ChatBody(`"response_format":{"type":"text"}`), "output_config", ``},
		"stream":       {wiretest.ChatBody(`"stream":true`), "stream", `true`},
		"not streamed": {wiretest.ChatBody(`"stream":false`), "stream", ``},
		"effort":       {wiretest.ChatBody(`"reasoning_effort":"high"`), "output_config thinking", `{"effort":"high"}` + "\n"},
		"least effort": {wiretest.ChatBody(`"reasoning_effort":"minimal"`), "output_config thinking", `{"effort":"low"}` + "\n"},
		"no effort":    {wiretest.ChatBody(`"reasoning_effort":"none"`), "output_config thinking", "\n"},
		"late system": {say(`,{"role":"assistant","content":"a"},{"role":"system","content":"s"},{"role":"user","content":"u"}`),
			"system messages",
			"\n" + `[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},` +
				`{"role":"user","content":[{"type":"text","text":"s"},{"type":"text","text":"u"}]}]`},
		"refusals": {say(`,{"role":"assistant","content":null,"refusal":"no"},{"role":"assistant","content":[{"type":"refusal",` +
			`"refusal":"never"}]},{"role":"user","content":"u"}`),
			"messages",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"no"},` +
				`{"type":"text","text":"never"}]},{"role":"user","content":[{"type":"text","text":"u"}]}]`},
		"functions": {say(`,{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},` +
			`{"role":"function","name":"f","content":"r"}`),
			"tools tool_choice messages",
			`[{"name":"f","input_schema":{"type":"object"}}]` + "\n" + `{"type":"none"}` + "\n" +
				`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"tool_use","id":"call_1",` +
				`"name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text",` +
				`"text":"r"}]}]}]`},
		"the same id in two calls": {
			say(`,{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]},` +
				`{"role":"tool","tool_call_id":"a","content":"1"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f",` +
				`"arguments":"null"}}]},{"role":"tool","tool_call_id":"a","content":""}`),
			"messages",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f",` +
				`"input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"}]}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"a_2","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_2"}]}]`},
		"a result without a call": {say(`,{"role":"tool","tool_call_id":"x","content":"lost"}`), "messages",
			`[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"lost"}]}]`},
		"an image from a tool": {
			say(`,{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]},` +
				`{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":"https://e.com/a",` +
				`"cache_control":{"type":"ephemeral"}}]}`),
			"messages",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f",` +
				`"input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url",` +
				`"url":"https://e.com/a"}}],"cache_control":{"type":"ephemeral"}}]}]`},
		"prefill": {say(`,{"role":"assistant","content":"Once \n"}`), "messages",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"Once"}]}]`},
		"an empty prefill": {say(`,{"role":"assistant","content":" \n"}`), "messages",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		"the user begins": {wiretest.ChatMessages(`[{"role":"assistant","content":"a"},{"role":"user","content":"u"}]`),
			"messages",
			`[{"role":"user","content":[{"type":"text","text":"Continue."}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},` +
				`{"role":"user","content":[{"type":"text","text":"u"}]}]`},
		"only a system": {wiretest.ChatMessages(`[{"role":"system","content":"s"}]`), "system messages",
			`[{"type":"text","text":"s"}]` + "\n" + `[{"role":"user","content":[{"type":"text","text":"Continue."}]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := asMessages(t, test.body, translation("vendor", false), strings.Fields(test.read)...); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestChatAsMessagesThinking tests effort, its support by models, and the fields rejected by
// reasoning models.
func TestChatAsMessagesThinking(t *testing.T) {
	t.Parallel()
	const adaptive, disabled = `{"type":"adaptive"}`, `{"type":"disabled"}`
	const auto, shown = `{"type":"auto"}`, `{"type":"adaptive","display":"summarized"}`
	for name, test := range map[string]struct {
		model, effort, more string
		want                string // thinking, output_config, tool_choice, temperature
	}{
		"newest":                      {"claude-opus-5-5", "high", "", shown + "\n" + `{"effort":"high"}` + "\n" + auto + "\n"},
		"newest, no effort requested": {"claude-opus-5-5", "", "", "\n\n" + auto + "\n"},
		"newest, none":                {"claude-opus-5-5", "none", "", "\n" + `{"effort":"low"}` + "\n" + auto + "\n"},
		"always thinking":             {"claude-fable-5-1", "none", "", "\n" + `{"effort":"low"}` + "\n" + auto + "\n"},
		"by default":                  {"vendor/claude-sonnet-5", "", "", "\n\n" + auto + "\n"},
		"by default, none":            {"claude-sonnet-5", "none", "", disabled + "\n\n" + auto + "\n"},
		"middle":                      {"claude-sonnet-4.6", "max", "", adaptive + "\n" + `{"effort":"max"}` + "\n" + auto + "\n"},
		"middle, no effort requested": {"claude-sonnet-4-6", "", "", "\n\n" + auto + "\n" + "0.5"},
		"budget": {"claude-sonnet-4-5-20250929", "medium", `"max_tokens":20000,`,
			`{"type":"enabled","budget_tokens":8192}` + "\n\n" + auto + "\n"},
		"small budget": {"us.anthropic.claude-3-7-sonnet-20250219-v1:0", "xhigh", `"max_tokens":4096,`,
			`{"type":"enabled","budget_tokens":2048}` + "\n\n" + auto + "\n"},
		"limit too small for a budget": {"claude-haiku-4-5", "low", `"max_tokens":100,`, "\n\n" + auto + "\n" + "0.5"},
		"budget, none":                 {"claude-haiku-4-5", "none", "", "\n\n" + auto + "\n" + "0.5"},
		"another family":               {"kimi", "minimal", "", adaptive + "\n" + `{"effort":"low"}` + "\n" + auto + "\n0.5"},
		"another, none":                {"kimi", "none", "", disabled + "\n\n" + auto + "\n0.5"},
		"newer":                        {"claude-opus-4-7", "low", "", shown + "\n" + `{"effort":"low"}` + "\n" + auto + "\n"},
		"newer, no effort requested":   {"claude-opus-4-7", "", "", "\n\n" + auto + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			effort := ""
			if test.effort != "" {
				effort = `"reasoning_effort":"` + test.effort + `",`
			}
			body := wiretest.ChatBody(
				test.more + effort + `"temperature":0.5,"tool_choice":"auto","tools":[{"type":"function","function":{"name":"f"}}]`)
			if got := asMessages(t, body, translation(test.model, true), "thinking", "output_config", "tool_choice",
				"temperature"); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
	loop := wiretest.ChatMessages(
		`[{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]},` +
			`{"role":"tool","tool_call_id":"a","content":"r"}],"reasoning_effort":"low"`)
	if got := asMessages(t, loop, translation("claude-sonnet-4-5", true), "thinking"); got != "" {
		t.Errorf("after a tool call without its thinking, the next request has thinking %s", got)
	}
	if got := asMessages(t, wiretest.ChatBody(`"reasoning_effort":"high"`), translation("claude-sonnet-4-5", false),
		"output_config"); got != "" {
		t.Errorf("a model without effort gets output_config %s", got)
	}
	prefilled := wiretest.ChatMessages(`[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]`)
	for model, acceptsPrefill := range map[string]bool{"claude-sonnet-4-5": true, "claude-opus-4-6": false, "claude-opus-5-5": false} {
		got := asMessages(t, prefilled, translation(model, false), "messages")
		if strings.Contains(got, conversation.Continue) == acceptsPrefill {
			t.Errorf("%s: %s", model, got)
		}
	}
}

// TestForcedToolDisablesThinking expects a forced tool to stay forced: thinking is disabled where the
// model allows that.
func TestForcedToolDisablesThinking(t *testing.T) {
	t.Parallel()
	const disabled, whole, named, auto = `{"type":"disabled"}`, `{"type":"any"}`, `{"type":"tool","name":"f"}`, `{"type":"auto"}`
	for name, test := range map[string]struct {
		model, effort, choice string
		reasoning             bool
		want                  string // thinking, output_config, tool_choice, temperature
	}{
		"thinks by default": {"claude-sonnet-5", "", `"required"`, true, disabled + "\n\n" + whole + "\n"},
		"effort requested": {"claude-sonnet-5-5", "medium", `"required"`, true,
			disabled + "\n" + `{"effort":"medium"}` + "\n" + whole + "\n"},
		"lower effort without thinking": {"claude-opus-5", "xhigh", `"required"`, true,
			disabled + "\n" + `{"effort":"high"}` + "\n" + whole + "\n"},
		"thinks, reasoning not set": {"claude-haiku-5-5", "", `"required"`, false, disabled + "\n\n" + whole + "\n"},
		"by name": {"claude-sonnet-5", "", `{"type":"function",` +
			`"function":{"name":"f"}}`, true, disabled + "\n\n" + named + "\n"},
		"thinks on request": {"claude-opus-4-6", "high", `"required"`, true,
			disabled + "\n" + `{"effort":"high"}` + "\n" + whole + "\n0.5"},
		"thinks on request, no effort":      {"claude-opus-4-6", "", `"required"`, true, "\n\n" + whole + "\n0.5"},
		"a budget":                          {"claude-sonnet-4-5", "high", `"required"`, true, "\n\n" + whole + "\n0.5"},
		"another family":                    {"deepseek-flash", "", `"required"`, true, disabled + "\n\n" + whole + "\n0.5"},
		"another family, reasoning not set": {"vendor", "", `"required"`, false, "\n\n" + whole + "\n0.5"},
		"always thinks":                     {"claude-opus-5-5", "", `"required"`, true, "\n\n" + auto + "\n"},
		"always thinks, reasoning not set":  {"claude-fable-5-1", "", `"required"`, false, "\n\n" + auto + "\n"},
		"not forced":                        {"claude-sonnet-5", "", `"auto"`, true, "\n\n" + auto + "\n"},
	} {
		effort := ""
		if test.effort != "" {
			effort = `"reasoning_effort":"` + test.effort + `",`
		}
		body := wiretest.ChatBody(effort + `"temperature":0.5,"tool_choice":` + test.choice +
			`,"tools":[{"type":"function","function":{"name":"f"}}]`)
		if got := asMessages(t, body, translation(test.model, test.reasoning), "thinking", "output_config", "tool_choice",
			"temperature"); got != test.want {
			t.Errorf("%s: got  %q\nwant %q", name, got, test.want)
		}
	}
	if got := asMessages(t, wiretest.ChatBody(`"tool_choice":"required"`), translation("claude-sonnet-5", true), "thinking"); got != "" {
		t.Errorf("without tools: %s", got)
	}
}

// TestChatAsMessagesRejects tests values without a counterpart in the messages form.
func TestChatAsMessagesRejects(t *testing.T) {
	t.Parallel()
	for param, body := range map[string]string{
		"n":                            wiretest.ChatBody(`"n":2`),
		"service_tier":                 wiretest.ChatBody(`"service_tier":"priority"`),
		"web_search_options":           wiretest.ChatBody(`"web_search_options":{}`),
		"tools[0].type":                wiretest.ChatBody(`"tools":[{"type":"nobody_knows"}]`),
		"tools[0].function.name":       wiretest.ChatBody(`"tools":[{"type":"function"}]`),
		"tools[0].function.parameters": wiretest.ChatBody(`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`),
		"functions[0].name":            wiretest.ChatBody(`"functions":[{"name":""}]`),
		"tool_choice": wiretest.ChatBody(
			`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"always"`),
		"tool_choice.allowed_tools.tools": wiretest.ChatBody(
			`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[]}}`),
		"stop":                             wiretest.ChatBody(`"stop":1`),
		"stop[1]":                          wiretest.ChatBody(`"stop":["a",2]`),
		"reasoning_effort":                 wiretest.ChatBody(`"reasoning_effort":"huge"`),
		"response_format.type":             wiretest.ChatBody(`"response_format":{"type":"grammar"}`),
		"messages[1].content[0].type":      wiretest.ChatParts(`{"type":"video_url","video_url":{"url":"https://e.com"}}`),
		"messages[1].content[0].text":      wiretest.ChatParts(`{"type":"text","text":5}`),
		"messages[1].content[0].image_url": wiretest.ChatParts(`{"type":"image_url"}`),
		"messages[1].content[0].image_url.url": wiretest.ChatParts(
			`{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,AA"}}`),
		"messages[1].content[0].file.file_data": wiretest.ChatParts(`{"type":"file","file":{"file_data":"data:text/plain;base64,AA"}}`),
		"messages[0].content[0].type": wiretest.ChatMessages(
			`[{"role":"assistant","content":[{"type":"image_url","image_url":"https://e.com"}]}]`),
		"messages[0].tool_calls[0].type":          wiretest.ChatMessages(`[{"role":"assistant","tool_calls":[{"type":"nobody_knows"}]}]`),
		"messages[0].tool_calls[0].function.name": wiretest.ChatMessages(`[{"role":"assistant","tool_calls":[{"function":{}}]}]`),
		"messages[0].function_call.name":          wiretest.ChatMessages(`[{"role":"assistant","function_call":{}}]`),
		"response_format.json_schema.schema.additionalProperties": wiretest.ChatBody(
			`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","additionalProperties":{"type":"null"}}}}`),
		"response_format.json_schema.schema": wiretest.ChatBody(`"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`),
	} {
		t.Run(param, func(t *testing.T) {
			t.Parallel()
			out, err := pairtest.Body(newChatOnMessages(pairtest.Chat(t, body), wire.Identity{}), translation("vendor", true))
			if code, at := wiretest.CodeOf(t, err); code != fault.InvalidRequest || at != param {
				t.Errorf("%s %s for %s", code, at, out)
			}
		})
	}
}

// TestChatAsMessagesKeepsPrefix checks that each request of a conversation begins with the bytes of the
// previous request, so that the provider's prompt cache works.
func TestChatAsMessagesKeepsPrefix(t *testing.T) {
	t.Parallel()
	turns := []string{
		`{"role":"system","content":"s"}`, `{"role":"user","content":"one"}`,
		`{"role":"assistant","content":"t","tool_calls":[{"id":"a.1","type":"function","function":{"name":"f",` +
			`"arguments":"{\"b\":1,\"a\": 2.50}"}},{"type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a.1","content":"r"}`, `{"role":"tool","content":"q"}`, `{"role":"user","content":"two"}`,
		`{"role":"assistant","content":"u"}`, `{"role":"user","content":"three"}`,
	}
	var before []byte
	for n := 2; n <= len(turns); n++ {
		body := wiretest.ChatMessages(`[` + strings.Join(turns[:n], ",") + `]`)
		out, err := pairtest.Body(newChatOnMessages(pairtest.Chat(t, body), wire.Identity{}), translation("vendor", false))
		if err != nil {
			t.Fatal(err)
		}
		again, _ := pairtest.Body(newChatOnMessages(pairtest.Chat(t, body), wire.Identity{}), translation("vendor", false))
		if !bytes.Equal(again, out) {
			t.Errorf("the same request gives %s and %s", out, again)
		}
		start := bytes.Index(out, []byte(`"system"`))
		list := bytes.TrimSuffix(out[start:], []byte(`]}]}`)) // the last turn may continue
		if n != 3 && n != 4 && !bytes.HasPrefix(list, before) {
			t.Errorf("%s\ndoes not begin with\n%s", list, before)
		}
		if n != 3 && n != 4 { // requests with calls without a result
			before = bytes.Clone(list)
		}
	}
}
