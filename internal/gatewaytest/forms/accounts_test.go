package forms

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// accountScenes play models with lines of two accounts. The state of an account reaches only its own line.
func accountScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range []scene.Form{scene.Responses, scene.Messages} {
		for _, stream := range []bool{false, true} {
			scenes = append(scenes, accountScene(t, form, stream))
		}
		scenes = append(scenes, foreignStateScene(t, form))
	}
	return scenes
}

// stateOfA is the state of the first account.
const stateOfA = "b2YtYQ"

// accountScene returns the state of the first account in two more turns: the first account answers one, the
// second account the other.
func accountScene(t testing.TB, form scene.Form, stream bool) scene.Scenario {
	model := fmt.Sprintf("accounts-%s-%v", form, stream)
	line := map[scene.Form]string{scene.Responses: "responses", scene.Messages: "messages"}[form]
	state := answerParts{thought: "hm", seal: stateOfA, cities: []string{"Oslo"}}.reply(line, stream)
	if form == scene.Messages {
		state = replaceIn(state, "c2ln", stateOfA)
	}
	first := fakeprovider.New(t, state, fakeprovider.Good(line, stream), fakeprovider.Error(503, "server_error", "", "x"))
	second := fakeprovider.New(t, fakeprovider.Good(line, stream))
	return scene.Scenario{
		Name:   fmt.Sprintf("%s on two accounts, stream %v", form, stream),
		Models: []map[string]any{scene.FormModel(model, map[string]any{"reasoning": true}, form)},
		Lines: []map[string]any{
			scene.FormLine(model+"-a", line, first.URL(), map[string]any{"priority": 1}, model),
			scene.FormLine(model+"-b", line, second.URL(), map[string]any{"priority": 2}, model)},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := form.NewClient(t, g)
			a := s.Answer(scene.Request(form, model, stream, weatherTool(form)))
			at := strings.Index(a.Raw, stateOfA)
			if at < 0 || strings.Contains(a.Raw, `"`+stateOfA) {
				t.Fatalf("the client got %s, want the state under a seal", a.Raw)
			}
			from := strings.LastIndexByte(a.Raw[:at], '"') + 1
			again := scene.Request(form, model, stream, returned(form, a.Raw[from:at]+stateOfA))
			s.Answer(again)
			s.Answer(again)
			if sent := string(first.Requests()[1].Body); !strings.Contains(sent, `"`+stateOfA+`"`) {
				t.Errorf("the first account got %s, want its state", sent)
			}
			if sent := string(second.Requests()[0].Body); strings.Contains(sent, stateOfA) || !strings.Contains(sent, "sunny") {
				t.Errorf("the second account got %s, want the conversation without the state", sent)
			}
		},
	}
}

// returned returns the members of a second turn with the state.
func returned(form scene.Form, state string) map[string]any {
	more := secondTurn(form, state)
	if form == scene.Responses {
		more["input"].([]any)[1].(map[string]any)["encrypted_content"] = state
	}
	return more
}

// replaceIn replaces a text in a reply.
func replaceIn(r fakeprovider.Reply, before, after string) fakeprovider.Reply {
	r.Body = strings.ReplaceAll(r.Body, before, after)
	for _, list := range [][]string{r.Events, r.Raw} {
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], before, after)
		}
	}
	return r
}

// foreignStateScene returns state without a seal, from another gateway, for example. If the provider cannot
// read the state, the request is repeated without it.
func foreignStateScene(t testing.TB, form scene.Form) scene.Scenario {
	model := fmt.Sprintf("foreign-%s", form)
	line := map[scene.Form]string{scene.Responses: "responses", scene.Messages: "messages"}[form]
	refusal := fakeprovider.JSON(400, `{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error",`+
		`"param":null,"code":"invalid_encrypted_content"}}`)
	if form == scene.Messages {
		refusal = fakeprovider.NativeError(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")
	}
	p := fakeprovider.New(t, refusal, fakeprovider.Good(line, false))
	return single{name: fmt.Sprintf("%s with foreign state", form),
		in: form, line: line, model: model, provider: p, modelMore: map[string]any{"reasoning": true},
	}.plays(func(t *testing.T, s scene.FormClient) {
		s.CheckCharge(s.Answer(scene.Request(form, model, false, returned(form, stateOfA))), scene.AnswerCost)
		for i, has := range []bool{true, false} {
			if sent := string(p.Requests()[i].Body); strings.Contains(sent, stateOfA) != has || !strings.Contains(sent, "sunny") {
				t.Errorf("call %d: the provider got %s, want the state: %v", i, sent, has)
			}
		}
	})
}
