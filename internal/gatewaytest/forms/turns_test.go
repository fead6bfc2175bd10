package forms

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// turnScenes play conversations with reasoning, text and several calls, and requests that fail over
// between lines of different forms.
func turnScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, in := range scene.ClientForms() {
		for _, line := range lineForms() {
			for _, stream := range []bool{false, true} {
				scenes = append(scenes, mixedScene(t, in, line, stream))
			}
			scenes = append(scenes, silentScene(t, in, line))
		}
		for _, stream := range []bool{false, true} {
			scenes = append(scenes, failoverScene(t, in, stream))
		}
	}
	return scenes
}

// mixedCalls returns the calls of mixedReply.
func mixedCalls() []string {
	return []string{`weather({"city":"Oslo"})`, `weather({"city":"Bergen"})`}
}

// mixedReply returns an answer with reasoning ("hm"), goodText and mixedCalls.
func mixedReply(line string, stream bool) fakeprovider.Reply {
	cities := []string{"Oslo", "Bergen"}
	switch line {
	case "responses":
		items := []string{`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`,
			fakeprovider.ResponsesMessage(goodText)}
		events := append(fakeprovider.ResponsesBegin()[:2],
			fakeprovider.ResponsesEvent("response.output_item.added", `"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}`),
			fakeprovider.ResponsesEvent("response.reasoning_summary_text.delta", `"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"hm"`),
			fakeprovider.ResponsesEvent("response.output_item.done", `"output_index":0,"item":`+items[0]),
			fakeprovider.ResponsesEvent("response.output_item.added",
				`"output_index":1,"item":{"id":"msg_fake","type":"message","role":"assistant","status":"in_progress","content":[]}`),
			fakeprovider.ResponsesText(goodText),
			fakeprovider.ResponsesEvent("response.output_item.done", `"output_index":1,"item":`+items[1]))
		for i, city := range cities {
			item := fmt.Sprintf(
				`{"id":"fc_%d","type":"function_call","call_id":"call_%d","name":"weather","status":"completed","arguments":"{\"city\":\"%s\"}"}`,
				i, i, city)
			items = append(items, item)
			events = append(events,
				fakeprovider.ResponsesEvent("response.output_item.added",
					fmt.Sprintf(`"output_index":%d,"item":{"id":"fc_%d","type":"function_call","call_id":"call_%d","name":"weather",`+
						`"status":"in_progress","arguments":""}`, i+2, i, i)),
				fakeprovider.ResponsesEvent("response.function_call_arguments.delta",
					fmt.Sprintf(`"item_id":"fc_%d","output_index":%d,"delta":"{\"city\":\"%s\"}"`, i, i+2, city)),
				fakeprovider.ResponsesEvent("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i+2, item)))
		}
		usage := fakeprovider.ResponsesUsage(1000, 500)
		if stream {
			return fakeprovider.ResponsesEvents(append(events, fakeprovider.ResponsesEnd("completed", usage, items...))...)
		}
		return fakeprovider.JSON(200, fakeprovider.ResponsesObject("completed", usage, items...))
	case "messages":
		event := fakeprovider.NativeEvent
		blocks := []string{`{"type":"thinking","thinking":"hm","signature":"c2ln"}`, `{"type":"text","text":"` + goodText + `"}`}
		raw := []string{fakeprovider.NativeStart(1000),
			event("content_block_start", `"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`),
			event("content_block_delta", `"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}`),
			event("content_block_delta", `"index":0,"delta":{"type":"signature_delta","signature":"c2ln"}`),
			event("content_block_stop", `"index":0`),
			event("content_block_start", `"index":1,"content_block":{"type":"text","text":""}`),
			event("content_block_delta", `"index":1,"delta":{"type":"text_delta","text":"`+goodText+`"}`), event("content_block_stop", `"index":1`)}
		for i, city := range cities {
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"weather","input":{"city":"%s"}}`, i, city))
			raw = append(raw, event("content_block_start",
				fmt.Sprintf(`"index":%d,"content_block":{"type":"tool_use","id":"toolu_%d","name":"weather","input":{}}`, i+2, i)),
				event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"input_json_delta","partial_json":"{\"city\":\"%s\"}"}`,
					i+2, city)),
				event("content_block_stop", fmt.Sprintf(`"index":%d`, i+2)))
		}
		if stream {
			return fakeprovider.NativeEvents(append(raw, fakeprovider.NativeEnd("tool_use", 500), fakeprovider.NativeStop())...)
		}
		return fakeprovider.JSON(200,
			`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[`+strings.Join(blocks, ",")+
				`],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1000,"output_tokens":500}}`)
	case "gemini":
		parts := []string{fakeprovider.GeminiThought("hm"), fakeprovider.GeminiText(goodText),
			fakeprovider.GeminiCall("weather", `{"city":"Oslo"}`), fakeprovider.GeminiCall("weather", `{"city":"Bergen"}`)}
		if !stream {
			return fakeprovider.JSON(200, fakeprovider.GeminiEvent("STOP", 1000, 500, parts...))
		}
		var events []string
		for i, part := range parts {
			finish, count := "", 0
			if i == len(parts)-1 {
				finish, count = "STOP", 500
			}
			events = append(events, fakeprovider.GeminiEvent(finish, 1000, count, part))
		}
		return fakeprovider.Reply{Events: events}
	}
	calls := make([]string, 2)
	frames := []string{fakeprovider.RawFrame(`{"role":"assistant","reasoning_content":"hm"}`, `null`), fakeprovider.Text(goodText)}
	for i, city := range cities {
		calls[i] = fmt.Sprintf(`{"index":%d,"id":"call_%d","type":"function","function":{"name":"weather","arguments":"{\"city\":\"%s\"}"}}`,
			i, i, city)
		frames = append(frames, fakeprovider.RawFrame(`{"tool_calls":[`+calls[i]+`]}`, `null`))
	}
	if stream {
		return *fakeprovider.Events(append(frames, fakeprovider.RawFrame(`{}`, `"tool_calls"`), fakeprovider.UsageFrame(1000, 500), "[DONE]")...)
	}
	return fakeprovider.JSON(200,
		`{"id":"chatcmpl-fake","object":"chat.completion","created":1,"model":"vendor-model",`+
			`"choices":[{"index":0,"message":{"role":"assistant","content":"`+
			goodText+`","reasoning_content":"hm","tool_calls":[`+strings.Join(calls, ",")+
			`]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1000,"completion_tokens":500}}`)
}

// secondTurn returns a request with the result of a call.
func secondTurn(in scene.Form) map[string]any {
	more := weatherTool(in)
	user := map[string]any{"role": "user", "content": "How is it in Oslo?"}
	switch in {
	case scene.Responses:
		more["instructions"] = "be kind"
		more["input"] = []any{user,
			map[string]any{"type": "reasoning", "id": "rs_1", "summary": []any{map[string]any{"type": "summary_text", "text": "hm"}}},
			map[string]any{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": `{"city":"Oslo"}`},
			map[string]any{"type": "function_call_output", "call_id": "call_1", "output": "sunny"}}
	case scene.Messages:
		more["system"] = "be kind"
		more["messages"] = []any{user,
			map[string]any{"role": "assistant", "content": []any{
				map[string]any{"type": "thinking", "thinking": "hm", "signature": "c2ln"},
				map[string]any{"type": "tool_use", "id": "call_1", "name": "weather", "input": map[string]any{"city": "Oslo"}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}}}}
	default:
		more["messages"] = []any{map[string]any{"role": "system", "content": "be kind"}, user,
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "call_1", "type": "function",
				"function": map[string]any{"name": "weather", "arguments": `{"city":"Oslo"}`}}}},
			map[string]any{"role": "tool", "tool_call_id": "call_1", "content": "sunny"}}
	}
	return more
}

// mixedScene checks that the parts of a second turn, and of an answer, survive the translation.
func mixedScene(t testing.TB, in scene.Form, line string, stream bool) scene.Scenario {
	model := fmt.Sprintf("mixed-%s-%s-%v", in, line, stream)
	p := fakeprovider.New(t, mixedReply(line, stream))
	return scene.Scenario{
		Name:   fmt.Sprintf("%s on %s, mixed, stream %v", in, line, stream),
		Models: []map[string]any{scene.FormModel(model, nil, in)},
		Lines:  []map[string]any{scene.FormLine(model, line, p.URL(), nil, model)},
		Play: func(t *testing.T, f *scene.Gateway) {
			s := in.NewClient(t, f)
			h := s.Ask(scene.Request(in, model, stream, secondTurn(in)))
			if h.Status != 200 {
				t.Fatalf("%d %s", h.Status, h.Raw)
			}
			r := read(t, in, h, model)
			if !r.whole || r.text != goodText || r.hint != "hm" || fmt.Sprint(r.calls) != fmt.Sprint(mixedCalls()) {
				t.Errorf("%+v in %s", r, h.Raw)
			}
			s.Charged(h, scene.AnswerCost)
			body := p.Requests()[0].Body
			var sent map[string]any
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatalf("%v in %s", err, body)
			}
			for _, word := range []string{"be kind", "How is it in Oslo?", "weather", "sunny", "city", "500"} {
				if !strings.Contains(string(body), word) {
					t.Errorf("%q did not reach the provider: %s", word, body)
				}
			}
			if line != "gemini" && strings.Count(string(body), `"call_1"`) != 2 {
				t.Errorf("call and result are not together: %s", body)
			}
		},
	}
}

// silentScene checks that a line without output in its answer fails over. Pings and opened texts
// are no output.
func silentScene(t testing.TB, in scene.Form, line string) scene.Scenario {
	model := fmt.Sprintf("silent-%s-%s", in, line)
	begin := brokenBegin(line)
	begin = begin[:len(begin)-1]
	switch line {
	case "messages":
		begin = append(begin, fakeprovider.NativePing())
	case "gemini":
		begin = []string{"data: " + fakeprovider.GeminiEvent("", 700, 0, fakeprovider.GeminiText("")) + "\n\n"}
	}
	p := fakeprovider.New(t, fakeprovider.Reply{ContentType: "text/event-stream", Raw: append(begin, ": ping\n\n"), End: fakeprovider.Stall})
	second := fakeprovider.New(t, goodReply(line, true, false))
	return scene.Scenario{
		Name:   fmt.Sprintf("%s on %s, silent", in, line),
		Models: []map[string]any{scene.FormModel(model, nil, in)},
		Lines: []map[string]any{
			scene.FormLine(model, line, p.URL(),
				map[string]any{"timeouts": map[string]any{"first_token": "300ms", "idle": "30s", "total": "30s"}}, model),
			scene.FormLine(model+"-2", line, second.URL(), map[string]any{"priority": 2}, model)},
		Play: func(t *testing.T, f *scene.Gateway) {
			s := in.NewClient(t, f)
			h := s.Ask(scene.Request(in, model, true, nil))
			if r := read(t, in, h, model); h.Status != 200 || !r.whole || r.text != goodText {
				t.Errorf("%d %s", h.Status, h.Raw)
			}
			if rc := s.Charged(h, scene.AnswerCost); rc.Line != model+"-2" || len(rc.Attempts) != 2 || rc.Attempts[0].Code != "upstream_timeout" {
				t.Errorf("receipt %+v", rc)
			}
		},
	}
}

// failoverScene plays lines of all forms with different failures. A client sees only the answer of
// the last line.
func failoverScene(t testing.TB, in scene.Form, stream bool) scene.Scenario {
	model := fmt.Sprintf("over-%s-%v", in, stream)
	failures := map[string][2]fakeprovider.Reply{
		"responses": {fakeprovider.JSON(200, fakeprovider.ResponsesObject("failed", "null")),
			fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesEnd("failed", "null"))...)},
		"messages": {fakeprovider.NativeError(529, "overloaded_error", "x"),
			fakeprovider.NativeEvents(append(brokenBegin("messages")[:2], fakeprovider.NativeFailure("api_error", "x"))...)},
		"gemini": {fakeprovider.GeminiError(503, "UNAVAILABLE", "x"), *fakeprovider.Events(fakeprovider.GeminiErrorObject(500, "INTERNAL", "x"))},
		"chat": {fakeprovider.Error(500, "server_error", "", "x"),
			*fakeprovider.Events(fakeprovider.RawFrame(`{"role":"assistant","content":""}`, `null`),
				`{"error":{"message":"x","type":"server_error"}}`)},
	}
	s := scene.Scenario{Name: fmt.Sprintf("%s fails over, stream %v", in, stream), Models: []map[string]any{scene.FormModel(model, nil, in)}}
	tried := 0
	for i, line := range lineForms() {
		reply := failures[line][0]
		if stream {
			reply = failures[line][1]
		}
		p := fakeprovider.New(t, reply)
		tried++
		s.Lines = append(s.Lines, scene.FormLine(fmt.Sprintf("%s-%d", model, i), line, p.URL(), map[string]any{"priority": i + 1}, model))
	}
	last := "messages"
	p := fakeprovider.New(t, goodReply(last, stream, false))
	s.Lines = append(s.Lines, scene.FormLine(model+"-last", last, p.URL(), map[string]any{"priority": 9}, model))
	s.Play = func(t *testing.T, f *scene.Gateway) {
		s := in.NewClient(t, f)
		h := s.Ask(scene.Request(in, model, stream, nil))
		if r := read(t, in, h, model); h.Status != 200 || !r.whole || r.text != goodText {
			t.Errorf("%d %s", h.Status, h.Raw)
		}
		if rc := s.Charged(h, scene.AnswerCost); rc.Line != model+"-last" || len(rc.Attempts) != tried+1 {
			t.Errorf("receipt %+v", rc)
		}
	}
	return s
}
