package responses

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
)

func TestOpenResponses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"m","input":"x"}`:           "",
		`[]`:                                  "invalid_request",
		`{"input":`:                           "invalid_json",
		"{\"input\":\"\xff\"}":                "invalid_encoding",
		`{"model":"a","model":"b"}`:           "invalid_json",
		`{"input":[{"type":"a","type":"b"}]}`: "invalid_json",
		`{"tools":[{"type":"function","\u0074ype":"mcp"}]}`:          "invalid_json",
		`{"reasoning":{"effort":"low","effort":"high"}}`:             "invalid_json",
		`{"metadata":{"a":"1","a":"2"}}`:                             "invalid_json",
		`{"input":[{"content":[{"type":"a","type":"input_text"}]}]}`: "invalid_json",
	} {
		_, err := Open([]byte(body))
		if got := wiretest.FaultOf(t, err); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func TestResponsesModel(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{"model":"a\u0062"}`: "ab", `{"model":""}`: "", `{"model":7}`: "",
		`{}`: "", `{"model":null}`: ""} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Model()
		if got != want || (want == "") != (wiretest.FaultOf(t, err) == "model_not_found model") {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
}

// TestReferenceToAnItemNamesTheSetting checks that the error names the client's setting: some
// clients send references by default.
func TestReferenceToAnItemNamesTheSetting(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"input":[{"type":"item_reference","id":"rs_1"}]}`,
		`{"input":[{"id":"msg_1"}]}`,
		`{"input":[{"role":"user","content":[{"type":"item_reference","id":"msg_1"}]}]}`,
	} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), "`store`") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestResponsesCheckRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:                                          "invalid_request input",
		`{"input":null}`:                              "invalid_request input",
		`{"input":7}`:                                 "invalid_request input",
		`{"input":{"role":"user"}}`:                   "invalid_request input",
		`{"input":["x"]}`:                             "invalid_request input[0]",
		`{"input":[{"content":""}]}`:                  "invalid_request input[0].role",
		`{"input":[{"role":7}]}`:                      "invalid_request input[0].role",
		`{"input":[{"type":7}]}`:                      "invalid_request input[0].type",
		`{"input":[{"role":"user","content":7}]}`:     "invalid_request input[0].content",
		`{"input":[{"role":"user","content":["x"]}]}`: "invalid_request input[0].content[0]",
		`{"input":[{"type":"function_call_output","output":{}}]}`: "invalid_request input[0].output",
		`{"input":[{"type":"item_reference","id":"msg_1"}]}`:      "invalid_request input[0].type",
		`{"input":[{"id":"msg_1"}]}`:                              "invalid_request input[0].id",
		`{"input":[{"type":null,"id":"msg_1"}]}`:                  "invalid_request input[0].id",
		`{"input":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"input_image",` +
			`"file_id":"f"}]}]}`: "invalid_request input[1].content[0].file_id",
		`{"input":[{"role":"user","content":[{"type":"input_file",` +
			`"file_id":"f"}]}]}`: "invalid_request input[0].content[0].file_id",
		`{"input":[{"role":"user","content":[{"type":"input_audio",` +
			`"input_audio":{}}]}]}`: "invalid_request input[0].content[0].type",
		`{"input":[{"type":"function_call_output","output":[{"type":"input_image",` +
			`"file_id":"f"}]}]}`: "invalid_request input[0].output[0].file_id",
		`{"input":[{"type":"computer_call_output","output":{"type":"computer_screenshot",` +
			`"file_id":"f"}}]}`: "invalid_request input[0].output.file_id",
		`{"input":[{"type":"code_interpreter_call",` +
			`"container_id":"c"}]}`: "invalid_request input[0].container_id",
		`{"input":[{"type":"additional_tools","tools":[{"type":"file_search",` +
			`"vector_store_ids":["v"]}]}]}`: "invalid_request input[0].tools[0].vector_store_ids",
		`{"input":"x","previous_response_id` +
			`":"resp_1"}`: "invalid_request previous_response_id",
		`{"input":"x","conversation":"conv_1"}`:  "invalid_request conversation",
		`{"input":"x","container":"c"}`:          "invalid_request container",
		`{"input":"x","vector_store_ids":["v"]}`: "invalid_request vector_store_ids",
		`{"input":"x","prompt":{"id":"pmpt_1"}}`: "invalid_request prompt.id",
		`{"input":"x","prompt":"pmpt_1"}`:        "invalid_request prompt",
		`{"input":"x","prompt_cache_options":{"comparison_respons` +
			`e_id":"r"}}`: "invalid_request prompt_cache_options.comparison_response_id",
		`{"input":"x","background":true}`:  "invalid_request background",
		`{"input":"x","background":"yes"}`: "invalid_request background",
		`{"input":"x","audio":{}}`:         "invalid_request audio",
		`{"input":"x","modalities":["text` +
			`","audio"]}`: "invalid_request modalities[1]",
		`{"input":"x","stream":"yes"}`:        "invalid_request stream",
		`{"input":"x","max_output_tokens":0}`: "invalid_max_tokens max_output_tokens",
		`{"input":"x","max_output_t` +
			`okens":1.5}`: "invalid_max_tokens max_output_tokens",
		`{"input":"x","max_output_t` +
			`okens":"9"}`: "invalid_max_tokens max_output_tokens",
		`{"input":"x",` +
			`"service_tier":7}`: "invalid_request service_tier",
		`{"input":"x","tools":[{"type":"file_search",` +
			`"vector_store_ids":["v"]}]}`: "invalid_request tools[0].vector_store_ids",
		`{"input":"x","tools":[{"type":"code_interpreter",` +
			`"container":"cntr_1"}]}`: "invalid_request tools[0].container",
		`{"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto",` +
			`"file_ids":["f"]}}]}`: "invalid_request tools[0].container.file_ids",
		`{"input":"x","tools":[{"type":"shell","environment":{"type":"container_reference",` +
			`"container_id":"c"}}]}`: "invalid_request tools[0].environment.container_id",
		`{"input":"x","tools":[{"type":"image_generation",` +
			`"input_image_mask":{"file_id":"f"}}]}`: "invalid_request tools[0].input_image_mask.file_id",
		`{"input":"x","tools":[{"type":"namespace","tools":[{"type":"file_search",` +
			`"vector_store_ids":["v"]}]}]}`: "invalid_request tools[0].tools[0].vector_store_ids",
		`{"input":"x","tools":[{"tools":[{"tools":[{"tools":[{"tools":[{"tools":[{}` +
			`]}]}]}]}]}]}`: "invalid_request tools[0].tools[0].tools[0].tools[0].tools[0].tools",
		`{"input":"x","tools":[{"type":"file_search","tools":[],"vector_store_ids":["v"]}]}`: "invalid_request tools[0].vector_store_ids",
	} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := wiretest.FaultOf(t, r.Check()); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestResponsesCheckFills(t *testing.T) {
	t.Parallel()
	const image = "data:image/png;base64,AAAAAAAA"
	for body, want := range map[string]wire.Parameters{
		`{"input":"x"}`: {N: 1},
		`{"input":[],"stream":true,"max_output_tokens":9}`: {N: 1, Stream: true, Limit: 9, LimitParam: "max_output_tokens"},
		`{"input":"x","service_tier":"flex","background":false,"store":true}`: {N: 1, ServiceTier: "flex",
			Options: []wire.PricedField{{Param: "service_tier", Name: "flex"}}},
		`{"input":"x","service_tier":"auto","previous_response_id":null}`: {N: 1},
		`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"` + image +
			`"},{"type":"input_image","image_url":"https://e.com/a"}]}]}`: {N: 1,
			Bound: wire.PromptBound{TextBytes: -int64(len(image) + 2), Images: 2}},
		`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"` + image + `"}]}]}`: {N: 1,
			Bound: wire.PromptBound{TextBytes: -int64(len(image) + 2), Images: 1}},
		`{"input":[{"type":"image_generation_call","result":"AAAA"}]}`: {N: 1,
			Bound: wire.PromptBound{TextBytes: -6, Images: 1}},
		`{"input":[{"role":"user","content":[{"type":"input_file","file_data":"x"}]}]}`: {N: 1,
			Bound: wire.PromptBound{Unbounded: true}},
		`{"input":[{"role":"user","content":[{"type":"input_video","video_url":"https://e.com/v"}]}]}`: {N: 1,
			Bound: wire.PromptBound{Unbounded: true}},
		`{"input":[{"type":"brand_new"}]}`: {N: 1,
			Bound: wire.PromptBound{Unbounded: true}},
		`{"input":[{"type":"reasoning","summary":[],"encrypted_content":"A"},` +
			`{"type":"function_call"}]}`: {N: 1},
		`{"input":[{"role":"assistant","content":[{"type":"output_text","text":"","annotations":[{"type":"container_file_citation",` +
			`"container_id":"c","file_id":"f"}]}]}]}`: {N: 1},
		`{"input":"x","client_metadata":{"thread_id":"t","file_id":"f"}}`: {N: 1}, // of Codex
		`{"input":[{"type":"local_shell_call","action":{"type":"exec","command":["ls"],` +
			`"env":{"NAME":"a","URL":"b","name":"c"}}}]}`: {N: 1},
		`{"input":"x","tools":[{"type":"function","name":"f","parameters":{"file_id":{}}},{"type":"custom"},{"type":"apply_patch"},` +
			`{"type":"tool_search","execution":"client"},
			{"type":"namespace","tools":[{"type":"function","parameters":{"properties":{"file_id":{}}}}]}]}`: {N: 1},
		`{"input":"x","max_tool_calls":3,"tools":[{"type":"web_search_preview_2025_03_11"},` +
			`{"type":"namespace","tools":[{"type":"image_generation"}]},{"type":"mcp"},
			{"type":"computer_use_preview"},{"type":"local_shell"},{"type":"shell"},{"type":"computer"},
			{"type":"shell","environment":{"type":"local"}},{"type":"shell","environment":{"type":"container_auto"}}]}`: {N: 1,
			Bound: wire.PromptBound{Unbounded: true},
			Tools: []wire.PricedField{
				{Param: "tools[0].type", Name: "web_search", MaxCalls: 3}, {Param: "tools[1].tools[0].type",
					Name: "image_generation", MaxCalls: 3}, {Param: "tools[2].type", Name: "mcp", MaxCalls: 3},
				{Param: "tools[3].type", Name: "computer", MaxCalls: 3}, {Param: "tools[5].type", Name: "shell",
					MaxCalls: 3}, {Param: "tools[8].type", Name: "shell", MaxCalls: 3}}},
		`{"input":"x","plugins":[{"id":"web"}]}`: {N: 1, Bound: wire.PromptBound{Unbounded: true},
			Tools: []wire.PricedField{{Param: "plugins[0].id", Name: "web_search", MaxCalls: 0}}, Routing: []string{"plugins"}},
		`{"input":[{"type":"additional_tools","tools":[{"type":"code_interpreter"}]}]}`: {N: 1,
			Bound: wire.PromptBound{Unbounded: true}, Tools: []wire.PricedField{
				{Param: "input[0].tools[0].type", Name: "code_interpreter", MaxCalls: 0}}},
	} {
		r := openRequest(t, body)
		got := r.Parameters
		got.Conversation, got.Optional, got.Extra = 0, nil, nil
		want.Bound.TextBytes += r.Size()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", body, got, want)
		}
		if err := r.Check(); err != nil || !reflect.DeepEqual(r.Tools, want.Tools) || r.Bound != want.Bound {
			t.Errorf("%s: the second check says %+v, %v", body, r.Parameters, err)
		}
	}
}

func TestResponsesConversation(t *testing.T) {
	t.Parallel()
	sum := func(body string) uint64 { return openRequest(t, body).Conversation }
	first := sum(`{"instructions":"a","input":[{"role":"user","content":"hi"}]}`)
	for body, same := range map[string]bool{
		`{"instructions":"a","stream":true,"input":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},` +
			`{"role":"user","content":"x"}]}`: true,
		`{"instructions":"b","input":[{"role":"user","content":"hi"}]}`:                        false,
		`{"instructions":"a","input":[{"role":"user","content":"ho"}]}`:                        false,
		`{"instructions":"a","prompt_cache_key":"k","input":[{"role":"user","content":"hi"}]}`: false,
	} {
		if got := sum(body); got == 0 || (got == first) != same {
			t.Errorf("%s: %d, the first was %d", body, got, first)
		}
	}
	if sum(`{"prompt_cache_key":"k","input":"a"}`) != sum(`{"input":"b","prompt_cache_key":"k"}`) {
		t.Error("one key, two conversations")
	}
}

func TestResponsesBody(t *testing.T) {
	t.Parallel()
	edits := wire.Edits{Model: "vendor", Limit: 7, LimitField: "ignored", AskUsage: true}
	for body, want := range map[string]string{
		`{"model":"m","input":"x"}`: `{"model":"vendor","input":"x","max_output_tokens":7,"store":false}`,
		"{ \"input\" : \"\\u00e9\",\n\"model\":\"m\", \"store\" : true, \"max_output_tokens\":3, " +
			"\"odd\":{\"a\":1.0} }": "{ \"input\" : \"\\u00e9\",\n\"model\":\"vendor\", \"store\" : false, \"max_output_tokens\":3, " +
			"\"odd\":{\"a\":1.0} }",
		`{"model":"vendor","input":"x",` +
			`"store":false,"max_output_tokens":3}`: `{"model":"vendor","input":"x","store":false,"max_output_tokens":3}`,
		`{"model":"vendor","input":"x","store":null,` +
			`"max_output_tokens":null}`: `{"model":"vendor","input":"x","store":false,"max_output_tokens":7}`,
		`{"input":"x","store":"no","stream":true}`: `{"input":"x","store":false,"stream":true,"model":"vendor","max_output_tokens":7}`,
	} {
		r := openRequest(t, body)
		if got := string(r.Body(edits).Bytes()); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
}

func TestResponsesPrompt(t *testing.T) {
	t.Parallel()
	var c wire.Counter
	short := openRequest(t, `{"input":"one two three"}`)
	long := openRequest(t,
		`{"instructions":"be brief","tools":[{"type":"function","name":"f"}],`+
			`"input":[{"role":"user","content":[{"type":"input_text","text":"one two three"},
		{"type":"input_image","image_url":"data:image/png;base64,`+strings.Repeat("A", 4000)+
			`"}]},{"type":"function_call","name":"f","arguments":"{}"},{"type":"function_call_output","output":"sunny"}]}`)
	if got := short.Prompt(&c, 0); got != 3+4+3 {
		t.Errorf("short: %d", got)
	}
	if got := long.Prompt(&c, 1000); got < 1030 || got > 1060 {
		t.Errorf("long: %d", got)
	}
	if got := short.Estimate(); got != int64(len(`{"input":"one two three"}`))/4+3 {
		t.Errorf("estimate %d", got)
	}
}

// FuzzResponsesRequest checks that a request accepted by the checks can be sent and counted, and
// that no bytes cause a panic.
func FuzzResponsesRequest(f *testing.F) {
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
		r, err := Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		if sent := r.Body(wire.Edits{Model: "vendor", Limit: 5}).Bytes(); !json.Valid(sent) {
			t.Fatalf("sent %s", sent)
		}
		if tokens := r.Prompt(&wire.Counter{}, 100); tokens < 1 {
			t.Fatalf("%d tokens", tokens)
		}
		if object := NewObject(identity, r); !json.Valid(object.Append(nil, State{Status: "in_progress"})) {
			t.Fatalf("echo %s", object.echo)
		}
	})
}

// TestItemsWithoutWhatNobodyStored checks that a reasoning model is asked for encrypted reasoning,
// and that the input has no references to the provider's store.
func TestItemsWithoutWhatNobodyStored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, want       string
		reasoning, plain bool
	}{
		{`{"input":"x"}`, `{"input":"x","store":false,"include":["reasoning.encrypted_content"]}`, true, false},
		{`{"input":"x"}`, `{"input":"x","store":false}`, true, true},
		{`{"input":"x"}`, `{"input":"x","store":false}`, false, false},
		{`{"input":"x","include":["a"]}`, `{"input":"x","include":["a","reasoning.encrypted_content"],"store":false}`, true, false},
		{`{"input":"x","include":null}`, `{"input":"x","include":["reasoning.encrypted_content"],"store":false}`, true, false},
		{`{"input":"x","include":[ "reasoning.encrypted_content" ],"store":false}`,
			`{"input":"x","include":[ "reasoning.encrypted_content" ],"store":false}`, true, false},
		{`{"store":false,"input":[ {"role":"user","content":"x"}, {"type":"reasoning","id":"rs_1","summary":[]},` +
			`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"E"},{"id":"fc_1","type":"function_call","call_id":"c",` +
			`"name":"f","arguments":"{\"id\": 1}"},{"type":"function_call_output","call_id":"c","output":"id"},` +
			`{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"y"}]}]}`,
			`{"store":false,"input":[{"role":"user","content":"x"},{"type":"reasoning","summary":[],"encrypted_content":"E"},` +
				`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"id\": 1}"},` +
				`{"type":"function_call_output","call_id":"c","output":"id"},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"y"}]}]}`, false, false},
		{`{"store":false,"input":[ {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"h"}]}, ` +
			`{"type":"shell_call","id":"sh_1","action":{}} ]}`,
			`{"store":false,"input":[ {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"h"}]}, ` +
				`{"type":"shell_call","id":"sh_1","action":{}} ]}`, false, false},
	} {
		r := openRequest(t, c.body)
		got, err := r.Direct(wire.Identity{}).Body(wire.Translation{Reasoning: c.reasoning, NoEncrypted: c.plain})
		if err != nil || strings.Replace(string(got.Bytes()), `,"model":""`, "", 1) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.body, got, c.want)
		}
	}
}
