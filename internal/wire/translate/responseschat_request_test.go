package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestResponsesAsChatRefuses tests values not supported by chat lines.
func TestResponsesAsChatRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"input":"x","truncation":"auto"}`:                                                       "invalid_request truncation",
		`{"input":"x","context_management":[{"type":"compaction"}]}`:                              "invalid_request context_management",
		`{"input":"x","moderation":{"model":"m"}}`:                                                "invalid_request moderation",
		`{"input":"x","prompt":{"variables":{}}}`:                                                 "invalid_request prompt",
		`{"input":"x","instructions":[{}]}`:                                                       "invalid_request instructions",
		`{"input":"x","reasoning":{"mode":"pro"}}`:                                                "invalid_request reasoning.mode",
		`{"input":"x","text":{"format":{"type":"grammar"}}}`:                                      "invalid_request text.format.type",
		`{"input":"x","tools":[{"type":"web_search"}]}`:                                           "invalid_request tools[0].type",
		`{"input":"x","tools":[{"type":"function","name":"f"},{"type":"namespace","tools":[]}]}`:  "invalid_request tools[1].name",
		`{"input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"web_search"}]}]}`: "invalid_request tools[0].tools[0].type",
		`{"input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"namespace"}]}]}`:  "invalid_request tools[0].tools[0].type",
		`{"input":[{"type":"additional_tools","tools":[{"type":"web_search"}]},{"role":"user","content":"x"}]}`: "invalid_request " +
			"input[0].tools[0].type",
		`{"input":[]}`: "invalid_request input",
		`{"input":[{"type":"reasoning","summary":[]}]}`: "invalid_request input",
		`{"input":[{"role":"robot","content":""}]}`:     "invalid_request input[0].role",
		`{"input":[{"type":"web_search_call"}]}`:        "invalid_request input[0].type",
		`{"input":[{"type":"compaction"}]}`:             "invalid_request input[0].type",
		`{"input":[{"role":"user","content":[{"type":"input_file",` +
			`"file_url":"https://e.com"}]}]}`: "invalid_request input[0].content[0].file_url",
		`{"input":[{"role":"user","content":[{"type":"input_file",` +
			`"filename":"a"}]}]}`: "invalid_request input[0].content[0].file_data",
		`{"input":[{"role":"user",` +
			`"content":[{"type":"input_image"}]}]}`: "invalid_request input[0].content[0].image_url",
		`{"input":[{"role":"user",` +
			`"content":[{"type":"input_text"}]}]}`: "invalid_request input[0].content[0].text",
		`{"input":[{"role":"user",` +
			`"content":[{"type":"input_video"}]}]}`: "invalid_request input[0].content[0].type",
		`{"input":[{"role":"system","content":[{"type":"input_image","image_url":"https://e.com/x"}]}]}`:    "invalid_request input[0].content",
		`{"input":[{"role":"assistant","content":[{"type":"input_image","image_url":"https://e.com/x"}]}]}`: "invalid_request input[0].content",
		`{"input":[{"type":"function_call","name":"f"}]}`:                                                   "invalid_request input[0].call_id",
		`{"input":[{"type":"function_call","call_id":"c"}]}`:                                                "invalid_request input[0].name",
		`{"input":[{"type":"function_call_output","output":"x"}]}`:                                          "invalid_request input[0].call_id",
		`{"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`:                            "invalid_request input[0].call_id",
		`{"input":[{"type":"function_call_output","call_id":"c","output":"x"},{"type":"function_call","call_id":"c","name":"f"},` +
			`{"type":"function_call_output","call_id":"c","output":"y"},` +
			`{"type":"function_call_output","call_id":"c","output":"z"}]}`: "invalid_request input[0].call_id",
		`{"input":[{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call_output","call_id":"c",` +
			`"output":[{"type":"input_file","file_url":"https://e.com/u"}]}]}`: "invalid_request input[1].output[0].file_url",
	} {
		pair := New(pairtest.Responses(t, body), wire.FormChat, wire.Identity{})
		if got := wiretest.FaultOf(t, second(pairtest.Body(pair, wire.Translation{}))); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func second(_ []byte, err error) error { return err }

// TestResponsesAsChat tests single fields; the scenarios test whole requests.
func TestResponsesAsChat(t *testing.T) {
	t.Parallel()
	const asked = `{"model":"vendor","messages":[{"role":"user","content":"x"}]`
	for body, want := range map[string]string{
		`{"input":"x"}`: asked + `,"max_tokens":50}`,
		`{"input":"x","max_output_tokens":9,"metadata":{"a":"b"},"store":true,"include":["reasoning.encrypted_content"],` +
			`"truncation":"disabled","service_tier":"default","max_tool_calls":2}`: asked + `,"max_tokens":9}`,
		`{"input":"x","max_output_tokens":9,"temperature":0.1,"top_p":1,"presence_penalty":0,"frequency_penalty":0,"user":"u",` +
			`"safety_identifier":"s","prompt_cache_key":"k","service_tier":"flex"}`: asked +
			`,"max_tokens":9,"temperature":0.1,"top_p":1,"presence_penalty":0,"frequency_penalty":0,"user":"u","safety_identifier":"s",` +
			`"prompt_cache_key":"k","service_tier":"flex"}`,
		`{"input":"x","max_output_tokens":9,"text":{"format":{"type":"text"}}}`: asked + `,"max_tokens":9}`,
		`{"input":"x","max_output_tokens":9,"text":{"format":{"type":"json_object"}}}`: asked +
			`,"response_format":{"type":"json_object"},"max_tokens":9}`,
		`{"input":"x","max_output_tokens":9,"tool_choice":"auto","parallel_tool_calls":false,"tools":[]}`: asked + `,"max_tokens":9}`,
		`{"input":"x","max_output_tokens":9,"tool_choice":"none","tools":[{"type":"function","function":{"name":"f","strict":false}}]}`: asked +
			`,"tools":[{"type":"function","function":{"name":"f","strict":false}}],"tool_choice":"none","max_tokens":9}`,
		`{"input":"x","max_output_tokens":9,"stream":true}`: asked + `,"max_tokens":9,"stream":true}`,
		`{"max_output_tokens":9,"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},` +
			`{"role":"developer","content":[{"type":"input_text","text":"c"},{"type":"input_text","text":"d"}]},
			{"role":"assistant","content":[{"type":"output_text","text":"e"},{"type":"refusal","refusal":"f"}]},` +
			`{"role":"assistant","content":null},{"role":"user","content":[]}]}`: `{"model":"vendor","messages":[` +
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"system","content":"c\nd"},` +
			`{"role":"assistant","content":"e\nf"},{"role":"user","content":"Continue."}],"max_tokens":9}`,
		// An id reused in every turn, a late result, a missing result.
		`{"max_output_tokens":9,"input":[{"type":"function_call","call_id":"c","name":"f","arguments":{"a":1}},` +
			`{"role":"user","content":"u"},{"type":"function_call_output","call_id":"c","output":"1"},
			{"type":"function_call","call_id":"c","name":"g","arguments":"{}"},{"type":"reasoning","summary":[]},` +
			`{"type":"custom_tool_call","call_id":"d","name":"h"},` +
			`{"type":"function_call_output","call_id":"c","output":"2"}]}`: `{"model":"vendor","messages":[` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},` +
			`{"role":"tool","tool_call_id":"c","content":"1"},{"role":"user","content":"u"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"g","arguments":"{}"}},` +
			`{"id":"d","type":"function","function":{"name":"h","arguments":"{\"input\":\"\"}"}}]},` +
			`{"role":"tool","tool_call_id":"c","content":"2"},{"role":"tool","tool_call_id":"d","content":"(no result)"}],"max_tokens":9}`,
		// Tools in items, one of them repeated.
		`{"max_output_tokens":9,"tools":[{"type":"function","name":"g","description":"the first"}],"tool_choice":"auto","input":[` +
			`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"g"},` +
			`{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]},{"role":"user","content":"x"}]}`: asked +
			`,"tools":[{"type":"function","function":{"name":"g","description":"the first"}},` +
			`{"type":"function","function":{"name":"n__f"}}],"tool_choice":"auto","max_tokens":9}`,
		// A search for tools: those already found are tools, and there is nothing else to search.
		`{"max_output_tokens":9,"tools":[{"type":"tool_search","execution":"client","parameters":{"type":"object"}}],"tool_choice":"auto",` +
			`"input":[{"type":"tool_search_call","call_id":"s","execution":"client","arguments":{"query":"q"}},` +
			`{"type":"tool_search_output","call_id":"s","execution":"client","tools":[{"type":"function","name":"g"}]},` +
			`{"role":"user","content":"x"}]}`: asked +
			`,"tools":[{"type":"function","function":{"name":"g"}}],"tool_choice":"auto","max_tokens":9}`,
		`{"input":"x","max_output_tokens":9,"tool_choice":"auto","tools":[{"type":"tool_search"}]}`: asked + `,"max_tokens":9}`,
		// A call with several results, and two calls with the same id at once.
		`{"max_output_tokens":9,"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"a"},` +
			`{"type":"custom_tool_call_output","call_id":"c","output":"1"},{"type":"custom_tool_call_output","call_id":"c",` +
			`"output":[{"type":"input_text","text":"2"}]},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"},` +
			`{"type":"function_call","call_id":"d","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"d","output":"3"},` +
			`{"type":"function_call_output","call_id":"d","output":"4"}]}`: `{"model":"vendor","messages":[` +
			`{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"input\":\"a\"}"}}]},` +
			`{"role":"tool","tool_call_id":"c","content":"1\n2"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"function","function":{"name":"f","arguments":"{}"}},` +
			`{"id":"d","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"d","content":"3"},{"role":"tool","tool_call_id":"d","content":"4"}],"max_tokens":9}`,
	} {
		pair := New(pairtest.Responses(t, body), wire.FormChat, wire.Identity{})
		got, err := pairtest.Body(pair, wire.Translation{Edits: wire.Edits{Model: "vendor",
			Limit: 50, LimitField: "max_tokens"}})
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\ngot  %s\nwant %s", body, err, got, want)
			continue
		}
		mustBeChat(t, got)
	}
}

// FuzzResponsesAsChat checks that a request accepted by the checks becomes a chat request or is
// rejected.
func FuzzResponsesAsChat(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":"x","stream":true}`))
	f.Add([]byte(`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"},` +
		`{"type":"input_image","image_url":"data:image/png;base64,A"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c","output":"1"}]}`))
	f.Add([]byte(`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"a"}],` +
		`"tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"a"}}],` +
		`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"custom","name":"f"}]}}`))
	f.Add([]byte(`{"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{}},"verbosity":"low"},` +
		`"reasoning":{"effort":"low"},"max_output_tokens":5,"tools":[{"type":"web_search"}],"max_tool_calls":1}`))
	f.Add([]byte(`{"input":[{"type":"function_call","call_id":"c","namespace":"n","name":"f","arguments":"{}"}],` +
		`"tools":[{"type":"function","name":"n__f"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},` +
		`{"type":"custom","name":"g"}]}],"tool_choice":{"type":"function","namespace":"n","name":"f"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := responses.Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		chat, err := pairtest.Body(New(r, wire.FormChat, wire.Identity{}), wire.Translation{Edits: wire.Edits{Model: "vendor", AskUsage: true}})
		if err != nil {
			wiretest.FaultOf(t, err)
			return
		}
		if !json.Valid(chat) || bytes.Contains(chat, []byte(`"input_image"`)) && !bytes.Contains(body, []byte(`input_image`)) {
			t.Fatalf("chat %s", chat)
		}
		if _, err := completions.Open(chat); err != nil {
			t.Fatal(fmt.Errorf("%w: %s", err, chat))
		}
	})
}
