package kinds

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestKilledAndLeft kills the process while a call runs, and disconnects a client. Neither request is
// charged, no hold is left, and the audit finds no difference.
func TestKilledAndLeft(t *testing.T) {
	t.Parallel()
	for _, k := range kindCalls() {
		t.Run(k.path, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, database string) { killedAndLeft(t, database, k) })
		})
	}
}

// kindCall is a request of a kind with the answer of its provider, its hold and its charge.
type kindCall struct {
	model         map[string]any // named m
	path, body    string
	answer        string
	held, charged money.Amount
	probe         string
}

// kindCalls returns a request of each kind.
func kindCalls() []kindCall {
	_, vector := vectors(1, `{"prompt_tokens":4}`)
	return []kindCall{
		{inputModel("m", nil), "/v1/embeddings", `{"model":"m","input":"hello"}`, vector, 13 * tokenPrice, 4 * tokenPrice,
			`{"model":"vendor-m","input":"ping"}`},
		{map[string]any{"id": "m", "kind": "rerank", "price": map[string]any{"searches": 2}}, "/v2/rerank",
			`{"model":"m","query":"q","documents":["a","b"]}`, "{" + ranked + "}", 2_000_000, 2_000_000,
			`{"model":"vendor-m","query":"ping","documents":["ping"]}`},
		{moderationModel("m", nil), "/v1/moderations", `{"model":"m","input":"hello"}`, "{" + judged + "}", 500_000, 500_000,
			`{"model":"vendor-m","input":"ping"}`},
	}
}

func killedAndLeft(t *testing.T, database string, k kindCall) {
	t.Helper()
	asked, release := make(chan struct{}, 8), make(chan struct{})
	v := newVendor(t, func(n int, _ string) (int, string) {
		asked <- struct{}{}
		if n == 1 || n == 2 {
			<-release
		}
		return 200, k.answer
	})
	n := scene.NewNode(t, scene.Binary(t), database, map[string]string{"node_lease": "1s"})
	n.SetCatalog([]map[string]any{k.model}, []map[string]any{scene.ChatLine("main", v.URL, nil, "m")})
	account, key := n.Account(1, nil)
	post := func(ctx context.Context) int {
		answer, err := scene.Do(ctx, n.Client, "POST", n.URL+k.path, k.body,
			"Authorization", "Bearer "+key, "Content-Type", "application/json")
		if err != nil {
			return 0
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	unanswered := func(how string, end func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		status := make(chan int)
		go func() { status <- post(ctx) }()
		<-asked
		if f := n.FundsOf(account); f.Held != k.held {
			t.Errorf("%s: %s USD are held, want the bound, %s", how, f.Held, k.held)
		}
		end()
		cancel()
		if got := <-status; got != 0 {
			t.Errorf("%s: status %d, want no answer", how, got)
		}
	}
	unanswered("the client leaves", func() {})
	scene.Eventually(t, "the hold of the client that left is released", func() bool { return n.FundsOf(account).Held == 0 })
	unanswered("the process is killed", n.Kill)
	n.Restart()
	scene.Eventually(t, "the hold of the killed process is released", func() bool { return n.FundsOf(account).Held == 0 })
	close(release)
	if got := post(t.Context()); got != http.StatusOK {
		t.Errorf("after the restart: status %d, want 200", got)
	}
	if f := n.FundsOf(account); f.Balance != money.USD-k.charged || f.Held != 0 {
		t.Errorf("funds %+v, want a charge for the last request only", f)
	}
	n.Audit(t)
}

// TestProbe checks the probe of a failing line: a call of the model's kind. The model is then
// out on the line until the operator resumes it.
func TestProbe(t *testing.T) {
	t.Parallel()
	for _, k := range kindCalls() {
		t.Run(k.path, func(t *testing.T) { probed(t, k) })
	}
}

func probed(t *testing.T, k kindCall) {
	t.Parallel()
	repaired := make(chan struct{})
	v := newVendor(t, func(int, string) (int, string) {
		select {
		case <-repaired:
			return 200, k.answer
		default:
			return 404, `{"error":{"message":"The model does not exist.","type":"invalid_request_error","code":"model_not_found"}}`
		}
	})
	g := scene.Open(t, scene.Binary(t), storetest.SQLite(t), nil)
	g.SetCatalog([]map[string]any{k.model}, []map[string]any{scene.ChatLine("main", v.URL, nil, "m")})
	c := newClient(t, g)
	if a := c.Post(k.path, k.body); a.Status != http.StatusBadGateway {
		t.Errorf("while the provider lacks the model: %d %s, want 502", a.Status, a.Raw)
	}
	scene.Eventually(t, "the line is probed with a request of the kind", func() bool { return slices.Contains(v.asked(), k.probe) })
	scene.Eventually(t, "the model is out on the line", func() bool {
		var lines struct{ Data []scene.LineState }
		g.Process.Admin("GET", "/lines", nil, &lines)
		out := lines.Data[0].ModelsOut
		return len(out) == 1 && out[0].Model == "m"
	})
	close(repaired)
	g.Process.Admin("POST", "/lines/main/resume", map[string]any{}, nil)
	a := c.Post(k.path, k.body)
	if a.Status != http.StatusOK {
		t.Errorf("after the resumption: %d %s, want 200", a.Status, a.Raw)
	}
	c.CheckCharge(a, k.charged)
}
