package api_test

import (
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestSandboxBesideRealLines applies the first real line: from then on, without a restart, sandbox
// models answer only keys with their names and test accounts.
func TestSandboxBesideRealLines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		_, plain := d.key(account.KeySettings{})
		_, listed := d.key(account.KeySettings{AllowedModels: []string{"swift-1", "easel-1"}})
		const chat = `{"model":"swift-1","messages":[{"role":"user","content":"hi"}]}`
		calls := [][2]string{
			{"/v1/chat/completions", chat},
			{"/v1/images/generations", `{"model":"easel-1","prompt":"a"}`},
			{"/v1/images/generations", `{"model":"gift-1","prompt":"a"}`},
			{"/v1/videos/generations", `{"model":"reel-1","prompt":"a"}`},
			{"/v1/responses", `{"model":"swift-1","input":"hi"}`},
			{"/v1/images/edits", `{"model":"easel-1","prompt":"a","image":"https://a.example/a.png"}`},
		}
		refused := func(secret, path, body string) bool {
			got := d.send("POST", path, body, "Authorization", "Bearer "+secret)
			return strings.Contains(string(got.body), "is a sandbox model")
		}
		for _, c := range calls {
			if refused(plain, c[0], c[1]) {
				t.Errorf("%s is closed in a trial", c[0])
			}
		}
		with := strings.Replace(models, "lines:\n", "  - {id: true-1, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, "+
			"price: {input: 1, output: 2}}\nlines:\n  - {id: real, provider: real, "+
			"base_url: \"https://real.example\", models: {true-1: t}}\n", 1)
		all := providers()
		all["real"] = all["sandbox"]
		doc, _, err := catalog.Parse([]byte(with), all)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := catalog.ApplyTx(tx, doc)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := d.watcher.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := func(secret string) string {
			return string(d.send("GET", "/v1/models", "", "Authorization", "Bearer "+secret).body)
		}
		for _, c := range calls {
			got := d.send("POST", c[0], c[1], "Authorization", "Bearer "+plain)
			if got.status != 400 || !strings.Contains(string(got.body), "model_not_found") ||
				!strings.Contains(string(got.body), "mark the account as test") {
				t.Errorf("%s: %d %s", c[0], got.status, got.body)
			}
		}
		if got := list(plain); strings.Contains(got, "swift-1") || !strings.Contains(got, "true-1") {
			t.Errorf("a customer's list: %s", got)
		}
		if got := d.send("GET", "/v1/models/swift-1", "", "Authorization", "Bearer "+plain); got.status != 404 {
			t.Errorf("%d %s", got.status, got.body)
		}
		if refused(listed, calls[0][0], chat) || refused(listed, calls[1][0], calls[1][1]) {
			t.Error("a key that names the models is refused")
		}
		if got := list(listed); !strings.Contains(got, "swift-1") || strings.Contains(got, "reel-1") {
			t.Errorf("the list of a key that names swift-1 and easel-1: %s", got)
		}
		for _, test := range []bool{true, false, true} { // cached keys follow the mark
			if err := db.Update(t.Context(), func(tx *store.Tx) error {
				_, err := account.ChangeTx(tx, d.account, account.Patch{Test: &test})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if got := refused(plain, calls[0][0], chat); got == test {
				t.Errorf("test account %v: refused %v", test, got)
			}
			if got := strings.Contains(list(plain), "reel-1"); got != test {
				t.Errorf("test account %v: listed %v", test, got)
			}
		}
	})
}
