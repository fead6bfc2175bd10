package forms

import (
	"fmt"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// TestForms plays every form of clients on every form of lines, and special features of some forms.
func TestForms(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	t.Run("matrix", func(t *testing.T) { playForms(t, binary, nil, matrixScenes) })
	t.Run("native", func(t *testing.T) { // trusts the addresses in X-Forwarded-For
		settings := map[string]string{"trusted_proxies": "127.0.0.1/32,::1/128", "max_body": fmt.Sprint(nativeLimit)}
		playForms(t, binary, settings, nativeScenesOfForms)
	})
	t.Run("faithful", func(t *testing.T) { playForms(t, binary, nil, faithfulScenes) })
	t.Run("responses", func(t *testing.T) { playForms(t, binary, nil, responsesScenes) })
	t.Run("money", func(t *testing.T) { playForms(t, binary, nil, moneyScenes) })
	t.Run("modalities", func(t *testing.T) { playForms(t, binary, nil, modalityScenes) })
	t.Run("addresses", func(t *testing.T) { // may fetch images from this machine
		playForms(t, binary, map[string]string{"private_networks": "127.0.0.1/32"}, addressScenes)
	})
	t.Run("empty answers", func(t *testing.T) { playForms(t, binary, nil, emptyAnswerScenes) })
	t.Run("stops", func(t *testing.T) { playForms(t, binary, nil, stopScenes) })
	t.Run("turns", func(t *testing.T) { playForms(t, binary, nil, turnScenes) })
	t.Run("thinking", func(t *testing.T) { playForms(t, binary, nil, thinkingScenes) })
	t.Run("accounts", func(t *testing.T) { playForms(t, binary, nil, accountScenes) })
	t.Run("holds", func(t *testing.T) { playForms(t, binary, nil, holdScenes) })
	t.Run("gate", func(t *testing.T) { playForms(t, binary, nil, gateScenes) })
	t.Run("broken", func(t *testing.T) {
		playForms(t, binary, nil, func(t testing.TB) []scene.Scenario { return append(brokenFormScenes(t), failedAtTheEndScenes(t)...) })
	})
}

// matrixScenes combine every form of clients with every form of lines, with and without streaming,
// for an answer with text and an answer with a call.
func matrixScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range scene.ClientForms() {
		for _, line := range lineForms() {
			for _, stream := range []bool{false, true} {
				for _, tools := range []bool{false, true} {
					scenes = append(scenes, matrixScene(t, form, line, stream, tools))
				}
			}
		}
	}
	return scenes
}

func matrixScene(t testing.TB, form scene.Form, line string, stream, tools bool) scene.Scenario {
	model := fmt.Sprintf("m-%s-%s-%v-%v", form, line, stream, tools)
	p := fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if q.IsStream() != stream {
			t.Errorf("%s: the provider got %s %s", model, q.URI, q.Body)
		}
		if tools {
			return answerParts{cities: []string{"Oslo"}}.reply(line, stream)
		}
		return fakeprovider.Good(line, stream)
	})
	return single{name: fmt.Sprintf("%s on %s, stream %v, tools %v", form, line, stream, tools),
		in: form, line: line, model: model, provider: p,
	}.plays(func(t *testing.T, s scene.FormClient) {
		more := map[string]any{}
		if tools {
			more = weatherTool(form)
		}
		if stream && form == scene.Chat {
			more["stream_options"] = map[string]any{"include_usage": true}
		}
		a := s.Ask(scene.Request(form, model, stream, more))
		r := read(t, form, a, model)
		want := reading{text: goodText}
		ends := map[scene.Form]string{scene.Chat: "stop", scene.Messages: "end_turn", scene.Responses: "completed"}
		if tools {
			want = reading{calls: []string{goodCall}}
			ends = map[scene.Form]string{scene.Chat: "tool_calls", scene.Messages: "tool_use", scene.Responses: "completed"}
		}
		if a.Status != 200 || a.Cut || !r.whole || r.text != want.text || fmt.Sprint(r.calls) != fmt.Sprint(want.calls) ||
			r.end != ends[form] || r.prompt != 1000 && form != scene.Messages || r.completion != 500 {
			t.Errorf("%d, %+v in %s", a.Status, r, a.Raw)
		}
		if form == scene.Messages && !stream && r.prompt != 1000 {
			t.Errorf("a prompt of %d tokens in %s", r.prompt, a.Raw)
		}
		if rc := s.CheckCharge(a, scene.AnswerCost); rc.Prompt != 1000 || rc.Completion != 500 || rc.Line != model {
			t.Errorf("receipt %+v", rc)
		}
		if n := len(p.Requests()); n != 1 {
			t.Errorf("the provider got %d requests", n)
		}
		if state := s.Gateway.Lines.Of(t, model); state.SuccessRate == nil || *state.SuccessRate != 1 {
			t.Errorf("line: %s", state)
		}
	})
}
