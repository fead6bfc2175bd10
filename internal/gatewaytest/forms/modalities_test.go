package forms

import (
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// modalityScenes check the price and the hold of generated images, and that only requests for images
// get images.
func modalityScenes(t testing.TB) []scene.Scenario {
	// The prompt has 100 tokens, of which 20 are an image. The answer has 1,300 tokens, of which 1,290
	// are an image.
	const usage = `{"promptTokenCount":100,"promptTokensDetails":[{"modality":"TEXT","tokenCount":80},{"modality":"IMAGE","tokenCount":20}],` +
		`"candidatesTokenCount":1300,"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":1290}],"totalTokenCount":1400}`
	picture := strings.Replace(geminiWhole(usage), `{"text":"hi"}`, `{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, 1)
	priced := map[string]any{"price": map[string]any{"input": 1, "output": 10, "modalities": map[string]any{"image": 100}}}
	more := map[string]any{"modalities": []any{"text", "image"}, "max_tokens": 1500}
	return []scene.Scenario{
		modalityScene(t, "requested", picture, priced, more, `"responseModalities":["TEXT","IMAGE"]`, 100*1000+10*10_000+1290*100_000, 100_000),
		modalityScene(t, "requested, in a stream", picture, priced, map[string]any{"modalities": []any{"text", "image"}, "max_tokens": 1500,
			"stream": true}, `"responseModalities":["TEXT","IMAGE"]`, 100*1000+10*10_000+1290*100_000, 100_000),
		modalityScene(t, "not requested", picture, priced, map[string]any{"max_tokens": 1500}, `"responseModalities":["TEXT"]`,
			100*1000+1300*10_000, 10_000),
		modalityScene(t, "without a price", "", map[string]any{"price": map[string]any{"input": 1, "output": 10}}, more, "", 0, 0),
	}
}

// modalityScene sends one request for at most 1,500 tokens. If answer is empty, the gateway must
// reject the request.
func modalityScene(t testing.TB, name, answer string, model, more map[string]any, sent string, cost, perToken money.Amount) scene.Scenario {
	id := "modal-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
	var script []fakeprovider.Reply
	switch {
	case more["stream"] == true:
		script = append(script, fakeprovider.Reply{ContentType: "text/event-stream", Raw: []string{"data: " + answer + "\n\n"}})
	case answer != "":
		script = append(script, fakeprovider.JSON(200, answer))
	}
	p := fakeprovider.New(t, script...)
	members := map[string]any{"max_output_tokens": 2000}
	for k, v := range model {
		members[k] = v
	}
	return single{name: "images " + name,
		in: scene.Chat, line: "gemini", model: id, provider: p, modelMore: members,
	}.plays(func(t *testing.T, s scene.FormClient) {
		body := scene.Request(scene.Chat, id, more["stream"] == true, more)
		a := s.Ask(body)
		if answer == "" {
			if a.Status != 400 || !strings.Contains(a.Raw, `"param":"modalities"`) || len(p.Requests()) != 0 {
				t.Errorf("%d %s", a.Status, a.Raw)
			}
			return
		}
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Raw)
		}
		if m, want := s.CheckCharge(a, cost), money.Amount(int64(len(body))+1000)*1000+1500*perToken; m.Held != want || m.Completion != 1300 {
			t.Errorf("receipt %+v; want a hold of %s", m, want)
		}
		if got := string(p.Requests()[0].Body); !strings.Contains(got, sent) {
			t.Errorf("sent %s; want %s", got, sent)
		}
		if !strings.Contains(a.Raw, "data:image/png;base64,AAAA") {
			t.Errorf("no image in %s", a.Raw)
		}
	})
}
