package kinds

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// judged is a result of a fake provider of moderations.
const judged = `"id":"modr-1","model":"vendor","results":[{"flagged":true,"categories":{"violence":true}}]`

// TestModerations sends requests to lines with all sorts of answers, on both databases.
func TestModerations(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	const text = `{"model":%q,"input":["hello","you"]}`
	const image = `{"model":%q,"input":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}`
	byTokens := priced{
		id: "mod-tokens", model: map[string]any{"kind": "moderation", "price": map[string]any{"input": 2}}, unit: "million_tokens",
		each: tokenPrice, path: "/v1/moderations", body: text, results: judged, bound: 13 + 11,
		charges: []charge{
			{`,"usage":{"prompt_tokens":24}`, 24, "provider"}, {`,"usage":{"total_tokens":3}`, 3, "provider"}, {``, 2, "gateway"},
			{`,"usage":{"prompt_tokens":0}`, 2, "gateway"}, {`,"usage":{"prompt_tokens":25}`, 2, "gateway"},
			{`,"usage":{"prompt_tokens":-1}`, 2, "gateway"}, {`,"usage":{"prompt_tokens":"3"}`, 2, "gateway"},
			{`,"usage":{"seconds":3}`, 2, "gateway"},
		},
	}
	byImage := priced{
		id: "mod-image", model: map[string]any{"kind": "moderation", "price": map[string]any{"input": 2}, "max_image_tokens": 500},
		unit: "million_tokens", each: tokenPrice, path: "/v1/moderations", body: image, results: judged, bound: 13 + 500,
		charges: []charge{{`,"usage":{"prompt_tokens":300}`, 300, "provider"}, {`,"usage":null`, 501, "gateway"}},
	}
	byRequest := priced{
		id: "mod-requests", model: map[string]any{"kind": "moderation", "price": map[string]any{"requests": 0.5}}, unit: "thousand_requests",
		each: 500_000, path: "/v1/moderations", body: text, results: judged, bound: 1,
		charges: []charge{{``, 1, "gateway"}, {`,"usage":{"prompt_tokens":9}`, 1, "gateway"}},
	}
	storetest.EachURL(t, func(t *testing.T, database string) {
		g := scene.Open(t, binary, database, nil)
		scene.Play(t, g, []scene.Scenario{
			byTokens.scenario(t), byImage.scenario(t), byRequest.scenario(t), moderated(t), unmoderated(t), harmless(t),
		})
	})
}

// moderationModel returns a moderation model.
func moderationModel(id string, more map[string]any) map[string]any {
	m := map[string]any{"id": id, "kind": "moderation", "price": map[string]any{"requests": 0.5}, "max_inputs": 2}
	for key, value := range more {
		m[key] = value
	}
	return m
}

// moderated checks body, answer and model list.
func moderated(t *testing.T) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) { return 200, "{" + judged + `,"usage":{"prompt_tokens":9}}` })
	return scenario("as it came", moderationModel("judge", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/moderations", `{"model":"judge","input":"hello","unheard_of":1}`)
		want := `{"id":"modr-1","model":"judge","results":[{"flagged":true,"categories":{"violence":true}}],"usage":{"prompt_tokens":9}}`
		if a.Status != 200 || strings.TrimSpace(a.Raw) != want || a.Header.Get("x-tollgate-ignored") != "unheard_of" {
			t.Errorf("got %d %s, ignored %q", a.Status, a.Raw, a.Header.Get("x-tollgate-ignored"))
		}
		const sent = `{"model":"vendor-judge","input":"hello"}`
		if got := v.asked(); len(got) != 1 || got[0] != sent || v.paths[0] != "/v1/moderations" {
			t.Errorf("the provider got %q at %q", got, v.paths)
		}
		const private = `[{"type":"image_url","image_url":{"url":"http://127.0.0.1/a.png"}}]`
		for body, want := range map[string]string{
			`{"model":"judge","input":` + private + `}`:   "400 invalid_request input[0].image_url.url",
			`{"model":"judge"}`:                           "400 invalid_request input",
			`{"model":"judge","input":["a","b","c"]}`:     "400 invalid_request input",
			`{"model":"judge","input":["a",1]}`:           "400 invalid_request input[1]",
			`{"model":"judge","input":"a","provider":{}}`: "400 invalid_request provider",
			`{"model":"none","input":"a"}`:                "400 model_not_found model",
			`{"model":"","input":"a"}`:                    "400 model_not_found model",
		} {
			a := c.Post("/v1/moderations", body)
			if got := fmt.Sprintf("%d %s %s", a.Status, a.Err().Code, a.Err().Param()); got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		}
		if a := c.Post("/v1/embeddings", `{"model":"judge","input":"a"}`); a.Err().Code != "model_not_found" {
			t.Errorf("a moderation model for embeddings: %s", a.Raw)
		}
		list := scene.Call(t, g, "GET", "/v1/models/judge", "", "Authorization", "Bearer "+c.Key)
		for _, part := range []string{`"kind":"moderation"`, `"price":{"requests":0.5}`, `"price_unit":"thousand_requests"`, `"max_inputs":2`,
			`"endpoints":["/v1/moderations"]`} {
			if !strings.Contains(list.Raw, part) {
				t.Errorf("the model list lacks %s: %s", part, list.Raw)
			}
		}
	}, scene.ChatLine("judge", v.URL+"/v1", nil, "judge"))
}

// unmoderated checks a line without results, and the next line.
func unmoderated(t *testing.T) scene.Scenario {
	empty := newVendor(t, func(int, string) (int, string) { return 200, `{"id":"modr-1","model":"vendor","results":[]}` })
	good := newVendor(t, func(int, string) (int, string) { return 200, "{" + judged + "}" })
	return scenario("on the next line", moderationModel("second", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		r := c.CheckCharge(c.Post("/v1/moderations", `{"model":"second","input":"hello"}`), 500_000)
		if len(r.Attempts) != 2 || r.Attempts[0].Code != "upstream_unavailable" || len(good.asked()) != 1 {
			t.Errorf("attempts %+v", r.Attempts)
		}
	}, scene.ChatLine("second1", empty.URL, map[string]any{"priority": 1}, "second"),
		scene.ChatLine("second2", good.URL, map[string]any{"priority": 2}, "second"))
}

// harmless checks a free model, and its quota.
func harmless(t *testing.T) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) { return 200, "{" + judged + "}" })
	model := moderationModel("free-judge", map[string]any{"price": map[string]any{"requests": 0}, "free_daily_requests": 1})
	return scenario("free", model, func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		c.CheckCharge(c.Post("/v1/moderations", `{"model":"free-judge","input":"hello"}`), 0)
		if a := c.Post("/v1/moderations", `{"model":"free-judge","input":"hello"}`); a.Status != 429 || a.Err().Code != "rate_limit_exceeded" {
			t.Errorf("above the quota: %d %s", a.Status, a.Raw)
		}
	}, scene.ChatLine("free-judge", v.URL, nil, "free-judge"))
}

// TestModerationWithoutModel checks the model chosen for a request without one.
func TestModerationWithoutModel(t *testing.T) {
	t.Parallel()
	g := scene.Open(t, scene.Binary(t), storetest.SQLite(t), nil)
	v := newVendor(t, func(int, string) (int, string) { return 200, "{" + judged + "}" })
	line := scene.ChatLine("main", v.URL, nil, "closed", "first", "second", "vector")
	g.SetCatalog([]map[string]any{inputModel("vector", nil), moderationModel("closed", map[string]any{"state": "maintenance"}),
		moderationModel("first", nil), moderationModel("second", nil)}, []map[string]any{line})
	c := newClient(t, g)
	for _, body := range []string{`{"input":"a"}`, `{"model":null,"input":"a"}`} {
		a := c.Post("/v1/moderations", body)
		if a.Status != 200 || !strings.Contains(a.Raw, `"model":"first"`) {
			t.Errorf("%s: got %d %s, want the first open model", body, a.Status, a.Raw)
		}
		if r := receiptOf(t, g, c.Account, a.ID()); r.Cost != 500_000 {
			t.Errorf("%s: charged %s, want the price of a request", body, r.Cost)
		}
	}
	if got, want := v.asked()[0], `{"input":"a","model":"vendor-first"}`; got != want {
		t.Errorf("the provider got %s, want %s", got, want)
	}
	_, limited := g.Process.Account(1, map[string]any{"allowed_models": []string{"second", "vector"}})
	if a := scene.Call(t, g, "POST", "/v1/moderations", `{"input":"a"}`, "Authorization", "Bearer "+limited); a.Status != 200 ||
		!strings.Contains(a.Raw, `"model":"second"`) {
		t.Errorf("a key for the second model: %d %s", a.Status, a.Raw)
	}
	_, none := g.Process.Account(1, map[string]any{"allowed_models": []string{"vector"}})
	if a := scene.Call(t, g, "POST", "/v1/moderations", `{"input":"a"}`, "Authorization", "Bearer "+none); a.Status != 403 ||
		a.Err().Code != "permission_denied" {
		t.Errorf("a key without moderation models: %d %s", a.Status, a.Raw)
	}
	g.SetCatalog([]map[string]any{inputModel("vector", nil)}, []map[string]any{scene.ChatLine("main", v.URL, nil, "vector")})
	if a := c.Post("/v1/moderations", `{"input":"a"}`); a.Status != 400 || a.Err().Code != "model_not_found" || a.Err().Param() != "model" {
		t.Errorf("without a moderation model: %d %s", a.Status, a.Raw)
	}
	g.Audit(t)
}
