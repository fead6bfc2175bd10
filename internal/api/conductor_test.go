package api_test

import (
	"log/slog"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/chat"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/line"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/adapters"
)

// conductor returns a chat conductor with sandbox lines.
func conductor(books *ledger.Ledger, log *slog.Logger) *chat.Conductor {
	return chat.New(chat.Options{Ledger: books, Lines: lines(), Log: log})
}

// lines are lines of the sandbox.
func lines() *line.Lines {
	return line.New(line.Options{Open: adapters.New(adapters.Options{}).Open})
}

// hello is a good request.
const hello = `{"model":"swift-1","messages":[{"role":"user","content":"Hello"}]}`

// TestChat checks a whole request: one charge, and the response's id on its receipt.
func TestChat(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		_, secret := d.key(account.KeySettings{})
		got := d.send("POST", "/v1/chat/completions?beta=true", hello, "Authorization", "Bearer "+secret)
		if got.status != 200 || !strings.Contains(string(got.body), `"model":"swift-1"`) {
			t.Fatalf("%d %s", got.status, got.body)
		}
		streamed := d.send("POST", "/v1/chat/completions", strings.Replace(hello, "{", `{"stream":true,`, 1), "Authorization", "Bearer "+secret)
		if streamed.status != 200 || !strings.HasSuffix(string(streamed.body), "data: [DONE]\n\n") {
			t.Fatalf("%d %s", streamed.status, streamed.body)
		}
		d.settled()
		u := d.usage()
		if u.Total.Billed != 2 || u.Total.Cost <= 0 || accountState(t, d).Held != 0 {
			t.Errorf("usage %+v, account %+v", u.Total, accountState(t, d))
		}
		var rows []requestlog.Receipt
		err := db.View(t.Context(), func(tx *store.Tx) error {
			page, err := requestlog.ListTx(tx, requestlog.Selection{Limit: 10})
			rows = page.Receipts
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
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

// TestKeyChangesBetweenRequests changes a cached key behind the cache: the next request uses the
// database.
func TestKeyChangesBetweenRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before account.KeySettings
		first  int
		edit   func(*account.KeySettings)
		status int
		code   string
	}{
		{"a new limit of no concern", account.KeySettings{}, 200,
			func(s *account.KeySettings) { n := int64(100); s.RPM = &n }, 200, ""},
		{"disabled", account.KeySettings{}, 200,
			func(s *account.KeySettings) { s.Disabled = true }, 401, "invalid_api_key"},
		{"model taken away", account.KeySettings{}, 200,
			func(s *account.KeySettings) { s.AllowedModels = []string{"other-1"} }, 403, "permission_denied"},
		{"model given", account.KeySettings{AllowedModels: []string{"other-1"}}, 403,
			func(s *account.KeySettings) { s.AllowedModels = []string{"swift-1"} }, 200, ""},
		{"address taken away", account.KeySettings{}, 200,
			func(s *account.KeySettings) { s.AllowedIPs = []string{"192.0.2.1"} }, 403, "permission_denied"},
		{"address given", account.KeySettings{AllowedIPs: []string{"192.0.2.1"}}, 403,
			func(s *account.KeySettings) { s.AllowedIPs = []string{"127.0.0.1"} }, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newServer(t, onSQLite(t), nil)
			key, secret := d.key(c.before)
			send := func() response {
				return d.send("POST", "/v1/chat/completions", hello, "Authorization", "Bearer "+secret)
			}
			if got := send(); got.status != c.first {
				t.Fatalf("before: %d %s", got.status, got.body)
			}
			d.changeKey(key, c.edit)
			got := send()
			if c.code != "" {
				got.refused(t, c.status, c.code)
			} else if got.status != c.status {
				t.Fatalf("after: %d %s", got.status, got.body)
			}
		})
	}
}

// TestDisabledKeyComesBeforeItsFaults checks that a cached but disabled key is rejected before
// other faults of the request.
func TestDisabledKeyComesBeforeItsFaults(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	key, secret := d.key(account.KeySettings{})
	if got := d.send("POST", "/v1/chat/completions", hello, "Authorization", "Bearer "+secret); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	d.changeKey(key, func(s *account.KeySettings) { s.Disabled = true })
	d.send("POST", "/v1/chat/completions", `{"model":`, "Authorization", "Bearer "+secret).refused(t, 401, "invalid_api_key")
}
