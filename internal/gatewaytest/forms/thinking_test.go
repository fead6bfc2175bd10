package forms

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// thinkingScenes play a reasoning model on a line of the responses form, for clients of both other
// forms. The model calls a tool, and continues from its own reasoning in the second turn.
func thinkingScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range []scene.Form{scene.Chat, scene.Messages} {
		for _, stream := range []bool{false, true} {
			scenes = append(scenes, thinkingScene(t, form, stream))
		}
	}
	return append(scenes, itemScene(t))
}

// thoughtfulUsage has 1000 prompt tokens, of which 400 are cached, and 500 completion tokens, of
// which 300 are reasoning.
const thoughtfulUsage = `{"input_tokens":1000,"input_tokens_details":{"cached_tokens":400},"output_tokens":500,` +
	`"output_tokens_details":{"reasoning_tokens":300},"total_tokens":1500}`

// seals matches the sealed reasoning. The client must send it back in the next turn.
var seals = regexp.MustCompile(`tg1\.[0-9a-f]{8}\.gAAA`)

func thinkingScene(t testing.TB, form scene.Form, stream bool) scene.Scenario {
	model := fmt.Sprintf("thinking-%s-%v", form, stream)
	call := answerParts{thought: "hm", seal: "gAAA", cities: []string{"Oslo"}, usage: thoughtfulUsage}
	p := fakeprovider.New(t, call.reply("responses", stream), fakeprovider.Good("responses", stream))
	prices := scene.PriceList()
	prices["reasoning"] = true
	return single{name: fmt.Sprintf("%s thinks on responses, stream %v", form, stream),
		in: form, line: "responses", model: model, provider: p, modelMore: prices,
	}.plays(func(t *testing.T, s scene.FormClient) {
		more := weatherTool(form)
		if form == scene.Messages {
			more["thinking"] = map[string]any{"type": "enabled", "budget_tokens": 20000}
		} else {
			more["reasoning_effort"] = "high"
		}
		a := s.Ask(scene.Request(form, model, stream, more))
		r := read(t, form, a, model)
		seal := seals.FindString(a.Raw)
		if a.Status != 200 || !r.whole || fmt.Sprint(r.calls) != fmt.Sprint([]string{goodCall}) || r.hint != "hm" || seal == "" {
			t.Fatalf("%d %+v in %s", a.Status, r, a.Raw)
		}
		// 600 tokens at 1, 400 at 0.1 and 500 at 10 dollars per million
		rc := s.CheckCharge(a, 564*money.USD/100_000)
		if rc.Prompt != 1000 || rc.Completion != 500 {
			t.Errorf("receipt %+v", rc)
		}
		a = s.Ask(scene.Request(form, model, stream, secondTurn(form, seal)))
		if r := read(t, form, a, model); a.Status != 200 || !r.whole || r.text != goodText {
			t.Fatalf("%d %s", a.Status, a.Raw)
		}
		first, second := p.Requests()[0].Body, string(p.Requests()[1].Body)
		var sent struct {
			Include   []string
			Store     *bool
			Reasoning struct{ Effort string }
		}
		if err := json.Unmarshal(first, &sent); err != nil || fmt.Sprint(sent.Include) != "[reasoning.encrypted_content]" ||
			sent.Store == nil || *sent.Store || sent.Reasoning.Effort != "high" {
			t.Errorf("%v: the provider got %s", err, first)
		}
		items := `{"type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Oslo\"}"},` +
			`{"type":"function_call_output","call_id":"call_1","output":"sunny"}`
		if !strings.Contains(second, `"encrypted_content":"gAAA"},`+items) || strings.Contains(second, "tg1.") ||
			strings.Contains(second, `"id"`) {
			t.Errorf("the provider got %s", second)
		}
	})
}

// itemScene checks that the gateway sends no ids of items that the provider has not stored. If the
// provider still misses an item, the client gets the error, and the line stays in service.
func itemScene(t testing.TB) scene.Scenario {
	const model = "items"
	missing := fakeprovider.JSON(404, `{"error":{"message":"Item with id 'sh_1' not found. Items are not persisted when store is false.",`+
		`"type":"invalid_request_error","param":"input","code":null}}`)
	p := fakeprovider.New(t, fakeprovider.Good("responses", false), missing, fakeprovider.Good("responses", false))
	return single{name: "items that are not stored",
		in: scene.Responses, line: "responses", model: model, provider: p, modelMore: map[string]any{"reasoning": true},
	}.plays(func(t *testing.T, s scene.FormClient) {
		request := scene.Request(scene.Responses, model, false, secondTurn(scene.Responses, ""))
		s.Answer(request)
		if sent := string(p.Requests()[0].Body); strings.Contains(sent, `"id"`) || strings.Contains(sent, `"reasoning",`) ||
			!strings.Contains(sent, `"include":["reasoning.encrypted_content"]`) {
			t.Errorf("the provider got %s", sent)
		}
		v1Fault(t, s.Ask(request), 400, "invalid_request_error", "invalid_request", "input")
		if a := s.Ask(request); a.Status != 200 {
			t.Errorf("the line is out: %d %s", a.Status, a.Raw)
		}
	})
}
