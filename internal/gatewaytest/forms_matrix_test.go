package gatewaytest_test

import (
	"fmt"
	"testing"

	"tollgate/internal/gatewaytest"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/money"
)

// TestForms asks in every form on lines of every form, and plays what is
// particular to some.
func TestForms(t *testing.T) {
	t.Parallel()
	binary := gatewaytest.Binary(t)
	t.Run("matrix", func(t *testing.T) { playForms(t, binary, nil, matrixScenes) })
	t.Run("native", func(t *testing.T) { playForms(t, binary, nativeSettings(), nativeScenesOfForms) })
	t.Run("faithful", func(t *testing.T) { playForms(t, binary, nil, faithfulScenes) })
	t.Run("responses", func(t *testing.T) { playForms(t, binary, nil, responsesScenes) })
	t.Run("money", func(t *testing.T) { playForms(t, binary, nil, moneyScenes) })
	t.Run("judged", func(t *testing.T) { playForms(t, binary, nil, judgedScenes) })
	t.Run("turns", func(t *testing.T) { playForms(t, binary, nil, turnScenes) })
	t.Run("holds", func(t *testing.T) { playForms(t, binary, nil, holdScenes) })
	t.Run("gate", func(t *testing.T) { playForms(t, binary, nil, gateScenes) })
	t.Run("broken", func(t *testing.T) {
		playForms(t, binary, nil, func(t testing.TB) []scene { return append(brokenFormScenes(t), failedAtTheEndScenes(t)...) })
	})
}

// canBePut tells whether requests of a form can be put into a line's.
func canBePut(in spoken, line string) bool { return line != "responses" || in == inResponses }

// matrixScenes are every form of clients on every form of lines, whole and
// streamed, with a text and with a call.
func matrixScenes(t testing.TB) []scene {
	var scenes []scene
	for _, in := range clientForms() {
		for _, line := range lineForms() {
			for _, stream := range []bool{false, true} {
				for _, tools := range []bool{false, true} {
					scenes = append(scenes, matrixScene(t, in, line, stream, tools))
				}
			}
		}
	}
	return scenes
}

func matrixScene(t testing.TB, in spoken, line string, stream, tools bool) scene {
	model := fmt.Sprintf("m-%s-%s-%v-%v", in, line, stream, tools)
	p := fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if isStreamed(q) != stream {
			t.Errorf("%s: the provider got %s %s", model, q.URI, q.Body)
		}
		return goodReply(line, stream, tools)
	})
	return scene{
		name:   fmt.Sprintf("%s on %s, stream %v, tools %v", in, line, stream, tools),
		models: []map[string]any{formModel(model, nil, in)},
		lines:  []map[string]any{formLine(model, line, p.URL(), nil, model)},
		play: func(t *testing.T, f *fixture) {
			s := in.speaker(t, f)
			more := map[string]any{}
			if tools {
				more = weatherTool(in)
			}
			if stream && in == inChat {
				more["stream_options"] = map[string]any{"include_usage": true}
			}
			h := s.ask(askIn(in, model, stream, more))
			if !canBePut(in, line) {
				s.cannotBePut(h, p)
				return
			}
			r := in.read(t, h, model)
			want := reading{text: goodText}
			ends := map[spoken]string{inChat: "stop", inMessages: "end_turn", inResponses: "completed"}
			if tools {
				want = reading{calls: []string{goodCall}}
				ends = map[spoken]string{inChat: "tool_calls", inMessages: "tool_use", inResponses: "completed"}
			}
			if h.status != 200 || h.cut || !r.whole || r.text != want.text || fmt.Sprint(r.calls) != fmt.Sprint(want.calls) ||
				r.end != ends[in] || r.prompt != 1000 && in != inMessages || r.completion != 500 {
				t.Errorf("%d, %+v in %s", h.status, r, h.raw)
			}
			if in == inMessages && !stream && r.prompt != 1000 {
				t.Errorf("a prompt of %d tokens in %s", r.prompt, h.raw)
			}
			if rc := s.charged(h, healthyCost); rc.Prompt != 1000 || rc.Completion != 500 || rc.Line != model {
				t.Errorf("receipt %+v", rc)
			}
			if n := len(p.Requests()); n != 1 {
				t.Errorf("the provider was asked %d times", n)
			}
			if state := f.lines.of(t, model); state.SuccessRate == nil || *state.SuccessRate != 1 {
				t.Errorf("line: %s", state)
			}
		},
	}
}

// cannotBePut checks the answer of a request for whose form no line is there:
// nothing was sent.
func (s speaker) cannotBePut(h heard, p *fakeprovider.Server) {
	s.t.Helper()
	status, kind, code := 502, "upstream_error", "upstream_unavailable"
	if s.in == inMessages {
		status, kind, code = 503, "overloaded_error", ""
	}
	r := s.in.read(s.t, h, "")
	if h.status != status || r.fault.Type != kind || r.fault.Code != code || r.fault.Message == "" || h.header.Get("Retry-After") != "" {
		s.t.Errorf("the client got %d %s", h.status, h.raw)
	}
	if n := len(p.Requests()); n != 0 {
		s.t.Errorf("the provider was asked %d times", n)
	}
	s.charged(h, money.Amount(0))
}
