// Package bounds owns the tests of numbers out of range: a provider may report any number, and no
// settlement or read may fail because of it.
package bounds

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/admin"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestReadsAndSettlementsAtTheEndOfCounters sets every counter of the schema to its maximum while
// a stream runs. Afterwards the stream is settled, every list of the operator API and of the command
// line works, the account can be credited, and a further request succeeds.
func TestReadsAndSettlementsAtTheEndOfCounters(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		p := scene.NewNode(t, binary, database, nil)
		const absurd = `{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807,"total_tokens":1,"cost":1e12}`
		stream := fakeprovider.Reply{ContentType: "text/event-stream", Raw: fakeprovider.ChatBillStream(absurd)}
		whole := fakeprovider.Reply{Body: fakeprovider.ChatBill(absurd)}
		provider := fakeprovider.New(t, whole, stream, whole, stream, whole, whole, stream, whole)
		p.Admin("PUT", "/catalog", map[string]any{"models": []map[string]any{scene.ChatModel("swift", nil)},
			"lines": []map[string]any{scene.ChatLine("only", provider.URL(), nil, "swift")}}, nil)
		db := storetest.Open(t, database, store.Options{})
		g := scene.GatewayAt(t, p.Process)
		account, key := p.Account(10, nil)
		ask := func(streamed bool, onText ...func()) scene.Answer {
			t.Helper()
			a := g.Send(t, scene.Chat, key, scene.Request(scene.Chat, "swift", streamed, nil), onText...)
			if a.Status != 200 || a.Err.Code != "" {
				t.Errorf("%d %s", a.Status, a.Raw)
			}
			return a
		}
		first := ask(false)
		for _, limit := range []int64{store.MaxSum, math.MaxInt64} {
			raised := false
			ask(true, func() {
				if !raised {
					raised = true
					ledgertest.SetCounters(t, db, limit)
				}
			})
			if !raised {
				t.Fatal("the stream ended without a text")
			}
			read(t, p, account, key, first.ID)
			ledgertest.RestoreFunds(t, db)
			p.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": 1}, nil)
			p.Admin("PATCH", "/accounts/"+account, map[string]any{"disabled": false}, nil)
			ask(false)
		}
		var r struct {
			Cost     money.Amount  `json:"cost_usd"`
			LineCost *money.Amount `json:"line_cost_usd"`
		}
		p.Admin("GET", "/requests/"+ask(false).ID, nil, &r)
		if r.LineCost != nil || r.Cost <= 0 || r.Cost > money.USD {
			t.Errorf("charged %s, the line's cost is %v", r.Cost, r.LineCost)
		}
		if n := strings.Count(p.Output(), "reports a cost that cannot be true"); n != 1 {
			t.Errorf("%d warnings about the line's cost; want 1", n)
		}
	})
}

// read performs every read of the client interface, the operator API and the command line.
func read(t *testing.T, p *scene.Node, account, key, request string) {
	t.Helper()
	get := func(path, token string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := p.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode >= 500 {
			t.Errorf("GET %s: %d %s %v", path, res.StatusCode, body, err)
		}
	}
	var keys struct {
		Data []struct{ ID string }
	}
	p.Admin("GET", "/accounts/"+account+"/keys", nil, &keys)
	ids := map[string]string{"accounts": account, "keys": keys.Data[0].ID, "requests": request, "revisions": "1", "users": "user_none",
		"jobs": "job_none"}
	for _, route := range admin.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodGet {
			continue
		}
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if part == "{id}" {
				parts[i] = ids[parts[i-1]]
			}
		}
		get(strings.Join(parts, "/"), scene.AdminToken)
	}
	for _, by := range []string{"day", "account", "key", "model", "line", "endpoint"} {
		get("/admin/v1/usage?group_by="+by, scene.AdminToken)
	}
	get("/admin/v1/requests?account="+account+"&key="+ids["keys"], scene.AdminToken)
	for _, path := range []string{"/v1/usage", "/v1/usage?group_by=day", "/v1/usage?group_by=key,model", "/v1/models", "/v1/jobs"} {
		get(path, key)
	}
	get("/metrics", scene.AdminToken)
	for _, args := range [][]string{
		{"account", "list"}, {"account", "show", account}, {"account", "entries", account}, {"key", "list", account}, {"usage"},
		{"usage", "--group-by", "day"}, {"request", "list"}, {"request", "show", request}, {"job", "list"}, {"line", "list"}, {"codes", "list"},
		{"audit"},
	} {
		out, diag, code := scene.Run(t, p.Binary, p.Settings, args...)
		if code != 0 && (args[0] != "audit" || !strings.Contains(out, `"differences"`)) {
			t.Errorf("tollgate %s: %d %s", strings.Join(args, " "), code, fmt.Sprint(out, diag))
		}
	}
}
