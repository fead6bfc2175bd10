package api_test

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/store"
)

// withNative adds open models of the messages form to the desk's catalog.
func withNative(t *testing.T, d *desk) {
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

// TestCalledModelsAreOnTheKeysList: a key reaches no model by naming it in a tool
// of another model.
func TestCalledModelsAreOnTheKeysList(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onSQLite(t), nil)
	withNative(t, d)
	_, secret := d.key(account.KeySettings{AllowedModels: []string{"writer-1"}})
	ask := func(path, adviser string) answered {
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
