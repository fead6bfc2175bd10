// Package kinds owns the tests of the kinds of models in package wire/kind, with the whole product.
package kinds

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// tokenPrice is the price of a token of inputModel in nano-dollars.
const tokenPrice = 2000

// inputModel returns an embedding model.
func inputModel(id string, more map[string]any) map[string]any {
	m := map[string]any{"id": id, "kind": "embedding", "price": map[string]any{"input": 2}, "max_inputs": 8, "max_input_tokens": 100}
	for key, value := range more {
		m[key] = value
	}
	return m
}

// vendor is a fake provider with a record of its calls.
type vendor struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	paths  []string
}

// newVendor starts a provider. reply returns the status and body of the answer to call n, counted from 1.
func newVendor(t *testing.T, reply func(n int, body string) (int, string)) *vendor {
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.bodies, v.paths = append(v.bodies, string(raw)), append(v.paths, r.URL.Path)
		n := len(v.bodies)
		v.mu.Unlock()
		status, answer := reply(n, string(raw))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(v.Close)
	return v
}

// asked returns the bodies of the calls.
func (v *vendor) asked() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.bodies...)
}

// vectors answers with n vectors and a usage.
func vectors(n int, usage string) (int, string) {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d.5]}`, i, i)
	}
	return 200, `{"object":"list","data":[` + strings.Join(list, ",") + `],"model":"vendor","usage":` + usage + `}`
}

// receipt has the figures of a logged request.
type receipt struct {
	Endpoint  string       `json:"endpoint"`
	Prompt    int64        `json:"prompt_tokens"`
	Cost      money.Amount `json:"cost_usd"`
	Held      money.Amount `json:"held_usd"`
	Source    string       `json:"usage_source"`
	PriceUnit string       `json:"price_unit"`
	Line      string       `json:"line"`
	Searches  int64        `json:"search_count"`
}

func receiptOf(t *testing.T, g *scene.Gateway, account, id string) (r receipt) {
	t.Helper()
	g.Receipt(t, account, id)
	g.Process.Admin("GET", "/requests/"+id, nil, &r)
	return r
}

// TestEmbeddings sends requests to lines with all sorts of answers, on both databases.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		g := scene.Open(t, binary, database, nil)
		scene.Play(t, g, []scene.Scenario{
			charged(t), uncounted(t), split(t), failover(t), rejected(t), free(t), titan(t), batch(t), unknownTokens(t),
		})
	})
}

// newClient returns a client of the endpoint.
func newClient(t *testing.T, g *scene.Gateway) scene.FormClient { return scene.Chat.NewClient(t, g) }

// scenario returns a scenario with one model and its lines.
func scenario(name string, model map[string]any, play func(*testing.T, *scene.Gateway), lines ...map[string]any) scene.Scenario {
	return scene.Scenario{Name: name, Models: []map[string]any{model}, Lines: lines, Play: play}
}

func charged(t *testing.T) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) { return vectors(2, `{"prompt_tokens":5,"total_tokens":5}`) })
	return scenario("charged by the provider's count", inputModel("counted", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/embeddings", `{"model":"counted","input":["hello","you"],"user":"u","unheard_of":1}`)
		want := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]},` +
			`{"object":"embedding","index":1,"embedding":[1.5]}],"model":"counted","usage":{"prompt_tokens":5,"total_tokens":5}}`
		if a.Status != 200 || strings.TrimSpace(a.Raw) != want || a.Header.Get("x-tollgate-ignored") != "unheard_of" {
			t.Errorf("got %d %s, ignored %q", a.Status, a.Raw, a.Header.Get("x-tollgate-ignored"))
		}
		const sent = `{"model":"vendor-counted","input":["hello","you"],"user":"u"}`
		if got := v.asked(); len(got) != 1 || got[0] != sent || v.paths[0] != "/v1/embeddings" {
			t.Errorf("the provider got %q at %q", got, v.paths)
		}
		c.CheckCharge(a, 5*tokenPrice)
		want2 := receipt{"/v1/embeddings", 5, 5 * tokenPrice, (13 + 11) * tokenPrice, "provider", "million_tokens", "counted", 0}
		if r := receiptOf(t, g, c.Account, a.ID()); r != want2 {
			t.Errorf("receipt: got %+v, want %+v", r, want2)
		}
		var usage struct {
			ByModel []struct {
				Model  string
				Prompt int64 `json:"prompt_tokens"`
			} `json:"by_model"`
		}
		u := scene.Call(t, g, "GET", "/v1/usage", "", "Authorization", "Bearer "+c.Key)
		if err := json.Unmarshal([]byte(u.Raw), &usage); err != nil || len(usage.ByModel) != 1 || usage.ByModel[0].Prompt != 5 {
			t.Errorf("usage: %s (%v)", u.Raw, err)
		}
		list := scene.Call(t, g, "GET", "/v1/models/counted", "", "Authorization", "Bearer "+c.Key)
		for _, part := range []string{`"kind":"embedding"`, `"price":{"input":2}`, `"price_unit":"million_tokens"`, `"max_inputs":8`,
			`"endpoints":["/v1/embeddings"]`} {
			if !strings.Contains(list.Raw, part) {
				t.Errorf("the model list lacks %s: %s", part, list.Raw)
			}
		}
	}, scene.ChatLine("counted", v.URL+"/v1", nil, "counted"))
}

// uncounted checks the gateway's own count in place of a missing or impossible usage.
func uncounted(t *testing.T) scene.Scenario {
	usages := []string{`null`, `{}`, `{"prompt_tokens":0}`, `{"prompt_tokens":-3}`, `{"prompt_tokens":"5"}`, `{"prompt_tokens":1e15}`,
		`{"prompt_tokens":14}`, `{"seconds":4}`}
	v := newVendor(t, func(n int, _ string) (int, string) { return vectors(1, usages[n-1]) })
	return scenario("charged by the gateway's count", inputModel("uncounted", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		for i, usage := range usages {
			a := c.Post("/v1/embeddings", `{"model":"uncounted","input":"hello"}`)
			r := receiptOf(t, g, c.Account, a.ID())
			if a.Status != 200 || r.Cost != tokenPrice || r.Prompt != 1 || r.Source != "gateway" || r.Held != 13*tokenPrice {
				t.Errorf("usage %s: got %d, %+v", usage, a.Status, r)
			}
			var answer struct{ Usage map[string]any }
			if err := json.Unmarshal([]byte(a.Raw), &answer); err != nil || len(answer.Usage) == 0 {
				t.Errorf("usage %d: the answer has no usage: %s", i, a.Raw)
			}
		}
		tokens := c.Post("/v1/embeddings", `{"model":"unasked","input":[1]}`)
		if tokens.Err().Code != "model_not_found" {
			t.Errorf("an unknown model: %s", tokens.Raw)
		}
		var lines struct {
			Data []struct {
				ID     string `json:"id"`
				Counts int64  `json:"gateway_counts"`
			}
		}
		g.Process.Admin("GET", "/lines", nil, &lines)
		for _, l := range lines.Data {
			if l.ID == "uncounted" && l.Counts != int64(len(usages)) {
				t.Errorf("gateway_counts: got %d, want %d", l.Counts, len(usages))
			}
		}
	}, scene.ChatLine("uncounted", v.URL, nil, "uncounted"))
}

// split checks a request sent in several calls.
func split(t *testing.T) scene.Scenario {
	v := newVendor(t, func(n int, body string) (int, string) {
		var asked struct{ Input []json.RawMessage }
		_ = json.Unmarshal([]byte(body), &asked)
		if n == 2 {
			return vectors(len(asked.Input), `null`)
		}
		return vectors(len(asked.Input), `{"prompt_tokens":4,"total_tokens":4}`)
	})
	return scenario("in several calls", inputModel("split", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/embeddings", `{"model":"split","input":["hello","you","hello","you","hello"]}`)
		want := []string{`{"model":"vendor-split","input":["hello","you"]}`, `{"model":"vendor-split","input":["hello","you"]}`,
			`{"model":"vendor-split","input":["hello"]}`}
		if got := v.asked(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the provider got %q, want %q", got, want)
		}
		var answer struct {
			Data  []struct{ Index int }
			Usage struct {
				Prompt int64 `json:"prompt_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(a.Raw), &answer); err != nil || len(answer.Data) != 5 || answer.Data[4].Index != 4 ||
			answer.Usage.Prompt != 4+2+4 {
			t.Errorf("answer %d %s", a.Status, a.Raw)
		}
		c.CheckCharge(a, 10*tokenPrice)
		if r := receiptOf(t, g, c.Account, a.ID()); r.Source != "both" || r.Prompt != 10 {
			t.Errorf("receipt %+v", r)
		}
	}, scene.ChatLine("split", v.URL, map[string]any{"max_inputs": 2}, "split"))
}

// failover checks that the next line gets the whole request after a failure.
func failover(t *testing.T) scene.Scenario {
	broken := newVendor(t, func(n int, _ string) (int, string) {
		if n == 1 {
			return vectors(2, `{"prompt_tokens":4}`)
		}
		return 500, `{"error":{"message":"The server had an error."}}`
	})
	short := newVendor(t, func(int, string) (int, string) { return vectors(1, `{"prompt_tokens":4}`) })
	good := newVendor(t, func(int, string) (int, string) { return vectors(3, `{"prompt_tokens":6}`) })
	return scenario("on the next line", inputModel("moved", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/embeddings", `{"model":"moved","input":["hello","you","hello"]}`)
		if got := good.asked(); a.Status != 200 || len(got) != 1 || got[0] != `{"model":"vendor-moved","input":["hello","you","hello"]}` {
			t.Errorf("answer %d %s; the good line got %q", a.Status, a.Raw, got)
		}
		if len(broken.asked()) != 2 || len(short.asked()) != 1 {
			t.Errorf("the other lines got %d and %d calls", len(broken.asked()), len(short.asked()))
		}
		r := c.CheckCharge(a, 6*tokenPrice)
		if len(r.Attempts) != 3 || r.Attempts[0].Prompt != 4 || r.Attempts[1].Code != "upstream_unavailable" || r.Attempts[2].Code != "" {
			t.Errorf("attempts %+v", r.Attempts)
		}
	}, scene.ChatLine("moved1", broken.URL, map[string]any{"priority": 1, "max_inputs": 2}, "moved"),
		scene.ChatLine("moved2", short.URL, map[string]any{"priority": 2}, "moved"),
		scene.ChatLine("moved3", good.URL, map[string]any{"priority": 3}, "moved"))
}

// rejected checks refusals of the gateway and of a provider.
func rejected(t *testing.T) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) {
		return 400, `{"error":{"message":"This model's maximum context length is 8 tokens.","type":"invalid_request_error",` +
			`"code":"context_length_exceeded","param":null}}`
	})
	return scenario("rejected", inputModel("strict", map[string]any{"dimensions": 4}), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		for body, want := range map[string]string{
			`{"model":"strict"}`:                                               "400 invalid_request input",
			`{"model":"strict","input":["a",""]}`:                              "400 invalid_request input[1]",
			`{"model":"strict","input":["a","a","a","a","a","a","a","a","a"]}`: "400 invalid_request input",
			`{"model":"strict","input":"a","dimensions":5}`:                    "400 invalid_request dimensions",
			`{"model":"strict","input":"a","provider":{}}`:                     "400 invalid_request provider",
			`{"model":"strict","input":"a","a":1,"a":2}`:                       "400 invalid_json ",
			`{"input":"a"}`:                         "400 model_not_found model",
			`{"model":"strict","input":"too long"}`: "400 context_length_exceeded ",
		} {
			a := c.Post("/v1/embeddings", body)
			if got := fmt.Sprintf("%d %s %s", a.Status, a.Err().Code, a.Err().Param()); got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		}
		if n := len(v.asked()); n != 1 {
			t.Errorf("the provider got %d calls, want 1", n)
		}
		chat := c.Post("/v1/chat/completions", `{"model":"strict","messages":[{"role":"user","content":"a"}]}`)
		if chat.Err().Code != "model_not_found" {
			t.Errorf("an embedding model for chat: %s", chat.Raw)
		}
		if funds := g.Process.FundsOf(c.Account); funds.Balance != scene.Credit || funds.Held != 0 {
			t.Errorf("funds %+v", funds)
		}
	}, scene.ChatLine("strict", v.URL, nil, "strict"))
}

// free checks a model without a price, and its quota.
func free(t *testing.T) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) { return vectors(1, `{"prompt_tokens":4}`) })
	model := inputModel("gratis", map[string]any{"price": map[string]any{"input": 0}, "free_daily_requests": 1})
	return scenario("free", model, func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		c.CheckCharge(c.Post("/v1/embeddings", `{"model":"gratis","input":"hello"}`), 0)
		if a := c.Post("/v1/embeddings", `{"model":"gratis","input":"hello"}`); a.Status != 429 || a.Err().Code != "rate_limit_exceeded" {
			t.Errorf("above the quota: %d %s", a.Status, a.Raw)
		}
	}, scene.ChatLine("gratis", v.URL, nil, "gratis"))
}
