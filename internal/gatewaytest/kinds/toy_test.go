package kinds

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestAKindIsAFolderAndALine builds the gateway with one more folder of package wire/kind and one more
// line of the registry. The product then serves the kind: catalog, routes, limits, charges, model list
// and audit.
func TestAKindIsAFolderAndALine(t *testing.T) {
	t.Parallel()
	g := scene.Open(t, withToy(t), storetest.SQLite(t), nil)
	model := map[string]any{"id": "shouter", "kind": "toy", "price": map[string]any{"input": 2}, "max_letters": 6}
	line := map[string]any{"id": "main", "provider": "sandbox", "models": map[string]any{"shouter": "vendor-shouter"}}
	g.SetCatalog([]map[string]any{model}, []map[string]any{line})
	account, key := g.Process.Account(1, nil)
	call := func(method, path, body string) (int, string, http.Header) {
		answer, err := scene.Do(t.Context(), http.DefaultClient, method, g.Process.URL+path, body, // in no contract
			"Authorization", "Bearer "+key, "Content-Type", "application/json")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, strings.TrimSpace(string(raw)), answer.Header
	}
	status, raw, header := call("POST", "/v1/toys", `{"model":"shouter","text":"hello","unheard_of":1}`)
	if want := `{"model":"shouter","text":"HELLO"}`; status != http.StatusOK || raw != want {
		t.Errorf("got %d %s, want %s", status, raw, want)
	}
	if got := header.Get("x-tollgate-ignored"); got != "unheard_of" {
		t.Errorf("ignored fields %q, want unheard_of", got)
	}
	if f := g.Process.FundsOf(account); f.Balance != money.USD-5*tokenPrice || f.Held != 0 {
		t.Errorf("funds %+v, want a charge for 5 letters", f)
	}
	status, raw, _ = call("POST", "/v1/toys", `{"model":"shouter","text":"too long"}`)
	if status != http.StatusBadRequest || !strings.Contains(raw, `"param":"text"`) {
		t.Errorf("a text above max_letters: %d %s, want 400 with the param text", status, raw)
	}
	if status, raw, _ = call("POST", "/v1/embeddings", `{"model":"shouter","input":"a"}`); !strings.Contains(raw, "model_not_found") {
		t.Errorf("a toy for embeddings: %d %s, want model_not_found", status, raw)
	}
	_, shown, _ := call("GET", "/v1/models/shouter", "")
	for _, member := range []string{`"kind":"toy"`, `"max_letters":6`, `"price_unit":"million_tokens"`, `"endpoints":["/v1/toys"]`} {
		if !strings.Contains(shown, member) {
			t.Errorf("GET /v1/models/shouter: %s, want %s in it", shown, member)
		}
	}
	g.Audit(t)
}

// withToy builds the gateway with the kind of testdata/toy.go.txt and returns the path of the binary.
func withToy(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	kinds := filepath.Join(root, "internal", "wire", "kind")
	registry := filepath.Join(kinds, "registry", "registry.go")
	text, err := os.ReadFile(registry)
	if err != nil {
		t.Fatal(err)
	}
	edited := string(text)
	for before, added := range map[string]string{
		"\tembedding.Definition(),\n":                   "\ttoy.Definition(),\n",
		"\t\"tollgate/internal/wire/kind/embedding\"\n": "\t\"tollgate/internal/wire/kind/toy\"\n",
	} {
		if !strings.Contains(edited, before) {
			t.Fatalf("%s has no line %q", registry, before)
		}
		edited = strings.Replace(edited, before, before+added, 1)
	}
	folder := t.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		registry:                              filepath.Join(folder, "registry.go"),
		filepath.Join(kinds, "toy", "toy.go"): filepath.Join(root, "internal", "gatewaytest", "kinds", "testdata", "toy.go.txt"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"registry.go": edited, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(folder, "tollgate")
	build := exec.Command("go", "build", "-overlay", filepath.Join(folder, "overlay.json"), "-o", binary, "tollgate/cmd/tollgate")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the gateway with a toy kind: %v\n%s", err, out)
	}
	return binary
}
