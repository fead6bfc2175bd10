package forms

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// holdCase is a request with the parts of its maximum cost.
type holdCase struct {
	name  string
	in    scene.Form
	more  map[string]any // of the request
	model map[string]any // of the model
	// less is the number of bytes in the body that do not count as text. plus is the number of further
	// prompt tokens. If unbounded is true, the prompt counts as the whole context window.
	less, plus int64
	unbounded  bool
	output     int64        // maximum of completion tokens
	factor     money.Amount // price factor of the tier; 0 means 1
	calls      money.Amount // maximum of calls of a priced tool
	charged    money.Amount // charge for 100 prompt and 10 completion tokens; 0 means 200,000
}

func holdCases() []holdCase {
	const imageTokens = 5000
	data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("picture", 1000)))
	uri := "data:image/png;base64," + data
	user := func(parts ...any) any { return []any{map[string]any{"role": "user", "content": parts}} }
	type m = map[string]any
	image := m{"max_image_tokens": imageTokens}
	tier := m{"price": m{"input": 1, "output": 10, "options": m{"service_tier": m{"priority": 2, "flex": 0.5}}}}
	quoted := func(s string) int64 { return int64(len(s)) + 2 }
	return []holdCase{
		{name: "no limit", in: scene.Chat, more: m{"max_tokens": nil}, output: 1000},
		{name: "no limit", in: scene.Responses, more: m{"max_output_tokens": nil}, output: 1000},
		{name: "the model's default", in: scene.Chat, more: m{"max_tokens": nil}, model: m{"default_output_tokens": 200}, output: 200},
		{name: "the model's default", in: scene.Responses, more: m{"max_output_tokens": nil}, model: m{"default_output_tokens": 200},
			output: 200},
		{name: "above the model's maximum", in: scene.Chat, more: m{"max_tokens": 5000}, output: 1000},
		{name: "above the model's maximum", in: scene.Responses, more: m{"max_output_tokens": 5000}, output: 1000},
		{name: "above the model's maximum", in: scene.Messages, more: m{"max_tokens": 5000}, output: 1000},
		{name: "the request's limit", in: scene.Messages, more: m{"max_tokens": 7}, model: m{"default_output_tokens": 200}, output: 7},
		{name: "an image", in: scene.Messages, model: image, output: 500, less: quoted(data), plus: imageTokens,
			more: m{"messages": user(m{"type": "image", "source": m{"type": "base64", "media_type": "image/png", "data": data}})}},
		{name: "an image in a tool's result", in: scene.Messages, model: image, output: 500, less: quoted(data), plus: imageTokens,
			more: m{"messages": user(m{"type": "tool_result", "tool_use_id": "t",
				"content": []any{m{"type": "image", "source": m{"type": "base64", "media_type": "image/png", "data": data}}}})}},
		{name: "two images by address", in: scene.Messages, model: image, output: 500, plus: 2 * imageTokens,
			more: m{"messages": user(m{"type": "image", "source": m{"type": "url", "url": "https://example.com/a"}},
				m{"type": "image", "source": m{"type": "url", "url": "https://example.com/b"}})}},
		{name: "a file", in: scene.Messages, output: 500, unbounded: true,
			more: m{"messages": user(m{"type": "document", "source": m{"type": "base64", "media_type": "application/pdf", "data": data}})}},
		{name: "an image", in: scene.Responses, model: image, output: 500, less: quoted(uri), plus: imageTokens,
			more: m{"input": user(m{"type": "input_image", "image_url": uri})}},
		{name: "an image by address", in: scene.Responses, model: image, output: 500, plus: imageTokens,
			more: m{"input": user(m{"type": "input_image", "image_url": "https://example.com/a"})}},
		{name: "a file", in: scene.Responses, output: 500, unbounded: true,
			more: m{"input": user(m{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64," + data})}},
		{name: "a tool", in: scene.Responses, output: 500, unbounded: true, calls: 10, more: m{"tools": []any{m{"type": "web_search"}}}},
		{name: "a tool, limited", in: scene.Responses, output: 500, unbounded: true, calls: 2,
			more: m{"tools": []any{m{"type": "web_search"}}, "max_tool_calls": 2}},
		{name: "a tool", in: scene.Messages, output: 500, unbounded: true, calls: 10,
			more: m{"tools": []any{m{"type": "web_search_20250305", "name": "web_search"}}}},
		{name: "a high tier", in: scene.Responses, model: tier, output: 500, factor: 2, charged: 400_000, more: m{"service_tier": "priority"}},
		{name: "a high tier", in: scene.Messages, model: tier, output: 500, factor: 2, charged: 400_000, more: m{"service_tier": "priority"}},
		{name: "a high tier", in: scene.Chat, model: tier, output: 500, factor: 2, charged: 400_000, more: m{"service_tier": "priority"}},
		{name: "a low tier", in: scene.Responses, model: tier, output: 500, charged: 100_000, more: m{"service_tier": "flex"}},
	}
}

// holdScenes check the hold of requests in each form, and the release of the hold.
func holdScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for i, c := range holdCases() {
		model := fmt.Sprintf("hold-%d", i)
		members := map[string]any{"price": map[string]any{"input": 1, "output": 10, "tools": map[string]any{"web_search": 0.01}}}
		for k, v := range c.model {
			members[k] = v
		}
		line := string(c.in)
		open := make(chan struct{})
		reply := map[scene.Form]fakeprovider.Reply{scene.Chat: fakeprovider.Answer("hi", 100, 10),
			scene.Messages: fakeprovider.NativeAnswer("hi", 100, 10), scene.Responses: fakeprovider.ResponsesAnswer("hi", 100, 10)}[c.in]
		// Without a tier in the answer, the gateway charges the tier of the request.
		reply.Body = strings.Replace(reply.Body, `,"service_tier":"standard"`, "", 1)
		reply.Wait = open
		p := fakeprovider.New(t, reply)
		scenes = append(scenes, single{name: fmt.Sprintf("hold of %s, %s", c.in, c.name),
			in: c.in, line: line, model: model, provider: p, modelMore: members,
		}.plays(func(t *testing.T, s scene.FormClient) {
			body := scene.Request(c.in, model, false, c.more)
			prompt := int64(len(body)) + 1000 - c.less + c.plus
			if c.unbounded {
				prompt = 100000
			}
			want := money.Amount(prompt*1000+c.output*10000)*max(c.factor, 1) + c.calls*money.USD/100
			answered := make(chan scene.FormAnswer, 1)
			go func() { answered <- s.Ask(body) }()
			p.WaitRequest()
			var state scene.Funds
			s.Gateway.Process.Admin("GET", "/accounts/"+s.Account, nil, &state)
			if state.Held != want || state.Balance != scene.Credit {
				t.Errorf("%s of %s on hold; want %s", state.Held, state.Balance, want)
			}
			close(open)
			a := <-answered
			if a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Raw)
			}
			cost := c.charged
			if cost == 0 {
				cost = 200_000
			}
			if m := s.CheckCharge(a, cost); m.Held != want {
				t.Errorf("the receipt has a hold of %s", m.Held)
			}
			checkSentLimit(t, c, p.Requests()[0].Body)
		}))
	}
	return scenes
}

// checkSentLimit checks the limit in the provider's request: the client's limit, or the model's
// default.
func checkSentLimit(t *testing.T, c holdCase, body []byte) {
	t.Helper()
	name := "max_tokens"
	if c.in == scene.Responses {
		name = "max_output_tokens"
	}
	var sent map[string]any
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	want := any(float64(500))
	if limit, ok := c.more[name]; ok {
		if want = limit; limit != nil {
			want = float64(limit.(int))
		} else if byDefault := c.model["default_output_tokens"]; byDefault != nil {
			want = float64(byDefault.(int))
		}
	}
	if sent[name] != want {
		t.Errorf("the provider got the limit %v, want %v", sent[name], want)
	}
}
