package lines

import (
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// limitScenes play models that reject the field of the gateway's output limit. The gateway retries
// with the other field and continues to use the other field.
func limitScenes(t testing.TB) []scene.Scenario {
	return []scene.Scenario{learntLimitScene(t, "max_tokens"), learntLimitScene(t, "max_completion_tokens"), noLimitScene(t)}
}

// rejectFields makes a provider reject requests with certain fields, with OpenAI's message.
func rejectFields(p *fakeprovider.Server, fields ...string) {
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(q.Body, &members); err != nil {
			return fakeprovider.Error(400, "invalid_request_error", "invalid_json", err.Error())
		}
		for _, field := range fields {
			if members[field] != nil {
				return fakeprovider.Reply{Status: 400, Body: `{"error":{"message":"Unsupported parameter: '` + field +
					`' is not supported with this model. Use another one instead.","type":"invalid_request_error","param":"` + field +
					`","code":"unsupported_parameter"}}`}
			}
		}
		return fakeprovider.Answer("fine", 1000, 500)
	})
}

// learntLimitScene checks that the gateway sends the rejected field only once.
func learntLimitScene(t testing.TB, rejected string) scene.Scenario {
	p, id := fakeprovider.New(t), "learnt-"+rejected
	rejectFields(p, rejected)
	return scene.Scenario{
		Name: "a model that rejects " + rejected,
		Models: []map[string]any{
			scene.FormModel(id, map[string]any{"default_output_tokens": 200}, scene.ClientForms()...), scene.ChatModel(id+"-other", nil),
		},
		Lines: []map[string]any{scene.ChatLine(id, p.URL(), map[string]any{"limit_field": rejected, "forms": []string{"chat"}}, id, id+"-other")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			send := func(in scene.Form, more map[string]any) {
				t.Helper()
				if a := g.Send(t, in, c.key, scene.Request(in, id, false, more)); a.Status != 200 {
					t.Errorf("%s: %d %s", in, a.Status, a.Raw)
				}
			}
			send(scene.Messages, nil)                           // rejected, then repeated
			send(scene.Responses, nil)                          // with the other field at once
			send(scene.Chat, map[string]any{"max_tokens": nil}) // with the model's default limit
			send(scene.Chat, map[string]any{"max_tokens": 500, "n_predict": 9000, "min_tokens": 400, "max_output_tokens": 9})
			requests := p.Requests()
			if len(requests) != 5 {
				t.Fatalf("the provider got %d requests, want 5", len(requests))
			}
			for i, want := range []string{`:500`, `:500`, `:500`, `:200`, `:9`} {
				body := string(requests[i].Body)
				field := "max_completion_tokens"
				if (rejected == field) != (i == 0) {
					field = "max_tokens"
				}
				if !strings.Contains(body, `"`+field+`"`+want) || strings.Count(body, `_tokens":`) != 1 || strings.Contains(body, "n_predict") {
					t.Errorf("request %d: %s, want only the limit %s%s", i, body, field, want)
				}
			}
			if s := g.Lines.Of(t, id); s.State != "in_service" || s.Cause != "" {
				t.Errorf("line: %s", s)
			}
		},
	}
}

// noLimitScene plays a model that rejects both fields. The failure counts for the line, and the
// gateway continues to use the first field.
func noLimitScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	rejectFields(p, "max_tokens", "max_completion_tokens")
	return scene.Scenario{
		Name:   "a model that rejects both limit fields",
		Models: []map[string]any{scene.FormModel("unlimited", nil, scene.Messages)},
		Lines:  []map[string]any{scene.ChatLine("unlimited", p.URL(), map[string]any{"forms": []string{"chat"}}, "unlimited")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			if a := g.Send(t, scene.Messages, c.key, scene.Request(scene.Messages, "unlimited", false, nil)); a.Status != 502 {
				t.Errorf("%d %s", a.Status, a.Raw)
			}
			if n := clientRequests(p); n != 2 {
				t.Errorf("the provider got %d requests, want 2", n)
			}
			c.checkSettled(0)
		},
	}
}
