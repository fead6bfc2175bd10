package api_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/catalog"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// withNative adds open models of the messages form to the desk's catalog.
func withNative(t *testing.T, d *server) {
	t.Helper()
	doc, _, err := catalog.Parse([]byte(strings.Replace(models, "lines:\n", `
  - {id: writer-1, kind: chat, forms: [messages], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2,
	tools: {advisor: 0}}}
  - {id: adviser-1, kind: chat, forms: [messages], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
`, 1)), providers())
	if err != nil {
		t.Fatal(err)
	}
	err = d.db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := catalog.ApplyTx(tx, doc)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.watcher.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCalledModelsAreOnTheKeysList checks that a key cannot reach a forbidden model by naming the
// model in a tool of another model.
func TestCalledModelsAreOnTheKeysList(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	withNative(t, d)
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
		var passed atomic.Int64
		began := time.Now()
		d := newServer(t, db, func(o *api.Options) {
			o.CountRate = 60
			o.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
		})
		withNative(t, d)
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
			t.Errorf("%d requests without messages were counted, the last is %d", n, last.status)
		}
		n, last := count(body, first, second)
		if n != 60 || last.status != 429 || !strings.Contains(string(last.body),
			`"rate_limit_error"`) || last.header.Get("Retry-After") != "" {
			t.Errorf("%d of 100 were counted, the last is %d %s", n, last.status, last.body)
		}
		passed.Store(int64(10 * time.Second))
		if n, _ := count(body, first); n != 10 {
			t.Errorf("%d were counted after ten seconds of a flood, want 10", n)
		}
		if got := d.send("POST", "/native/v1/messages", strings.Replace(body, "{", `{"max_tokens":0,`, 1), "x-api-key",
			first); got.status != 400 {
			t.Errorf("the messages themselves are limited too: %d", got.status)
		}
	})
}
