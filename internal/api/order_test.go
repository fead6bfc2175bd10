package api_test

import (
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// TestOrderOfChecks sends requests with several faults; each entry fixes the fault of the previous
// one and keeps all later ones (ARCHITECTURE.md, Order of checks).
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{AllowedModels: []string{"other-1", "unlisted-1"},
		AllowedIPs: []string{"192.0.2.0/24"}})
	const chat = "/v1/chat/completions"
	const noModelAllowed = `{"model":"swift-1","messages":[]}`
	tooLong := "\xff" + strings.Repeat("x", maxBody)
	key, from, packed := "Bearer "+secret, "192.0.2.1", "gzip"
	for _, c := range []struct {
		name           string
		method, path   string
		key, from      string
		encoding, body string
		status         int
		code, param    string
	}{
		{"path", "GET", "/v1/chat", "", "203.0.113.7", packed, tooLong, 404, "not_found", ""},
		{"path with a slash", "POST", chat + "/", "", "203.0.113.7", packed, tooLong, 404, "not_found", ""},
		{"method", "GET", chat, "", "203.0.113.7", packed, tooLong, 405, "method_not_allowed", ""},
		{"no key", "POST", chat, "", "203.0.113.7", packed, tooLong, 401, "missing_api_key", ""},
		{"empty key", "POST", chat, "Bearer ", "203.0.113.7", packed, tooLong, 401, "missing_api_key", ""},
		{"key without Bearer", "POST", chat, secret, "203.0.113.7", packed, tooLong, 401, "missing_api_key", ""},
		{"unknown key", "POST", chat, "Bearer sk-unknown", "203.0.113.7", packed, tooLong, 401, "invalid_api_key", ""},
		{"address", "POST", chat, key, "203.0.113.7", packed, tooLong, 403, "permission_denied", ""},
		{"size", "POST", chat, key, from, packed, tooLong, 413, "request_too_large", ""},
		{"compressed", "POST", chat, key, from, packed, "\xff{", 400, "invalid_encoding", ""},
		{"UTF-8", "POST", chat, key, from, "", "\xff{", 400, "invalid_encoding", ""},
		{"JSON", "POST", chat, key, from, "", `{"model":`, 400, "invalid_json", ""},
		{"empty body", "POST", chat, key, from, "", ``, 400, "invalid_json", ""},
		{"object", "POST", chat, key, from, "", `["model"]`, 400, "invalid_request", ""},
		{"repeated key", "POST", chat, key, from, "", `{"model":1,"mod\u0065l":"x"}`, 400, "invalid_json", ""},
		{"no model", "POST", chat, key, from, "", `{"messages":[]}`, 400, "model_not_found", "model"},
		{"model is no string", "POST", chat, key, from, "", `{"model":7,"messages":[]}`, 400, "model_not_found", "model"},
		{"unknown model", "POST", chat, key, from, "", `{"model":"nope","messages":[]}`, 400, "model_not_found", "model"},
		{"other form, retired", "POST", chat, key, from, "", `{"model":"native-1","messages":[]}`, 400, "model_not_found", "model"},
		{"retired", "POST", chat, key, from, "", `{"model":"old-1","messages":[]}`, 400, "model_disabled", "model"},
		{"coming soon", "POST", chat, key, from, "", `{"model":"soon-1","messages":[]}`, 400, "model_coming_soon", "model"},
		{"maintenance", "POST", chat, key, from, "", `{"model":"broken-1","messages":[]}`, 503, "model_maintenance", "model"},
		{"model allowlist", "POST", chat, key, from, "", noModelAllowed, 403, "permission_denied", "model"},
		{"fields", "POST", chat, key, from, "", `{"model":"other-1","messages":[]}`, 400, "invalid_messages", "messages"},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := []string{"X-Forwarded-For", c.from}
			if c.key != "" {
				headers = append(headers, "Authorization", c.key)
			}
			if c.encoding != "" {
				headers = append(headers, "Content-Encoding", c.encoding)
			}
			headers = append(headers, "x-api-key", secret) // is not read on /v1
			got := d.send(c.method, c.path, c.body, headers...)
			if param := got.refused(t, c.status, c.code); param != c.param {
				t.Errorf("param %q, want %q", param, c.param)
			}
			if got.header.Get("Retry-After") != "" {
				t.Error("a Retry-After where waiting does not help")
			}
		})
	}
	state := accountState(t, d)
	if state.Held != 0 || state.Balance.String() != "10" {
		t.Errorf("refusals moved money: %+v", state)
	}
	if u := d.usage(); u.Total.Requests != 0 {
		t.Errorf("refusals count in usage: %+v", u.Total)
	}
}

// accountState reads the money side of the account.
func accountState(t *testing.T, d *server) ledger.AccountState {
	t.Helper()
	var state ledger.AccountState
	err := d.db.View(t.Context(), func(tx *store.Tx) error {
		states, err := ledger.AccountsTx(tx, []string{d.account})
		state = states[d.account]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// usage reads the account's totals as the ledger has them.
func (d *server) usage() (u ledger.Usage) {
	d.t.Helper()
	err := d.db.View(d.t.Context(), func(tx *store.Tx) (err error) {
		u, err = ledger.UsageTx(tx, d.account)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return u
}

// TestRefusalsAreLogged checks that the request log has refused model calls and nothing else.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	db := onSQLite(t)
	d := newServer(t, db, nil)
	key, secret := d.key(account.KeySettings{})
	bearer := []string{"Authorization", "Bearer " + secret}
	d.send("GET", "/v1/nope", "", bearer...)
	d.send("GET", "/v1/chat/completions", "", bearer...)
	d.send("GET", "/v1/usage", "")
	got := d.send("POST", "/v1/chat/completions", `{"model":"old-1"}`, bearer...)
	got.refused(t, 400, "model_disabled")
	d.settled()
	var rows []requestlog.Receipt
	err := db.View(t.Context(), func(tx *store.Tx) error {
		page, err := requestlog.ListTx(tx, requestlog.Selection{Limit: 10})
		rows = page.Receipts
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 {
		t.Fatalf("%d rows, want 1: %+v", len(rows), rows)
	}
	row := rows[0]
	if row.ID != got.header.Get("x-request-id") || row.Account != d.account || row.Key != key ||
		row.Model != "old-1" || row.Endpoint != "/v1/chat/completions" || row.Status != 400 || row.Code != "model_disabled" {
		t.Errorf("the row says %+v", row)
	}
}
