package translate

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// asChat translates a messages request and returns the named members of the result, one per line.
func asChat(t *testing.T, body string, in wire.Translation, names ...string) string {
	t.Helper()
	out, err := pairtest.Body(newMessagesOnChat(pairtest.Messages(t, body), wire.Identity{}), in)
	if err != nil {
		t.Fatal(err)
	}
	return pairtest.Members(pairtest.Chat(t, string(out)).Doc, names...)
}

// nativeAsk returns a messages request with the given list of messages.
func nativeAsk(list, more string) string {
	return `{"model":"m","max_tokens":9,"messages":` + list + more + `}`
}

// TestMessagesAsChatRows tests single fields.
func TestMessagesAsChatRows(t *testing.T) {
	t.Parallel()
	const hi = `[{"role":"user","content":"hi"}]`
	const tool = `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	thinks := wire.Translation{Edits: wire.Edits{Model: "v", LimitField: "max_completion_tokens"}, Reasoning: true}
	plain := wire.Translation{Edits: wire.Edits{Model: "v"}}
	for name, test := range map[string]struct {
		body string
		in   wire.Translation
		read string
		want string
	}{
		"limit":              {nativeAsk(hi, ``), plain, "max_tokens max_completion_tokens", "9\n"},
		"newer limit":        {nativeAsk(hi, ``), thinks, "max_tokens max_completion_tokens", "\n9"},
		"sampling":           {nativeAsk(hi, `,"temperature":0.50,"top_p":1,"top_k":3`), plain, "temperature top_p top_k", "0.50\n1\n"},
		"sampling, thinking": {nativeAsk(hi, `,"temperature":0.5`), thinks, "temperature", ""},
		"stops":              {nativeAsk(hi, `,"stop_sequences":["a","b","c","d","e"]`), plain, "stop", `["a","b","c","d"]`},
		"no stops":           {nativeAsk(hi, `,"stop_sequences":[]`), plain, "stop", ``},
		"dropped": {nativeAsk(hi,
			`,"service_tier":"auto","context_management":{},"diagnostics":{},"cache_control":{"type":"ephemeral"}`), plain,
			"service_tier context_management diagnostics cache_control", "\n\n\n"},
		"user":         {nativeAsk(hi, `,"metadata":{"user_id":"u"}`), plain, "user", `"u"`},
		"long user":    {nativeAsk(hi, `,"metadata":{"user_id":"`+strings.Repeat("u", 65)+`"}`), plain, "user", ``},
		"stream":       {nativeAsk(hi, `,"stream":true`), plain, "stream stream_options", "true\n" + `{"include_usage":true}`},
		"not streamed": {nativeAsk(hi, ``), plain, "stream stream_options", "\n"},
		"system string": {nativeAsk(hi, `,"system":"s"`), plain, "messages",
			`[{"role":"system","content":"s"},{"role":"user","content":"hi"}]`},
		"blank system": {nativeAsk(hi, `,"system":[{"type":"text","text":" "}]`), plain, "messages", hi},
		"choice auto":  {nativeAsk(hi, tool+`,"tool_choice":{"type":"auto"}`), plain, "tool_choice parallel_tool_calls", `"auto"` + "\n"},
		"choice any":   {nativeAsk(hi, tool+`,"tool_choice":{"type":"any"}`), plain, "tool_choice", `"required"`},
		"choice none":  {nativeAsk(hi, tool+`,"tool_choice":{"type":"none"}`), plain, "tool_choice", `"none"`},
		"choice named": {nativeAsk(hi,
			tool+`,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}`), plain,
			"tool_choice parallel_tool_calls", `{"type":"function","function":{"name":"f"}}` + "\nfalse"},
		"choice, no tools": {nativeAsk(hi, `,"tool_choice":{"type":"any"}`), plain, "tool_choice", ``},
		"thinking disabled": {nativeAsk(hi, `,"thinking":{"type":"disabled"},"output_config":{"effort":"high"}`), thinks,
			"reasoning_effort", `"none"`},
		"adaptive": {nativeAsk(hi, `,"thinking":{"type":"adaptive"}`), thinks, "reasoning_effort", ``},
		"adaptive by effort": {nativeAsk(hi, `,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`), thinks,
			"reasoning_effort", `"max"`},
		"small budget":  {nativeAsk(hi, `,"thinking":{"type":"enabled","budget_tokens":4095}`), thinks, "reasoning_effort", `"low"`},
		"middle budget": {nativeAsk(hi, `,"thinking":{"type":"enabled","budget_tokens":4096}`), thinks, "reasoning_effort", `"medium"`},
		"large budget":  {nativeAsk(hi, `,"thinking":{"type":"enabled","budget_tokens":16384}`), thinks, "reasoning_effort", `"high"`},
		"not thinking":  {nativeAsk(hi, `,"thinking":{"type":"enabled","budget_tokens":16384}`), plain, "reasoning_effort", ``},
		"older format": {nativeAsk(hi, `,"output_format":{"type":"json_schema","schema":{"a":1}}`), plain,
			"response_format", `{"type":"json_schema","json_schema":{"name":"output","schema":{"a":1}}}`},
		"strict tools": {nativeAsk(hi, `,"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":{"a":{"type":"string",`+
			`"minLength":1}},"required":["a"]}},{"name":"g","strict":true,"input_schema":{"type":"object","properties":{"a":{}}}},`+
			`{"name":"h","strict":false,"input_schema":{"type":"object"}}]`), plain, "tools",
			`[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string",` +
				`"description":"minLength: 1"}},"required":["a"],"additionalProperties":false},"strict":true}},` +
				`{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{"a":{}}}}},` +
				`{"type":"function","function":{"name":"h","parameters":{"type":"object"}}}]`},
		"text document": {nativeAsk(
			`[{"role":"user","content":[{"type":"document","title":"T","context":"C","source":{"type":"content","content":[{"type":"text",`+
				`"text":"a"},{"type":"image","source":{"type":"url","url":"http://e.com"}}]}}]}]`,
			``), plain, "messages",
			`[{"role":"user","content":[{"type":"text","text":"T"},{"type":"text","text":"C"},{"type":"text","text":"a"},` +
				`{"type":"image_url","image_url":{"url":"http://e.com"}}]}]`},
		"search result": {nativeAsk(
			`[{"role":"user","content":[{"type":"search_result","title":"T","source":"S","content":[{"type":"text","text":"a"}]}]}]`,
			``), plain, "messages", `[{"role":"user","content":"T\n\nS\n\na"}]`},
		"hosted tools of another line": {
			nativeAsk(`[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search",`+
				`"input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"found"}]},`+
				`{"role":"user","content":"more"}]`,
				``), plain, "messages",
			`[{"role":"user","content":"hi"},{"role":"assistant","content":"found"},{"role":"user","content":"more"}]`},
		"system between call and result": {
			nativeAsk(`[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},`+
				`{"role":"system","content":"s"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`,
				``), plain, "messages",
			`[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f",` +
				`"arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":""},{"role":"system","content":"s"}]`},
		"a result of nothing": {nativeAsk(`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"lost"}]}]`,
			``), plain, "messages", `[{"role":"user","content":"lost"}]`},
		"prefill": {nativeAsk(`[{"role":"user","content":"hi"},{"role":"assistant","content":"{"}]`, ``), plain,
			"messages", `[{"role":"user","content":"hi"},{"role":"assistant","content":"{"},{"role":"user","content":"Continue."}]`},
		"a long id": {nativeAsk(`[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"`+strings.Repeat("x",
			41)+`","name":"f"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+strings.Repeat("x",
			41)+`","content":"r"}]}]`, ``), plain, "messages",
			`[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"` + strings.Repeat("x",
				31) + `_fb64f7a7","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + strings.Repeat("x",
				31) + `_fb64f7a7","content":"r"}]`},
		"only thoughts": {nativeAsk(
			`[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""}]}]`,
			``), plain, "messages", hi},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := asChat(t, test.body, test.in, strings.Fields(test.read)...); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestMessagesAsChatRefuses tests values unknown to the form.
func TestMessagesAsChatRefuses(t *testing.T) {
	t.Parallel()
	const hi = `[{"role":"user","content":"hi"}]`
	user := func(block string) string { return nativeAsk(`[{"role":"user","content":[`+block+`]}]`, ``) }
	for param, body := range map[string]string{
		"tools[0].type": nativeAsk(hi, `,"tools":[{"type":"web_search_20260318","name":"web_search"}]`),
		"tools[1].type": nativeAsk(hi,
			`,"tools":[{"name":"f","input_schema":{}},{"type":"bash_20250124","name":"bash"}]`),
		"tools[0].name":                            nativeAsk(hi, `,"tools":[{"input_schema":{}}]`),
		"tools[0].input_schema":                    nativeAsk(hi, `,"tools":[{"name":"f"}]`),
		"tool_choice.name":                         nativeAsk(hi, `,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool"}`),
		"speed":                                    nativeAsk(hi, `,"speed":"fast"`),
		"mcp_servers":                              nativeAsk(hi, `,"mcp_servers":[]`),
		"output_config.effort":                     nativeAsk(hi, `,"output_config":{"effort":"huge"}`),
		"output_config.format":                     nativeAsk(hi, `,"output_config":{"format":{"type":"grammar"}}`),
		"system":                                   nativeAsk(hi, `,"system":5`),
		"system[0]":                                nativeAsk(hi, `,"system":[{"type":"image"}]`),
		"messages[0].role":                         nativeAsk(`[{"role":"tool","content":"x"}]`, ``),
		"messages[0].content":                      nativeAsk(`[{"role":"user"}]`, ``),
		"messages[0].content[0].type":              user(`{"type":"mystery"}`),
		"messages[0].content[0].text":              user(`{"type":"text"}`),
		"messages[0].content[0].source":            user(`{"type":"image","source":{"type":"url","url":""}}`),
		"messages[0].content[0].source.type":       user(`{"type":"document","source":{"type":"url","url":"https://e.com/a.pdf"}}`),
		"messages[0].content[0].source.media_type": user(`{"type":"document","source":{"type":"base64","media_type":"text/html","data":"AA"}}`),
		"messages[0].content[0].content[1].type": user(
			`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a"},{"type":"mystery"}]}`),
		"messages[1].content[0]": nativeAsk(`[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","name":"f"}]}]`,
			``),
		"messages[0].content[0].source.content[0].type": user(`{"type":"document","source":{"type":"content","content":[{"type":"mystery"}]}}`),
	} {
		t.Run(param, func(t *testing.T) {
			t.Parallel()
			pair := newMessagesOnChat(pairtest.Messages(t, body), wire.Identity{})
			out, err := pairtest.Body(pair, wire.Translation{Edits: wire.Edits{Model: "v"}})
			if code, at := wiretest.CodeOf(t, err); code != fault.InvalidRequest || at != param {
				t.Errorf("%s %s for %s", code, at, out)
			}
		})
	}
}

// TestMessagesFromChatStreams tests the vendors' variants of tool calls. The expected stream has a
// letter for each event (t text, h thinking, c call with its name and arguments), and the
// stop_reason.
func TestMessagesFromChatStreams(t *testing.T) {
	t.Parallel()
	call := func(inner string) string { return wiretest.Delta(`{"tool_calls":[`+inner+`]}`, "null") }
	stop := wiretest.Delta(`{}`, `"stop"`)
	for name, test := range map[string]struct{ stream, want string }{
		"every call has index 0": {wiretest.Frames(call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`),
			call(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`), stop), "f{} g{} tool_use"},
		"id and name in every delta": {wiretest.Frames(call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}`),
			call(`{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}`), stop), `f{"a":1} tool_use`},
		"another id in every delta": {wiretest.Frames(call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}`),
			call(`{"index":0,"id":"b","function":{"arguments":"1}"}}`), stop), `f{"a":1} tool_use`},
		"no index, joined by id": {
			wiretest.Frames(call(`{"id":"a","function":{"name":"f","arguments":"{\"a\":"}},{"id":"b","function":{"name":"g","arguments":"{"}}`),
				call(`{"id":"b","function":{"arguments":"}"}}`), call(`{"id":"a","function":{"arguments":"1}"}}`), stop), `f{"a":1} g{} tool_use`},
		"no index, no id": {wiretest.Frames(call(`{"function":{"name":"f","arguments":"{}"}}`),
			call(`{"function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"function":{"arguments":"1}"}}`), stop), `f{} f{"a":1} tool_use`},
		"the name comes late": {wiretest.Frames(call(`{"index":0,"id":"a","function":{"arguments":"{}"}}`),
			call(`{"index":0,"function":{"name":"f"}}`), stop), "f{} tool_use"},
		"no name at all": {wiretest.Frames(call(`{"index":0,"function":{"arguments":"{}"}}`), stop), "{} tool_use"},
		"no arguments at all": {wiretest.Frames(call(`{"index":0,"id":"a","function":{"name":"f"}}`),
			call(`{"index":1,"id":"b","function":{"name":"g","arguments":""}}`), stop), "f g tool_use"},
		"arguments that are not an object": {wiretest.Frames(call(`{"index":0,"id":"a","function":{"name":"f","arguments":"oops"}}`),
			call(`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`), stop), "foops g{} tool_use"},
		"the older form": {wiretest.Frames(wiretest.Delta(`{"function_call":{"name":"f","arguments":"{\"a\""}}`,
			"null"), wiretest.Delta(`{"function_call":{"arguments":":1}"}}`, "null"), wiretest.Delta(`{}`, `"function_call"`)), `f{"a":1} tool_use`},
		"text after a call": {wiretest.Frames(call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`),
			wiretest.Delta(`{"content":"x"}`, "null"), stop), "f{} tx tool_use"},
		"reasoning in details": {wiretest.Frames(
			wiretest.Delta(`{"reasoning_details":[{"type":"reasoning.text","text":"h"},{"type":"reasoning.encrypted","data":"AA"}]}`,
				"null"), stop), "hh end_turn"},
		"a signature": {wiretest.Frames(wiretest.Delta(`{"thinking_signature":"S","thinking":"h"}`,
			"null"), stop), "hh end_turn"},
		"reasoning between texts": {wiretest.Frames(wiretest.Delta(`{"content":"a"}`, "null"),
			wiretest.Delta(`{"reasoning":"b"}`, "null"), wiretest.Delta(`{"content":"c"}`, "null"), stop), "ta hb tc end_turn"},
		"a refusal": {wiretest.Frames(wiretest.Delta(`{"refusal":"no"}`, "null"), stop), "tno refusal"},
		"another choice": {wiretest.Frames(`{"choices":[{"index":1,"delta":{"content":"x"}}]}`,
			wiretest.Delta(`{"content":"y"}`, "null"), `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`, stop), "tx end_turn"},
		"a whole message": {wiretest.Frames(`{"choices":[{"message":{"content":"x"},"finish_reason":"length"}]}`), "tx max_tokens"},
		"more after the finish": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, `"stop"`),
			wiretest.Delta(`{"content":"y"}`, `"stop"`)), "tx end_turn"},
		"the finish comes twice": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, `"stop"`), wiretest.Delta(`{}`,
			`"length"`)), "tx end_turn"},
		"nothing":   {wiretest.Frames(stop), "end_turn"},
		"no finish": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, "null"), "[DONE]"), "tx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := pairtest.Flow([]byte(test.stream), messagesWriter(pairtest.Identity()), completions.NewMeter(1), pairtest.Usage())
			if err := wiretest.CheckMessages(out); err != nil {
				t.Errorf("%v in\n%s", err, out)
			}
			if got := summed(t, out); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// summed returns the blocks of a messages stream and its stop_reason.
func summed(t *testing.T, stream []byte) string {
	t.Helper()
	var b strings.Builder
	err := wiretest.EachEvent(stream, func(name string, data []byte) error {
		switch name {
		case "content_block_start":
			block := rawjson.Field(data, "content_block")
			b.WriteString(map[string]string{"text": "t", "thinking": "h"}[rawjson.Unquote(rawjson.Field(block,
				"type"))] + rawjson.Unquote(rawjson.Field(block, "name")))
		case "content_block_delta":
			for _, member := range []string{"text", "thinking", "partial_json"} {
				b.WriteString(rawjson.Unquote(rawjson.Field(rawjson.Field(data, "delta"), member)))
			}
		case "content_block_stop":
			b.WriteString(" ")
		case "message_delta":
			b.WriteString(rawjson.Unquote(rawjson.Field(rawjson.Field(data, "delta"), "stop_reason")))
		case "error":
			b.WriteString("error")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// TestMessagesFromChatIsBounded tests the limit on pending output.
func TestMessagesFromChatIsBounded(t *testing.T) {
	t.Parallel()
	w := messagesWriter(pairtest.Identity())
	put := func(out []byte, data string) []byte {
		if out = w.Append(out, sse.Event{Data: []byte(data), Offset: 0}, wire.Frame{}); w.Err() != nil {
			out = w.Fail(out[:0], fault.New(fault.UpstreamUnavailable, "The answer is too large."))
		}
		return out
	}
	out := put(nil,
		wiretest.Delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},`+
			`{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]}`,
			"null"))
	more := wiretest.Delta(`{"tool_calls":[{"index":1,"function":{"arguments":"`+strings.Repeat(" ", 1<<20)+`"}}]}`, "null")
	for range 2 * (8 << 20) >> 20 {
		out = put(out, more)
	}
	out = w.End(out, pairtest.Usage())
	if err := wiretest.CheckMessages(out); err != nil || !strings.HasSuffix(summed(t, out), "error") || len(out) > 4096 {
		t.Errorf("%v, %d bytes of %.500s", err, len(out), out)
	}

	w, out = messagesWriter(pairtest.Identity()), nil
	out = put(out, wiretest.Delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`, "null"))
	for range 4096 {
		out = put(out, wiretest.Delta(`{"content":"x","reasoning":"h"}`, "null"))
	}
	if err := wiretest.CheckMessages(out); err != nil || !strings.HasSuffix(summed(t, out), "error") {
		t.Errorf("%v in %d bytes", err, len(out))
	}

	w, out = messagesWriter(pairtest.Identity()), nil
	for range 1024 + 2 {
		out = put(out, wiretest.Delta(`{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`, "null"))
	}
	if err := wiretest.CheckMessages(out); err != nil || !strings.HasSuffix(summed(t, out), "error") {
		t.Errorf("%v in %d bytes", err, len(out))
	}
}
