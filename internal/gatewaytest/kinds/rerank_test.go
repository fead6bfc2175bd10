package kinds

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// ranked are results of a fake provider of reranking, unsorted.
const ranked = `"id":"r-1","model":"vendor","results":[{"index":0,"relevance_score":0.1},{"index":1,"relevance_score":0.9}]`

// TestRerank sends requests to lines with all sorts of answers, on both databases.
func TestRerank(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	const two = `{"model":%q,"query":"what","documents":["hello","you"]}`
	long := `{"model":%q,"query":"what","documents":["` + strings.Repeat("x", 60_000) + `",` + strings.Repeat(`"a",`, 40) + `"b"]}`
	bySearch := priced{
		id: "rank-searches", model: map[string]any{"kind": "rerank", "price": map[string]any{"searches": 2}}, unit: "thousand_searches",
		each: 2_000_000, path: "/v1/rerank", body: two, results: ranked, bound: 1,
		charges: []charge{
			{`,"meta":{"billed_units":{"search_units":1}}`, 1, "provider"}, {``, 1, "gateway"},
			{`,"meta":{"billed_units":{"search_units":0}}`, 1, "gateway"}, {`,"meta":{"billed_units":{"search_units":2}}`, 1, "gateway"},
			{`,"meta":{"billed_units":{"search_units":-1}}`, 1, "gateway"}, {`,"usage":{"total_tokens":9}`, 1, "gateway"},
		},
	}
	byLongSearch := bySearch // 60,004 bytes are 121 chunks, so with 41 short documents 2 searches
	byLongSearch.id, byLongSearch.body, byLongSearch.bound, byLongSearch.path = "rank-long", long, 2, "/v2/rerank"
	byLongSearch.charges = []charge{
		{`,"meta":{"billed_units":{"search_units":2}}`, 2, "provider"}, {`,"meta":{"billed_units":{"search_units":3}}`, 1, "gateway"},
	}
	byTokens := priced{
		id: "rank-tokens", model: map[string]any{"kind": "rerank", "price": map[string]any{"input": 2}}, unit: "million_tokens",
		each: tokenPrice, path: "/v1/rerank", body: two, results: ranked, bound: 4 + 5 + 16 + 4 + 3 + 16,
		charges: []charge{
			{`,"meta":{"billed_units":{"input_tokens":30}},"usage":{"total_tokens":9}`, 30, "provider"},
			{`,"usage":{"total_tokens":48}`, 48, "provider"}, {`,"usage":{"prompt_tokens":7}`, 7, "provider"}, {``, 4, "gateway"},
			{`,"usage":{"total_tokens":49}`, 4, "gateway"}, {`,"usage":{"total_tokens":0}`, 4, "gateway"},
			{`,"meta":{"billed_units":{"search_units":1}}`, 4, "gateway"},
		},
	}
	storetest.EachURL(t, func(t *testing.T, database string) {
		g := scene.Open(t, binary, database, nil)
		scene.Play(t, g, []scene.Scenario{
			bySearch.scenario(t), byLongSearch.scenario(t), byTokens.scenario(t), sorted(t), unranked(t),
			rankedAt(t, "dashscope", "/api/v1", "/compatible-api/v1/reranks",
				`{"model":"vendor-rank-dashscope","query":"q","documents":["a","b"],"top_n":1}`, "{"+ranked+"}"),
			rankedAt(t, "bedrock", "", "/model/vendor-rank-bedrock/invoke", `{"query":"q","documents":["a","b"],"top_n":1}`, "{"+ranked+"}"),
			rankedAt(t, "tei", "", "/rerank", `{"query":"q","texts":["a","b"]}`, `[{"index":0,"score":0.1},{"index":1,"score":0.9}]`),
		})
	})
}

// sorted checks body, answer, usage and model list.
func sorted(t *testing.T) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) {
		return 200, "{" + ranked + `,"meta":{"billed_units":{"search_units":1}}}`
	})
	model := map[string]any{"id": "ranker", "kind": "rerank", "price": map[string]any{"searches": 2}, "max_documents": 2}
	return scenario("sorted and cut", model, func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		const body = `{"model":"ranker","query":"q","documents":["a",{"text":"b","id":7}],"top_n":1,"return_documents":true,"unheard_of":1}`
		for i, path := range []string{"/v1/rerank", "/v2/rerank"} {
			a := c.Post(path, body)
			const want = `{"id":"r-1","model":"ranker","results":[{"index":1,"relevance_score":0.9,"document":{"text":"b","id":7}}],` +
				`"meta":{"billed_units":{"search_units":1}}}`
			if a.Status != 200 || strings.TrimSpace(a.Raw) != want || a.Header.Get("x-tollgate-ignored") != "unheard_of" {
				t.Errorf("%s: got %d %s, ignored %q", path, a.Status, a.Raw, a.Header.Get("x-tollgate-ignored"))
			}
			const sent = `{"model":"vendor-ranker","query":"q","documents":["a","b"],"top_n":1}`
			if got := v.asked(); len(got) != i+1 || got[i] != sent || v.paths[i] != "/v1/rerank" {
				t.Errorf("the provider got %q at %q", got, v.paths)
			}
			if r := receiptOf(t, g, c.Account, a.ID()); r.Searches != 1 || r.Prompt != 0 || r.Endpoint != path {
				t.Errorf("receipt %+v", r)
			}
		}
		for body, want := range map[string]string{
			`{"model":"ranker","query":"q","documents":["a","b","c"]}`:       "400 invalid_request documents",
			`{"model":"ranker","query":"","documents":["a"]}`:                "400 invalid_request query",
			`{"model":"ranker","query":"q","documents":["a",{"t":1}]}`:       "400 invalid_request documents[1].text",
			`{"model":"ranker","query":"q","documents":["a"],"top_n":0}`:     "400 invalid_request top_n",
			`{"model":"ranker","query":"q","documents":["a"],"provider":{}}`: "400 invalid_request provider",
			`{"query":"q","documents":["a"]}`:                                "400 model_not_found model",
		} {
			a := c.Post("/v2/rerank", body)
			if got := fmt.Sprintf("%d %s %s", a.Status, a.Err().Code, a.Err().Param()); got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		}
		var usage struct {
			ByModel []struct {
				Searches int64 `json:"search_count"`
			} `json:"by_model"`
			Report struct {
				Total struct {
					Searches int64 `json:"search_count"`
				}
			}
		}
		u := scene.Call(t, g, "GET", "/v1/usage?group_by=model", "", "Authorization", "Bearer "+c.Key)
		if err := json.Unmarshal([]byte(u.Raw), &usage); err != nil || len(usage.ByModel) != 1 || usage.ByModel[0].Searches != 2 ||
			usage.Report.Total.Searches != 2 {
			t.Errorf("usage: %s (%v), want 2 searches", u.Raw, err)
		}
		list := scene.Call(t, g, "GET", "/v1/models/ranker", "", "Authorization", "Bearer "+c.Key)
		for _, part := range []string{`"kind":"rerank"`, `"price":{"searches":2}`, `"price_unit":"thousand_searches"`, `"max_documents":2`,
			`"endpoints":["/v1/rerank","/v2/rerank"]`} {
			if !strings.Contains(list.Raw, part) {
				t.Errorf("the model list lacks %s: %s", part, list.Raw)
			}
		}
	}, scene.ChatLine("ranker", v.URL+"/v1", nil, "ranker"))
}

// rankedAt checks path and body at a line of another provider. The line reports no searches.
func rankedAt(t *testing.T, provider, base, path, sent, answer string) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) { return 200, answer })
	id := "rank-" + provider
	model := map[string]any{"id": id, "kind": "rerank", "price": map[string]any{"searches": 2}}
	return scenario("at "+provider, model, func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/rerank", `{"model":"`+id+`","query":"q","documents":["a",{"text":"b"}],"top_n":1}`)
		c.CheckCharge(a, 2_000_000)
		if got := v.asked(); len(got) != 1 || got[0] != sent || v.paths[0] != path {
			t.Errorf("the provider got %q at %q, want %s at %s", got, v.paths, sent, path)
		}
		if want := `"results":[{"index":1,"relevance_score":0.9}]`; !strings.Contains(a.Raw, want) {
			t.Errorf("got %s, want %s", a.Raw, want)
		}
	}, scene.ChatLine(id, v.URL+base, map[string]any{"provider": provider}, id))
}

// unranked checks lines with wrong answers, and the next line.
func unranked(t *testing.T) scene.Scenario {
	foreign := newVendor(t, func(int, string) (int, string) { return 200, `{"results":[{"index":2,"relevance_score":1}]}` })
	empty := newVendor(t, func(int, string) (int, string) { return 200, `{"results":[]}` })
	other := newVendor(t, func(int, string) (int, string) {
		return 200, `{"object":"list","data":[{"index":0,"relevance_score":1}],"usage":{"total_tokens":5}}`
	})
	model := map[string]any{"id": "third", "kind": "rerank", "price": map[string]any{"input": 2}}
	return scenario("on the next line", model, func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/rerank", `{"model":"third","query":"q","documents":["a","b"]}`)
		r := c.CheckCharge(a, 5*tokenPrice)
		if len(r.Attempts) != 3 || r.Attempts[0].Code != "upstream_unavailable" || r.Attempts[1].Code != "upstream_unavailable" {
			t.Errorf("attempts %+v", r.Attempts)
		}
		want := `{"usage":{"total_tokens":5},"id":"` + a.ID() + `","model":"third","results":[{"index":0,"relevance_score":1}],` +
			`"meta":{"billed_units":{"input_tokens":5}}}`
		if strings.TrimSpace(a.Raw) != want {
			t.Errorf("got %s, want %s", a.Raw, want)
		}
	}, scene.ChatLine("third1", foreign.URL, map[string]any{"priority": 1}, "third"),
		scene.ChatLine("third2", empty.URL, map[string]any{"priority": 2}, "third"),
		scene.ChatLine("third3", other.URL, map[string]any{"priority": 3}, "third"))
}
