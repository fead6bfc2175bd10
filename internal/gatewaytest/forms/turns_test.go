package forms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// turnScenes play conversations with reasoning, text and several calls, and failover between lines of
// different forms.
func turnScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range scene.ClientForms() {
		for _, line := range lineForms() {
			for _, stream := range []bool{false, true} {
				scenes = append(scenes, mixedScene(t, form, line, stream, true))
				if form == scene.Messages && line != "messages" {
					scenes = append(scenes, mixedScene(t, form, line, stream, false))
				}
			}
			scenes = append(scenes, silentScene(t, form, line))
		}
		for _, stream := range []bool{false, true} {
			scenes = append(scenes, failoverScene(t, form, stream))
		}
	}
	return scenes
}

// mixed is an answer with reasoning, text and several calls.
func mixed() answerParts {
	return answerParts{thought: "hm", text: goodText, cities: []string{"Oslo", "Bergen"}}
}

// secondTurn returns request members with reasoning, a call and the call's result. If seal is not
// empty, it is the sealed reasoning.
func secondTurn(form scene.Form, seal string) map[string]any {
	more := weatherTool(form)
	user := map[string]any{"role": "user", "content": "How is it in Oslo?"}
	switch form {
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
				map[string]any{"type": "thinking", "thinking": "hm", "signature": cmp.Or(seal, "c2ln")},
				map[string]any{"type": "tool_use", "id": "call_1", "name": "weather", "input": map[string]any{"city": "Oslo"}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}}}}
	default:
		calling := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "call_1", "type": "function",
			"function": map[string]any{"name": "weather", "arguments": `{"city":"Oslo"}`}}}}
		if seal != "" {
			calling["reasoning_details"] = []any{
				map[string]any{"type": "reasoning.encrypted", "data": seal, "format": "openai-responses-v1", "index": 0}}
		}
		more["messages"] = []any{map[string]any{"role": "system", "content": "be kind"}, user, calling,
			map[string]any{"role": "tool", "tool_call_id": "call_1", "content": "sunny"}}
	}
	return more
}

// mixedScene checks that the translation keeps all parts of a second turn and of an answer. A client of
// messages gets thinking only if it asks for thinking.
func mixedScene(t testing.TB, form scene.Form, line string, stream, asks bool) scene.Scenario {
	model := fmt.Sprintf("mixed-%s-%s-%v-%v", form, line, stream, asks)
	p := fakeprovider.New(t, mixed().reply(line, stream))
	return single{name: fmt.Sprintf("%s on %s, mixed, stream %v, asks for thinking %v", form, line, stream, asks),
		in: form, line: line, model: model, provider: p,
	}.plays(func(t *testing.T, s scene.FormClient) {
		more, hint := secondTurn(form, ""), "hm"
		switch {
		case !asks:
			hint = ""
		case form == scene.Messages:
			more["thinking"] = map[string]any{"type": "adaptive"}
		}
		a := s.Answer(scene.Request(form, model, stream, more))
		r := read(t, form, a, model)
		if !r.whole || r.text != goodText || r.hint != hint || !slices.Equal(r.calls, []string{goodCall, `weather({"city":"Bergen"})`}) {
			t.Errorf("%+v in %s", r, a.Raw)
		}
		s.CheckCharge(a, scene.AnswerCost)
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
			t.Errorf("call and result do not have the same id: %s", body)
		}
	})
}

// silentScene checks the failover from a line that sends no output. Pings, and the beginning of an
// empty text, are not output.
func silentScene(t testing.TB, form scene.Form, line string) scene.Scenario {
	model := fmt.Sprintf("silent-%s-%s", form, line)
	begin := brokenBegin(line)
	begin = begin[:len(begin)-1]
	switch line {
	case "messages":
		begin = append(begin, fakeprovider.NativePing())
	case "interactions":
		begin = append(begin, `data: {"interaction_id":"v1_fake","status":"in_progress","event_type":"interaction.status_update"}`+"\n\n")
	case "gemini":
		begin = []string{"data: " + fakeprovider.GeminiEvent("", 700, 0, fakeprovider.GeminiText("")) + "\n\n"}
	}
	p := fakeprovider.New(t, fakeprovider.Reply{ContentType: "text/event-stream", Raw: append(begin, ": ping\n\n"), End: fakeprovider.Stall})
	second := fakeprovider.New(t, fakeprovider.Good(line, true))
	return scene.Scenario{
		Name:   fmt.Sprintf("%s on %s, silent", form, line),
		Models: []map[string]any{scene.FormModel(model, nil, form)},
		Lines: []map[string]any{
			scene.FormLine(model, line, p.URL(),
				map[string]any{"timeouts": map[string]any{"first_token": "300ms", "idle": "30s", "total": "30s"}}, model),
			scene.FormLine(model+"-2", line, second.URL(), map[string]any{"priority": 2}, model)},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := form.NewClient(t, g)
			a := s.Ask(scene.Request(form, model, true, nil))
			if r := read(t, form, a, model); a.Status != 200 || !r.whole || r.text != goodText {
				t.Errorf("%d %s", a.Status, a.Raw)
			}
			rc := s.CheckCharge(a, scene.AnswerCost)
			if rc.Line != model+"-2" || len(rc.Attempts) != 2 || rc.Attempts[0].Code != "upstream_timeout" {
				t.Errorf("receipt %+v", rc)
			}
		},
	}
}

// failoverScene plays lines of all forms with different failures. The client gets only the answer
// of the last line.
func failoverScene(t testing.TB, form scene.Form, stream bool) scene.Scenario {
	model := fmt.Sprintf("over-%s-%v", form, stream)
	failures := map[string][2]fakeprovider.Reply{
		"responses": {fakeprovider.JSON(200, fakeprovider.ResponsesObject("failed", "null")),
			fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesEnd("failed", "null"))...)},
		"messages": {fakeprovider.NativeError(529, "overloaded_error", "x"),
			fakeprovider.NativeEvents(append(brokenBegin("messages")[:2], fakeprovider.NativeFailure("api_error", "x"))...)},
		"gemini": {fakeprovider.GeminiError(503, "UNAVAILABLE", "x"), *fakeprovider.Events(fakeprovider.GeminiErrorObject(500, "INTERNAL", "x"))},
		"interactions": {fakeprovider.JSON(200, fakeprovider.Interaction("failed", "{}")),
			fakeprovider.InteractionEvents("failed", "{}")},
		"chat": {fakeprovider.Error(500, "server_error", "", "x"),
			*fakeprovider.Events(fakeprovider.RawFrame(`{"role":"assistant","content":""}`, `null`),
				`{"error":{"message":"x","type":"server_error"}}`)},
	}
	s := scene.Scenario{
		Name:   fmt.Sprintf("%s fails over, stream %v", form, stream),
		Models: []map[string]any{scene.FormModel(model, nil, form)},
	}
	failing := 0
	for i, line := range lineForms() {
		reply := failures[line][0]
		if stream {
			reply = failures[line][1]
		}
		p := fakeprovider.New(t, reply)
		failing++
		s.Lines = append(s.Lines, scene.FormLine(fmt.Sprintf("%s-%d", model, i), line, p.URL(), map[string]any{"priority": i + 1}, model))
	}
	last := "messages"
	p := fakeprovider.New(t, fakeprovider.Good(last, stream))
	s.Lines = append(s.Lines, scene.FormLine(model+"-last", last, p.URL(), map[string]any{"priority": 9}, model))
	s.Play = func(t *testing.T, g *scene.Gateway) {
		s := form.NewClient(t, g)
		a := s.Ask(scene.Request(form, model, stream, nil))
		if r := read(t, form, a, model); a.Status != 200 || !r.whole || r.text != goodText {
			t.Errorf("%d %s", a.Status, a.Raw)
		}
		if rc := s.CheckCharge(a, scene.AnswerCost); rc.Line != model+"-last" || len(rc.Attempts) != failing+1 {
			t.Errorf("receipt %+v", rc)
		}
	}
	return s
}
