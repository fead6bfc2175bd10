package api_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/call"
	"tollgate/internal/chat"
	"tollgate/internal/egress"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/adapters"
)

// conductor returns a chat conductor with sandbox lines.
func conductor(books *ledger.Ledger, log *slog.Logger) *chat.Conductor {
	return chat.New(call.New(call.Options{Ledger: books, Lines: lines(), Log: log}), chat.Options{})
}

// lines returns sandbox lines.
func lines() *line.Lines {
	return line.New(line.Options{Open: adapters.New(adapters.Options{}).Open})
}

// hello is a valid request.
const hello = `{"model":"swift-1","messages":[{"role":"user","content":"Hello"}]}`

// TestChat checks a whole request: one charge, and the response's id on its receipt.
func TestChat(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		_, secret := d.key(account.KeySettings{})
		got := d.send("POST", "/v1/chat/completions?beta=true", hello, as(secret)...)
		if got.status != 200 || !strings.Contains(string(got.body), `"model":"swift-1"`) {
			t.Fatalf("%d %s", got.status, got.body)
		}
		streamed := d.send("POST", "/v1/chat/completions", strings.Replace(hello, "{", `{"stream":true,`, 1), as(secret)...)
		if streamed.status != 200 || !strings.HasSuffix(string(streamed.body), "data: [DONE]\n\n") {
			t.Fatalf("%d %s", streamed.status, streamed.body)
		}
		d.closeBooks()
		u := d.usage()
		if u.Total.Billed != 2 || u.Total.Cost <= 0 || accountState(t, d).Held != 0 {
			t.Errorf("usage %+v, account %+v", u.Total, accountState(t, d))
		}
		rows := d.requests()
		ids := make(map[string]bool)
		for _, row := range rows {
			ids[row.ID] = true
		}
		for _, a := range []response{got, streamed} {
			if !ids[a.header.Get("x-request-id")] || len(rows) != 2 {
				t.Errorf("no receipt for %s in %v", a.header.Get("x-request-id"), ids)
			}
		}
	})
}

// TestKeyChangesBetweenRequests changes a cached key in the database: the next request uses the new
// values. A fault of the key is reported before other faults of the request.
func TestKeyChangesBetweenRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before account.KeySettings
		first  int
		edit   func(*account.KeySettings)
		next   string // the request after the change
		status int
		code   string
	}{
		{"a new limit of no concern", account.KeySettings{}, 200,
			func(s *account.KeySettings) { n := int64(100); s.RPM = &n }, hello, 200, ""},
		{"disabled", account.KeySettings{}, 200,
			func(s *account.KeySettings) { s.Disabled = true }, `{"model":`, 401, "invalid_api_key"},
		{"model taken away", account.KeySettings{}, 200,
			func(s *account.KeySettings) { s.AllowedModels = []string{"other-1"} }, hello, 403, "permission_denied"},
		{"model given", account.KeySettings{AllowedModels: []string{"other-1"}}, 403,
			func(s *account.KeySettings) { s.AllowedModels = []string{"swift-1"} }, hello, 200, ""},
		{"address taken away", account.KeySettings{}, 200,
			func(s *account.KeySettings) { s.AllowedIPs = []string{"192.0.2.1"} }, hello, 403, "permission_denied"},
		{"address given", account.KeySettings{AllowedIPs: []string{"192.0.2.1"}}, 403,
			func(s *account.KeySettings) { s.AllowedIPs = []string{"127.0.0.1"} }, hello, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newServer(t, onSQLite(t), nil)
			key, secret := d.key(c.before)
			if got := d.send("POST", "/v1/chat/completions", hello, as(secret)...); got.status != c.first {
				t.Fatalf("before: %d %s", got.status, got.body)
			}
			d.changeKey(key, c.edit)
			got := d.send("POST", "/v1/chat/completions", c.next, as(secret)...)
			if c.code != "" {
				got.refused(t, c.status, c.code)
			} else if got.status != c.status {
				t.Fatalf("after: %d %s", got.status, got.body)
			}
		})
	}
}

// withNative adds open models of the messages form to the catalog.
func withNative(d *server) {
	d.t.Helper()
	d.apply(strings.Replace(models, "lines:\n", `
  - {id: writer-1, kind: chat, forms: [messages], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2,
	tools: {advisor: 0}}}
  - {id: adviser-1, kind: chat, forms: [messages], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
`, 1))
}

// TestCalledModelsAreOnTheKeysList checks that a key cannot reach a forbidden model by naming the
// model in a tool of another model.
func TestCalledModelsAreOnTheKeysList(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	withNative(d)
	_, secret := d.key(account.KeySettings{AllowedModels: []string{"writer-1"}})
	ask := func(path, adviser string) response {
		return d.send("POST", path, fmt.Sprintf(`{"model":"writer-1","max_tokens":10,"messages":[{"role":"user","content":"hi"}],`+
			`"tools":[{"type":"advisor_20260301","name":"advisor","model":%q}]}`, adviser), "x-api-key", secret)
	}
	for _, path := range []string{"/native/v1/messages", "/native/v1/messages/count_tokens"} {
		if got := ask(path, "adviser-1"); got.status != 403 || !strings.Contains(string(got.body), "permission_error") {
			t.Errorf("%s: %d %s, want 403", path, got.status, got.body)
		}
	}
	if got := ask("/native/v1/messages", "nobody-1"); got.status != 400 || !strings.Contains(string(got.body), "tools[0].model") {
		t.Errorf("a model without a price: %d %s, want 400", got.status, got.body)
	}
}

// TestCountsHaveALimit checks that all keys of an account share the account's limit of token
// counts, with any balance.
func TestCountsHaveALimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var counted atomic.Int64
		began := time.Now()
		d := newServer(t, db, func(o *api.Options) {
			o.CountRate = 60
			o.Now = func() time.Time { return began.Add(time.Duration(counted.Load())) }
		})
		withNative(d)
		_, first := d.key(account.KeySettings{})
		_, second := d.key(account.KeySettings{})
		const body = `{"model":"writer-1","messages":[{"role":"user","content":"hi"}]}`
		count := func(body string, keys ...string) (counted int, last response) {
			for i := range 100 {
				last = d.send("POST", "/native/v1/messages/count_tokens", body, "x-api-key", keys[i%len(keys)])
				if last.status == 200 {
					counted++
				}
			}
			return counted, last
		}
		if n, last := count(`{"model":"writer-1"}`, first); n != 0 || last.status != 400 {
			t.Errorf("%d requests without messages were counted, last status %d", n, last.status)
		}
		n, last := count(body, first, second)
		if n != 60 || last.status != 429 || !strings.Contains(string(last.body),
			`"rate_limit_error"`) || last.header.Get("Retry-After") != "" {
			t.Errorf("%d of 100 requests were counted, last response %d %s", n, last.status, last.body)
		}
		counted.Store(int64(10 * time.Second))
		if n, _ := count(body, first); n != 10 {
			t.Errorf("%d requests were counted after ten seconds of a flood, want 10", n)
		}
		if got := d.send("POST", "/native/v1/messages", strings.Replace(body, "{", `{"max_tokens":0,`, 1), "x-api-key",
			first); got.status != 400 {
			t.Errorf("messages requests are limited too: %d", got.status)
		}
	})
}

// TestAddressesInBodiesAreGuarded checks that private addresses in bodies are rejected, because a
// provider on the gateway's network could fetch them.
func TestAddressesInBodiesAreGuarded(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), func(o *api.Options) { o.Guard = egress.New(nil) })
	_, secret := d.key(account.KeySettings{})
	for _, address := range []string{"http://10.0.0.1/a.png", "https://localhost/a.png", "http://169.254.169.254/latest/meta-data",
		"https://[::1]/a", "http://127.1/a", "http://0x7f000001/a", "http://db.internal/a", "http://router/a", "https://user:pw@e.com/a"} {
		got := d.send("POST", "/v1/chat/completions", `{"model":"swift-1","messages":[{"role":"user","content":[`+
			`{"type":"image_url","image_url":{"url":"`+address+`"}}]}]}`, as(secret)...)
		if got.status != 400 || !strings.Contains(string(got.body), `"param":"messages[0].content[0].image_url.url"`) {
			t.Errorf("%s: %d %s", address, got.status, got.body)
		}
	}
}
