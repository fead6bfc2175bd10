package api_test

import (
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// faultyRequest is a request with several faults, and the reported one.
type faultyRequest struct {
	name, method, path        string
	key, from, encoding, body string
	status                    int
	code, param               string
}

// checkOrder sends requests with several faults. A request with status 202 has no fault.
func (s *server) checkOrder(requests []faultyRequest, headers ...string) {
	s.t.Helper()
	for _, c := range requests {
		headers := append(headers[:len(headers):len(headers)], "X-Forwarded-For", c.from)
		if c.key != "" {
			headers = append(headers, "Authorization", c.key)
		}
		if c.encoding != "" {
			headers = append(headers, "Content-Encoding", c.encoding)
		}
		got := s.send(c.method, c.path, c.body, headers...)
		if c.status == 202 {
			got.accepted(s.t)
			continue
		}
		s.t.Run(c.name, func(t *testing.T) {
			if param := got.refused(t, c.status, c.code); param != c.param {
				t.Errorf("param %q, want %q", param, c.param)
			}
			if got.header.Get("Retry-After") != "" {
				t.Error("Retry-After although waiting does not help")
			}
		})
	}
}

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
	d.checkOrder([]faultyRequest{
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
		{"model is not a string", "POST", chat, key, from, "", `{"model":7,"messages":[]}`, 400, "model_not_found", "model"},
		{"unknown model", "POST", chat, key, from, "", `{"model":"nope","messages":[]}`, 400, "model_not_found", "model"},
		{"other form, retired", "POST", chat, key, from, "", `{"model":"native-1","messages":[]}`, 400, "model_not_found", "model"},
		{"retired", "POST", chat, key, from, "", `{"model":"old-1","messages":[]}`, 400, "model_disabled", "model"},
		{"coming soon", "POST", chat, key, from, "", `{"model":"soon-1","messages":[]}`, 400, "model_coming_soon", "model"},
		{"maintenance", "POST", chat, key, from, "", `{"model":"broken-1","messages":[]}`, 503, "model_maintenance", "model"},
		{"model allowlist", "POST", chat, key, from, "", noModelAllowed, 403, "permission_denied", "model"},
		{"fields", "POST", chat, key, from, "", `{"model":"other-1","messages":[]}`, 400, "invalid_messages", "messages"},
	}, "x-api-key", secret) // /v1 ignores x-api-key
	state := accountState(t, d)
	if state.Held != 0 || state.Balance.String() != "10" {
		t.Errorf("rejections moved money: %+v", state)
	}
	if u := d.usage(); u.Total.Requests != 0 {
		t.Errorf("rejections count in usage: %+v", u.Total)
	}
}

// accountState reads the account's balance and holds.
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

// usage reads the account's totals from the ledger.
func (s *server) usage() (u ledger.Usage) {
	s.t.Helper()
	err := s.db.View(s.t.Context(), func(tx *store.Tx) (err error) {
		u, err = ledger.UsageTx(tx, s.account)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// TestRefusalsAreLogged expects rejected model calls and nothing else in the request log.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	key, secret := d.key(account.KeySettings{})
	d.send("GET", "/v1/nope", "", as(secret)...)
	d.send("GET", "/v1/chat/completions", "", as(secret)...)
	d.send("GET", "/v1/usage", "")
	d.send("GET", "/v1/images/jobs/job_x", "", as(secret)...).refused(t, 404, "job_not_found")
	want := map[string]requestlog.Receipt{}
	for _, c := range []struct{ path, body, model, code string }{
		{"/v1/chat/completions", `{"model":"old-1"}`, "old-1", "model_disabled"},
		{edits, hat, "easel-1", "invalid_request"},
	} {
		got := d.send("POST", c.path, c.body, as(secret)...)
		got.refused(t, 400, c.code)
		id := got.header.Get("x-request-id")
		want[id] = requestlog.Receipt{ID: id, Account: d.account, Key: key, Model: c.model, Endpoint: c.path, Status: 400, Code: c.code}
	}
	d.closeBooks()
	rows := d.requests()
	for _, row := range rows {
		w := want[row.ID]
		if row.Account != w.Account || row.Key != w.Key || row.Model != w.Model || row.Endpoint != w.Endpoint || row.Status != w.Status ||
			row.Code != w.Code {
			t.Errorf("row %+v, want %+v", row, w)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d: %+v", len(rows), len(want), rows)
	}
}

// TestRefusalsSayWhatToDo expects advice for the client in the messages of rejections.
func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	const chat = "/v1/chat/completions"
	for _, c := range []struct {
		path, body, code, wantText string
		status                     int
	}{
		{chat, `{"model":"easel-1","messages":[]}`, "model_not_found", "/v1/images/generations", 400},
		{chat, `{"model":"reel-1","messages":[]}`, "model_not_found", "/v1/videos/generations", 400},
		{generations, `{"model":"swift-1","prompt":"x"}`, "model_not_found", chat, 400},
		{chat, "", "invalid_json", "body is empty", 400},
		{chat, " \n", "invalid_json", "body is empty", 400},
		{chat, `{"model":`, "invalid_json", "ends too early", 400},
	} {
		got := d.send("POST", c.path, c.body, as(secret)...)
		got.refused(t, c.status, c.code)
		if !strings.Contains(string(got.body), c.wantText) {
			t.Errorf("%s %q: %s; want %q", c.path, c.body, got.body, c.wantText)
		}
	}
}

// TestKeyWithoutItsScheme checks that a key in the wrong place gets an explanation, and that no
// response repeats the key.
func TestKeyWithoutItsScheme(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	for _, c := range []struct{ path, authorization, wantText string }{
		{"/v1/models", "", "No API key was sent"},
		{"/v1/models", "Bearer ", "No API key was sent"},
		{"/v1/models", secret, "has no scheme"},
		{"/v1/models", "Basic " + secret, "another scheme than Bearer"},
		{"/v1/models", secret + " " + secret, "another scheme than Bearer"},
		{"/native/v1/models", secret, "has no scheme"},
		{"/native/v1/models", "", "x-api-key"},
	} {
		headers := []string{}
		if c.authorization != "" {
			headers = append(headers, "Authorization", c.authorization)
		}
		got := d.send("GET", c.path, "", headers...)
		if strings.HasPrefix(c.path, "/v1") {
			got.refused(t, 401, "missing_api_key")
		}
		if body := string(got.body); got.status != 401 || !strings.Contains(body, c.wantText) || strings.Contains(body, secret) {
			t.Errorf("%s with %q: %d %s; want %q", c.path, c.authorization, got.status, body, c.wantText)
		}
	}
	if got := d.send("GET", "/native/v1/models", "", "Authorization", secret, "x-api-key", secret); got.status != 200 {
		t.Errorf("with x-api-key too: %d %s", got.status, got.body)
	}
}
