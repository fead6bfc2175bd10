package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestModels(t *testing.T) {
	t.Parallel()
	before := time.Now().Unix()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{AllowedModels: []string{"swift-1"}})
	got := d.send("GET", "/v1/models?limit=2", "", "Authorization", "bearer "+secret)
	var list struct {
		Object string
		Data   []struct {
			ID, Object string
			Created    int64
			OwnedBy    string `json:"owned_by"`
		}
	}
	if err := json.Unmarshal(got.body, &list); err != nil || got.status != 200 {
		t.Fatalf("%d %v: %s", got.status, err, got.body)
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
		if m.Object != "model" || m.Created < before || m.Created > time.Now().Unix() {
			t.Errorf("%+v", m)
		}
		if want := map[bool]string{true: "example", false: "tollgate"}[m.ID == "swift-1"]; m.OwnedBy != want {
			t.Errorf("%s is owned by %q", m.ID, m.OwnedBy)
		}
	}
	if want := "swift-1 other-1 soon-1 broken-1 easel-1 gift-1 reel-1 soon-2 broken-2"; list.Object != "list" ||
		strings.Join(ids, " ") != want {
		t.Errorf("%s %v, want %s", list.Object, ids, want)
	}
}

// TestModelEntries checks the entry of a model of each kind, in the list and as a single model.
func TestModelEntries(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	var list struct{ Data []json.RawMessage }
	if err := json.Unmarshal(d.send("GET", "/v1/models", "", as(secret)...).body, &list); err != nil {
		t.Fatal(err)
	}
	byID := map[string]string{}
	for _, raw := range list.Data {
		var m struct{ ID string }
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		byID[m.ID] = string(raw)
		got := d.send("GET", "/v1/models/"+m.ID, "", as(secret)...)
		if got.status != 200 || strings.TrimSpace(string(got.body)) != string(raw) {
			t.Errorf("%s: %d %s, want %s", m.ID, got.status, got.body, raw)
		}
	}
	for id, wants := range map[string][]string{
		"swift-1": {`"kind":"chat"`, `"state":"open"`, `"forms":["chat"`, `"context_window":`, `"max_output_tokens":`, `"price":{"input":`,
			`"price_unit":"million_tokens"`, `"endpoints":["/v1/chat/completions"`},
		"easel-1": {`"kind":"image"`, `"price":{"1K":`, `"price_unit":"image"`, `"endpoints":["/v1/images/generations"`},
		"reel-1":  {`"kind":"video"`, `"durations":`, `"price_unit":"second"`, `"endpoints":["/v1/videos/generations"]`},
		"soon-1":  {`"state":"coming_soon"`},
	} {
		for _, want := range wants {
			if !strings.Contains(byID[id], want) {
				t.Errorf("%s has no %s: %s", id, want, byID[id])
			}
		}
	}
	for _, id := range []string{"gone-1", "none", "a/b"} {
		d.send("GET", "/v1/models/"+id, "", as(secret)...).refused(t, 404, "not_found")
	}
	d.send("GET", "/v1/models/swift-1", "").refused(t, 401, "missing_api_key")
}

// TestModelsKeepTheirTime expects the time of the model's first catalog as `created`.
func TestModelsKeepTheirTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		_, secret := d.key(account.KeySettings{})
		created := func() []int64 {
			t.Helper()
			var list struct{ Data []struct{ Created int64 } }
			if err := json.Unmarshal(d.send("GET", "/v1/models", "", as(secret)...).body, &list); err != nil {
				t.Fatal(err)
			}
			var out []int64
			for _, m := range list.Data {
				out = append(out, m.Created)
			}
			return out
		}
		storetest.Exec(t, db, `UPDATE catalog_model SET created_ms = 5000`)
		if got := created(); len(got) == 0 || slices.Max(got) != 5 || slices.Min(got) != 5 {
			t.Errorf("created %v", got)
		}
	})
}

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
			got := d.send("POST", path, body, as(secret)...)
			return strings.Contains(string(got.body), "is a sandbox model")
		}
		for _, c := range calls {
			if refused(plain, c[0], c[1]) {
				t.Errorf("%s is closed without real lines", c[0])
			}
		}
		d.apply(strings.Replace(models, "lines:\n", "  - {id: true-1, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, "+
			"price: {input: 1, output: 2}}\nlines:\n  - {id: real, provider: real, "+
			"base_url: \"https://real.example\", models: {true-1: t}}\n", 1))
		list := func(secret string) string {
			return string(d.send("GET", "/v1/models", "", as(secret)...).body)
		}
		for _, c := range calls {
			got := d.send("POST", c[0], c[1], as(plain)...)
			if got.status != 400 || !strings.Contains(string(got.body), "model_not_found") ||
				!strings.Contains(string(got.body), "mark the account as test") {
				t.Errorf("%s: %d %s", c[0], got.status, got.body)
			}
		}
		if got := list(plain); strings.Contains(got, "swift-1") || !strings.Contains(got, "true-1") {
			t.Errorf("list of a customer: %s", got)
		}
		if got := d.send("GET", "/v1/models/swift-1", "", as(plain)...); got.status != 404 {
			t.Errorf("%d %s", got.status, got.body)
		}
		if refused(listed, calls[0][0], chat) || refused(listed, calls[1][0], calls[1][1]) {
			t.Error("a key with the models in its allowlist is rejected")
		}
		if got := list(listed); !strings.Contains(got, "swift-1") || strings.Contains(got, "reel-1") {
			t.Errorf("list of a key for swift-1 and easel-1: %s", got)
		}
		for _, test := range []bool{true, false, true} { // cached keys follow the account's test mark
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
