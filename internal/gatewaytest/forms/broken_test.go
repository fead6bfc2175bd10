package forms

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// Tests of broken streams: the client gets an error in the client's form, the produced tokens are
// charged, and the attempt counts as a failure of the line.

const brokenText = "Once upon a time, "

// brokenBegin returns the beginning of a broken stream with brokenText. In the forms messages and
// gemini, it also has the count of 700 prompt tokens.
func brokenBegin(line string) []string {
	switch line {
	case "responses":
		return fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText(brokenText))...).Raw
	case "messages":
		return []string{fakeprovider.NativeStart(700),
			fakeprovider.NativeEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`),
			fakeprovider.NativeText(brokenText)}
	case "gemini":
		return []string{"data: " + fakeprovider.GeminiEvent("", 700, 0, fakeprovider.GeminiText(brokenText)) + "\n\n"}
	case "interactions":
		var raw []string
		step := fakeprovider.InteractionStep(0, `{"type":"model_output"}`, fakeprovider.InteractionDelta(brokenText))
		for _, event := range fakeprovider.InteractionEvents("", "", step[:2]...).Events {
			raw = append(raw, "data: "+event+"\n\n")
		}
		return raw
	}
	return []string{
		"data: " + fakeprovider.Frame(`{"role":"assistant","content":""}`, "") + "\n\n",
		"data: " + fakeprovider.Text(brokenText) + "\n\n",
	}
}

// brokenFailure returns the error event of an overloaded line.
func brokenFailure(line string) string {
	switch line {
	case "responses":
		return strings.Replace(fakeprovider.ResponsesFailure("rate_limit_exceeded", "x"), `"sequence_number":-1`, `"sequence_number":5`, 1)
	case "messages":
		return fakeprovider.NativeFailure("overloaded_error", "x")
	case "gemini":
		return "data: " + fakeprovider.GeminiErrorObject(503, "UNAVAILABLE", "The model is overloaded.") + "\n\n"
	case "interactions":
		return `data: {"event_type":"error","error":{"code":"service_unavailable","message":"The model is overloaded."}}` + "\n\n"
	}
	return "data: {\"error\":" + fakeprovider.ErrorObject("overloaded_error", "", "x") + "}\n\n"
}

// brokenFormScenes play every kind of broken stream for every pair of forms.
func brokenFormScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range scene.ClientForms() {
		for _, line := range lineForms() {
			for _, c := range []struct {
				name, code string
				rest       []string
				end        fakeprovider.Break
			}{
				{"reported", "upstream_busy", []string{brokenFailure(line)}, fakeprovider.None},
				{"cut", "upstream_connection_error", nil, fakeprovider.Cut},
				{"stalled", "upstream_timeout", nil, fakeprovider.Stall},
				{"without an end", "upstream_connection_error", nil, fakeprovider.None},
				{"no JSON", "upstream_unavailable", []string{"data: oops\n\n"}, fakeprovider.None},
			} {
				reply := fakeprovider.Reply{ContentType: "text/event-stream", Raw: append(brokenBegin(line), c.rest...), End: c.end}
				scenes = append(scenes, brokenFormScene(t, form, line, c.name, c.code, reply))
			}
		}
	}
	return scenes
}

func brokenFormScene(t testing.TB, form scene.Form, line, name, code string, reply fakeprovider.Reply) scene.Scenario {
	model := strings.ReplaceAll(fmt.Sprintf("b-%s-%s-%s", form, line, name), " ", "-")
	p := fakeprovider.New(t, reply)
	healthy := fakeprovider.New(t) // no request
	more := map[string]any{}
	if name == "stalled" {
		more["timeouts"] = map[string]any{"first_token": "30s", "idle": "300ms", "total": "30s"}
	}
	return scene.Scenario{
		Name:   fmt.Sprintf("%s on %s: %s", form, line, name),
		Models: []map[string]any{scene.FormModel(model, nil, form)},
		Lines: []map[string]any{scene.FormLine(model, line, p.URL(), more, model),
			scene.FormLine(model+"-2", line, healthy.URL(), map[string]any{"priority": 2}, model)},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := form.NewClient(t, g)
			a := s.Ask(scene.Request(form, model, true, nil))
			r := read(t, form, a, model)
			if a.Status != 200 || a.Cut || r.whole || r.text != brokenText || r.fault.Message == "" {
				t.Errorf("the client got %d, cut %v: %s", a.Status, a.Cut, a.Raw)
			}
			last := r.frames[len(r.frames)-1]
			switch form {
			case scene.Messages:
				if last.name != "error" || r.end != "" || !strings.HasPrefix(last.data, `{"type":"error","error":{"type":"api_error","message":"`) {
					t.Errorf("the last event is %s %s", last.name, last.data)
				}
			case scene.Responses:
				if last.name != "response.failed" || r.end != "failed" || r.fault.Code != code {
					t.Errorf("the last event is %s %s", last.name, last.data)
				}
			default:
				if r.end != "" || r.fault.Code != code || r.fault.Type != "upstream_error" || r.fault.Param() != "" {
					t.Errorf("the last event is %s %s", last.name, last.data)
				}
			}
			rc := g.Receipt(t, s.Account, a.ID())
			s.CheckCharge(a, money.Amount(rc.Prompt*1000+rc.Completion*2000))
			exactPrompt := line == "messages" || line == "gemini"
			if rc.Code != code || rc.Line != model || len(rc.Attempts) != 1 || rc.Prompt <= 0 || rc.Completion <= 0 || rc.Completion > 20 ||
				exactPrompt && rc.Prompt != 700 {
				t.Errorf("receipt %+v", rc)
			}
			if state := g.Lines.Of(t, model); state.SuccessRate == nil || *state.SuccessRate != 0 {
				t.Errorf("line: %s", state)
			}
		},
	}
}

// failedAtTheEndScenes play failures in the last event of a stream. The event has a usage, and this
// usage is charged. A stream without output for the client is free.
func failedAtTheEndScenes(t testing.TB) []scene.Scenario {
	usage := fakeprovider.ResponsesUsage(700, 30)
	var scenes []scene.Scenario
	for _, hasText := range []bool{true, false} {
		events := fakeprovider.ResponsesBegin()[:2]
		if hasText {
			events = append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText(brokenText))
		}
		p := fakeprovider.New(t, fakeprovider.ResponsesEvents(append(events, fakeprovider.ResponsesEnd("failed", usage))...))
		model := fmt.Sprintf("failed-%v", hasText)
		scenes = append(scenes, single{name: fmt.Sprintf("failed at the end, with text: %v", hasText),
			in: scene.Responses, line: "responses", model: model, provider: p,
		}.plays(func(t *testing.T, s scene.FormClient) {
			a := s.Ask(scene.Request(scene.Responses, model, true, nil))
			r := read(t, scene.Responses, a, model)
			if r.fault.Code != "upstream_unavailable" || strings.Contains(a.Raw, "The model failed.") {
				t.Errorf("%d %s", a.Status, a.Raw)
			}
			if !hasText {
				if s.CheckCharge(a, 0); a.Status != 502 {
					t.Errorf("%d %s", a.Status, a.Raw)
				}
				return
			}
			if rc := s.CheckCharge(a, 760_000); r.end != "failed" || rc.Prompt != 700 || rc.Completion != 30 || rc.Code != "upstream_unavailable" {
				t.Errorf("receipt %+v of %s", rc, a.Raw)
			}
		}))
	}
	return scenes
}
