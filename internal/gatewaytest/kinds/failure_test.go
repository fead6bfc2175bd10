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
	storetest.EachURL(t, func(t *testing.T, database string) {
		asked, release := make(chan struct{}, 8), make(chan struct{})
		v := newVendor(t, func(n int, _ string) (int, string) {
			asked <- struct{}{}
			if n == 1 || n == 2 {
				<-release
			}
			return vectors(1, `{"prompt_tokens":4}`)
		})
		n := scene.NewNode(t, scene.Binary(t), database, map[string]string{"node_lease": "1s"})
		n.SetCatalog([]map[string]any{inputModel("m", nil)}, []map[string]any{scene.ChatLine("main", v.URL, nil, "m")})
		account, key := n.Account(1, nil)
		post := func(ctx context.Context) int {
			answer, err := scene.Do(ctx, n.Client, "POST", n.URL+"/v1/embeddings", `{"model":"m","input":"hello"}`,
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
			if f := n.FundsOf(account); f.Held != 13*tokenPrice {
				t.Errorf("%s: %s USD are held, want the bound of 13 tokens", how, f.Held)
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
		if f := n.FundsOf(account); f.Balance != money.USD-4*tokenPrice || f.Held != 0 {
			t.Errorf("funds %+v, want a charge for the last request only", f)
		}
		n.Audit(t)
	})
}

// TestProbe checks the probe of a failing line: a call of the model's kind. The model is then
// out on the line until the operator resumes it.
func TestProbe(t *testing.T) {
	t.Parallel()
	const probe = `{"model":"vendor-m","input":"ping"}`
	repaired := make(chan struct{})
	v := newVendor(t, func(int, string) (int, string) {
		select {
		case <-repaired:
			return vectors(1, `{"prompt_tokens":4}`)
		default:
			return 404, `{"error":{"message":"The model does not exist.","type":"invalid_request_error","code":"model_not_found"}}`
		}
	})
	g := scene.Open(t, scene.Binary(t), storetest.SQLite(t), nil)
	g.SetCatalog([]map[string]any{inputModel("m", nil)}, []map[string]any{scene.ChatLine("main", v.URL, nil, "m")})
	c := newClient(t, g)
	if a := c.Post("/v1/embeddings", `{"model":"m","input":"hello"}`); a.Status != http.StatusBadGateway {
		t.Errorf("while the provider lacks the model: %d %s, want 502", a.Status, a.Raw)
	}
	scene.Eventually(t, "the line is probed with an embeddings request", func() bool { return slices.Contains(v.asked(), probe) })
	scene.Eventually(t, "the model is out on the line", func() bool {
		var lines struct{ Data []scene.LineState }
		g.Process.Admin("GET", "/lines", nil, &lines)
		out := lines.Data[0].ModelsOut
		return len(out) == 1 && out[0].Model == "m"
	})
	close(repaired)
	g.Process.Admin("POST", "/lines/main/resume", map[string]any{}, nil)
	a := c.Post("/v1/embeddings", `{"model":"m","input":"hello"}`)
	if a.Status != http.StatusOK {
		t.Errorf("after the resumption: %d %s, want 200", a.Status, a.Raw)
	}
	c.CheckCharge(a, 4*tokenPrice)
}
