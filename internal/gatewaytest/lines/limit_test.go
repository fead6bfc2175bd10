package lines

import (
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// limitScenes play models without the limit field added by the gateway. The gateway retries with
// the other field and keeps using it.
func limitScenes(t testing.TB) []scene.Scenario {
	return []scene.Scenario{learntLimitScene(t, "max_tokens"), learntLimitScene(t, "max_completion_tokens"), noLimitScene(t)}
}

// refusesLimits makes a provider reject requests with certain fields, in the words of OpenAI.
func refusesLimits(p *fakeprovider.Server, fields ...string) {
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

// learntLimitScene sends the rejected field once only.
func learntLimitScene(t testing.TB, refused string) scene.Scenario {
	p, id := fakeprovider.New(t), "learnt-"+refused
	refusesLimits(p, refused)
	return scene.Scenario{
		Name: "a model that refuses " + refused,
		Models: []map[string]any{
			scene.FormModel(id, map[string]any{"default_output_tokens": 200}, scene.ClientForms()...), scene.ChatModel(id+"-other", nil),
		},
		Lines: []map[string]any{scene.ChatLine(id, p.URL(), map[string]any{"limit_field": refused, "forms": []string{"chat"}}, id, id+"-other")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			send := func(form scene.Form, more map[string]any) {
				t.Helper()
				if a := g.Send(t, form, c.key, scene.Request(form, id, false, more)); a.Status != 200 {
					t.Errorf("%s: %d %s", form, a.Status, a.Raw)
				}
			}
			send(scene.Messages, nil)                           // rejected, then repeated
			send(scene.Responses, nil)                          // in the other field
			send(scene.Chat, map[string]any{"max_tokens": nil}) // with the model's default limit
			send(scene.Chat, map[string]any{"max_tokens": 500, "n_predict": 9000, "min_tokens": 400, "max_output_tokens": 9})
			requests := p.Requests()
			if len(requests) != 5 {
				t.Fatalf("the provider got %d requests, want 5", len(requests))
			}
			for i, want := range []string{`:500`, `:500`, `:500`, `:200`, `:9`} {
				body := string(requests[i].Body)
				field := "max_completion_tokens"
				if (refused == field) != (i == 0) {
					field = "max_tokens"
				}
				if !strings.Contains(body, `"`+field+`"`+want) || strings.Count(body, `_tokens":`) != 1 || strings.Contains(body, "n_predict") {
					t.Errorf("request %d: %s, want %s%s alone", i, body, field, want)
				}
			}
			if s := g.Lines.Of(t, id); s.State != "in_service" || s.Cause != "" {
				t.Errorf("line: %s", s)
			}
		},
	}
}

// noLimitScene plays a model without both fields: the failure is the line's, and the gateway keeps
// using the first field.
func noLimitScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	refusesLimits(p, "max_tokens", "max_completion_tokens")
	return scene.Scenario{
		Name:   "a model that takes no limit",
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
