package forms

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// stopScenes play a stop sequence that the line does not take. The gateway ends the answer there, and the
// client pays for what the provider bills.
func stopScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range []scene.Form{scene.Chat, scene.Messages} {
		for _, stream := range []bool{false, true} {
			scenes = append(scenes, stopScene(t, form, stream))
		}
	}
	return scenes
}

func stopScene(t testing.TB, form scene.Form, stream bool) scene.Scenario {
	model := fmt.Sprintf("stops-%s-%v", form, stream)
	p := fakeprovider.New(t, answerParts{text: "one END two", cities: []string{"Oslo"}}.reply("responses", stream))
	return single{name: fmt.Sprintf("%s stops on responses, stream %v", form, stream),
		in: form, line: "responses", model: model, provider: p,
	}.plays(func(t *testing.T, s scene.FormClient) {
		more := weatherTool(form)
		end := `"finish_reason":"stop"`
		more["stop"] = []string{"never", "END"}
		if form == scene.Messages {
			delete(more, "stop")
			more["stop_sequences"] = []string{"never", "END"}
			end = `"stop_reason":"stop_sequence","stop_sequence":"END"`
		}
		a := s.Ask(scene.Request(form, model, stream, more))
		r := read(t, form, a, model)
		if a.Status != 200 || !r.whole || r.text != "one " || r.calls != nil || !strings.Contains(a.Raw, end) {
			t.Errorf("%d %+v in %s", a.Status, r, a.Raw)
		}
		if rc := s.CheckCharge(a, scene.AnswerCost); rc.Prompt != 1000 || rc.Completion != 500 {
			t.Errorf("receipt %+v", rc)
		}
		if sent := string(p.Requests()[0].Body); strings.Contains(sent, "END") {
			t.Errorf("the provider got %s", sent)
		}
	})
}
