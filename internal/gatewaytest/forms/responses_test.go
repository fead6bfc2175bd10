package forms

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// responsesScenes returns the scenarios for /v1/responses.
func responsesScenes(t testing.TB) []scene.Scenario {
	scenes := []scene.Scenario{responsesBusyScene(t), responsesNoLineScene(t), hostedScene(t), hostedElsewhereScene(t), hostedDownScene(t),
		nativeHostedScene(t)}
	for _, line := range lineForms() {
		scenes = append(scenes, refusedScene(t, line))
	}
	return scenes
}

// v1Fault checks an error of /v1.
func v1Fault(t *testing.T, a scene.FormAnswer, status int, kind, code, param string) {
	t.Helper()
	r := read(t, scene.Responses, a, "")
	if a.Status != status || r.fault.Type != kind || r.fault.Code != code || r.fault.Param() != param || r.fault.Message == "" {
		t.Errorf("the client got %d %s; want %d %s %s (%s)", a.Status, a.Raw, status, kind, code, param)
	}
}

// responsesBusyScene plays a busy line.
func responsesBusyScene(t testing.TB) scene.Scenario {
	open := make(chan struct{})
	slow := fakeprovider.Good("responses", false)
	slow.Wait = open
	p := fakeprovider.New(t, slow)
	return scene.Scenario{
		Name:   "busy",
		Models: []map[string]any{scene.FormModel("r-busy", nil, scene.Responses)},
		Lines:  []map[string]any{scene.FormLine("r-busy", "responses", p.URL(), map[string]any{"max_concurrent": 1}, "r-busy")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s, running := scene.Responses.NewClient(t, g), scene.Responses.NewClient(t, g)
			var group sync.WaitGroup
			group.Go(func() {
				if a := running.Ask(scene.Request(scene.Responses, "r-busy", false, nil)); a.Status != 200 {
					t.Errorf("%d %s", a.Status, a.Raw)
				}
			})
			p.WaitRequest()
			for _, stream := range []bool{false, true} {
				a := s.Ask(scene.Request(scene.Responses, "r-busy", stream, nil))
				v1Fault(t, a, 429, "rate_limit_error", "rate_limit_exceeded", "")
				var extra struct {
					Attempts []struct {
						Place  int    `json:"place"`
						Reason string `json:"reason"`
					} `json:"attempts"`
				}
				if err := json.Unmarshal([]byte(a.Raw), &extra); err != nil || len(extra.Attempts) != 1 || extra.Attempts[0].Place != 1 ||
					extra.Attempts[0].Reason != "busy" {
					t.Errorf("%v in %s", err, a.Raw)
				}
				if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 1 {
					t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
				}
				s.CheckCharge(a, 0)
			}
			close(open)
			group.Wait()
		},
	}
}

// responsesNoLineScene sends requests without a healthy line.
func responsesNoLineScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	p.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Busy(30) }) // also for a probe
	return scene.Scenario{
		Name:   "no line",
		Models: []map[string]any{scene.FormModel("r-none", nil, scene.Responses), scene.FormModel("r-lineless", nil, scene.Responses)},
		Lines:  []map[string]any{scene.FormLine("r-none", "responses", p.URL(), nil, "r-none")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Responses.NewClient(t, g)
			a := s.Ask(scene.Request(scene.Responses, "r-none", false, nil))
			v1Fault(t, a, 502, "upstream_error", "upstream_busy", "")
			s.CheckCharge(a, 0)
			for _, model := range []string{"r-none", "r-lineless"} {
				for _, stream := range []bool{false, true} {
					a := s.Ask(scene.Request(scene.Responses, model, stream, nil))
					v1Fault(t, a, 503, "service_unavailable", "service_unavailable", "")
					var extra struct {
						RetryAfter json.Number `json:"retry_after"`
					}
					if err := json.Unmarshal([]byte(a.Raw), &extra); err != nil || a.Header.Get("Retry-After") != extra.RetryAfter.String() {
						t.Errorf("%v, Retry-After %q in %s", err, a.Header.Get("Retry-After"), a.Raw)
					}
					wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
					if err != nil || wait < 1 || wait > 60 || model == "r-none" && wait < 15 {
						t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
					}
					if rc := s.CheckCharge(a, 0); rc.Line != "" {
						t.Errorf("receipt %+v", rc)
					}
				}
			}
		},
	}
}

// refusedScene sends references to objects stored at the provider, and features without a price. The
// gateway must reject them, whatever the form of the line.
func refusedScene(t testing.TB, line string) scene.Scenario {
	model := "r-refused-" + line
	p := fakeprovider.New(t)
	input := func(item map[string]any) map[string]any { return map[string]any{"input": []any{item}} }
	part := func(part map[string]any) map[string]any {
		return input(map[string]any{"role": "user", "content": []any{part}})
	}
	tool := func(tool map[string]any) map[string]any { return map[string]any{"tools": []any{tool}} }
	return single{name: "refused on " + line,
		in: scene.Responses, line: line, model: model, provider: p,
	}.plays(func(t *testing.T, s scene.FormClient) {
		for _, c := range []struct {
			more  map[string]any
			param string
		}{
			{map[string]any{"previous_response_id": "resp_1"}, "previous_response_id"},
			{map[string]any{"conversation": "conv_1"}, "conversation"},
			{map[string]any{"conversation": map[string]any{"id": "conv_1"}}, "conversation"},
			{map[string]any{"background": true}, "background"},
			{map[string]any{"prompt": map[string]any{"id": "pmpt_1"}}, "prompt.id"},
			{map[string]any{"service_tier": "priority"}, "service_tier"},
			{map[string]any{"service_tier": "flex"}, "service_tier"},
			{input(map[string]any{"type": "item_reference", "id": "msg_1"}), "input[0].type"},
			{input(map[string]any{"id": "msg_1"}), "input[0].id"},
			{part(map[string]any{"type": "input_image", "file_id": "file_1"}), "input[0].content[0].file_id"},
			{part(map[string]any{"type": "input_file", "file_id": "file_1"}), "input[0].content[0].file_id"},
			{part(map[string]any{"type": "input_audio", "input_audio": map[string]any{"data": "eA==", "format": "wav"}}),
				"input[0].content[0].type"},
			{tool(map[string]any{"type": "web_search"}), "tools[0].type"},
			{tool(map[string]any{"type": "file_search", "vector_store_ids": []string{"vs_1"}}), "tools[0].vector_store_ids"},
			{tool(map[string]any{"type": "code_interpreter", "container": map[string]any{"type": "auto"}}), "tools[0].type"},
			{tool(map[string]any{"type": "code_interpreter", "container": "cntr_1"}), "tools[0].container"},
			{tool(map[string]any{"type": "image_generation"}), "tools[0].type"},
			{map[string]any{"input": nil}, "input"},
			{map[string]any{"input": 7}, "input"},
			{map[string]any{"stream": "yes"}, "stream"},
		} {
			a := s.Ask(scene.Request(scene.Responses, model, false, c.more))
			t.Run(c.param, func(t *testing.T) { v1Fault(t, a, 400, "invalid_request_error", "invalid_request", c.param) })
		}
		a := s.Ask(scene.Request(scene.Responses, model, false, map[string]any{"max_output_tokens": 0}))
		v1Fault(t, a, 400, "invalid_request_error", "invalid_max_tokens", "max_output_tokens")
		if n := len(p.Requests()); n != 0 {
			t.Errorf("the provider got %d requests", n)
		}
		checkFree(t, s.Gateway, s.Account, scene.Credit)
	})
}

// requestWithSearch returns a request with a hosted tool.
func requestWithSearch(model string, stream bool) string {
	return scene.Request(scene.Responses, model, stream, map[string]any{"tools": []any{map[string]any{"type": "web_search"}}})
}

// hostedScene checks that a hosted tool is rejected for a model with only chat lines, and that the
// rejection does not count as a failure of the lines.
func hostedScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	return scene.Scenario{
		Name:   "hosted tool on chat",
		Models: []map[string]any{scene.FormModel("r-hosted", scene.PriceList(), scene.Responses)},
		Lines: []map[string]any{scene.FormLine("r-hosted-1", "chat", p.URL(), nil, "r-hosted"),
			scene.FormLine("r-hosted-2", "chat", p.URL(), map[string]any{"priority": 2}, "r-hosted")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Responses.NewClient(t, g)
			for _, stream := range []bool{false, true} {
				a := s.Ask(requestWithSearch("r-hosted", stream))
				v1Fault(t, a, 400, "invalid_request_error", "invalid_request", "tools[0].type")
				s.CheckCharge(a, 0)
			}
			for _, line := range []string{"r-hosted-1", "r-hosted-2"} {
				if state := g.Lines.Of(t, line); state.State != "in_service" || state.Attempts != 0 || state.InFlight != 0 {
					t.Errorf("line: %s", state)
				}
			}
			if n := len(p.Requests()); n != 0 {
				t.Errorf("the provider got %d requests", n)
			}
		},
	}
}

// hostedElsewhereScene checks that a request with a hosted tool goes to the second line, which
// supports it.
func hostedElsewhereScene(t testing.TB) scene.Scenario {
	chat, other := fakeprovider.New(t), fakeprovider.New(t)
	other.Always(func(q fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good("responses", q.IsStream()) })
	return scene.Scenario{
		Name:   "hosted tool on the second line",
		Models: []map[string]any{scene.FormModel("r-second", scene.PriceList(), scene.Responses)},
		Lines: []map[string]any{scene.FormLine("r-second-1", "chat", chat.URL(), nil, "r-second"),
			scene.FormLine("r-second-2", "responses", other.URL(), map[string]any{"priority": 2}, "r-second")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Responses.NewClient(t, g)
			spent := scene.Credit
			for _, stream := range []bool{false, true} {
				a := s.Ask(requestWithSearch("r-second", stream))
				if r := read(t, scene.Responses, a, "r-second"); a.Status != 200 || r.text != goodText {
					t.Errorf("%d %s", a.Status, a.Raw)
				}
				rc := g.Receipt(t, s.Account, a.ID())
				if rc.Line != "r-second-2" || len(rc.Attempts) != 2 || rc.Attempts[0].Line != "r-second-1" || rc.Attempts[0].Cause == "" ||
					rc.Cost != 6_000_000 {
					t.Errorf("receipt %+v", rc)
				}
				spent -= rc.Cost
			}
			checkFree(t, g, s.Account, spent)
			if n := len(chat.Requests()); n != 0 {
				t.Errorf("the chat line got %d requests", n)
			}
		},
	}
}

// hostedDownScene plays a hosted tool whose only line is out of service. The request is valid, but no
// line is available.
func hostedDownScene(t testing.TB) scene.Scenario {
	chat := fakeprovider.New(t)
	other := fakeprovider.New(t)
	other.Always(func(fakeprovider.Request) fakeprovider.Reply {
		return fakeprovider.Error(401, "", "invalid_api_key", "x")
	}) // also to a probe
	return scene.Scenario{
		Name:   "hosted tool, the second line down",
		Models: []map[string]any{scene.FormModel("r-down", scene.PriceList(), scene.Responses)},
		Lines: []map[string]any{scene.FormLine("r-down-1", "chat", chat.URL(), nil, "r-down"),
			scene.FormLine("r-down-2", "responses", other.URL(), map[string]any{"priority": 2}, "r-down")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Responses.NewClient(t, g)
			v1Fault(t, s.Ask(requestWithSearch("r-down", false)), 502, "upstream_error", "upstream_unavailable", "")
			a := s.Ask(requestWithSearch("r-down", false))
			v1Fault(t, a, 503, "service_unavailable", "service_unavailable", "")
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("header %v", a.Header)
			}
			s.CheckCharge(a, 0)
		},
	}
}

// nativeHostedScene is like hostedScene, for the messages form.
func nativeHostedScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	var models, lines []map[string]any
	for _, line := range []string{"chat", "gemini"} {
		model := "n-hosted-" + line
		models = append(models, scene.FormModel(model, scene.PriceList(), scene.Messages))
		lines = append(lines, scene.FormLine(model, line, p.URL(), nil, model))
	}
	return scene.Scenario{Name: "hosted tool of messages", Models: models, Lines: lines, Play: func(t *testing.T, g *scene.Gateway) {
		s := scene.Messages.NewClient(t, g)
		for _, line := range []string{"chat", "gemini"} {
			a := s.Ask(scene.Request(scene.Messages, "n-hosted-"+line, false,
				map[string]any{"tools": []any{map[string]any{"type": "web_search_20250305", "name": "web_search"}}}))
			if message := nativeFault(t, a, 400, "invalid_request_error"); strings.Contains(message, fmt.Sprintf("n-hosted-%s", line)) {
				t.Errorf("a line's name is in %q", message)
			}
			s.CheckCharge(a, 0)
		}
		if n := len(p.Requests()); n != 0 {
			t.Errorf("the provider got %d requests", n)
		}
	}}
}
