package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStoredSecrets runs the life of a provider's key in the database from the shell: a line uses the
// key without a restart, no output shows it, another key of the installation replaces the first one,
// and without any the service names the secret and serves the other lines.
func TestStoredSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	provider := newKeyProvider(t, "sk-first-key")
	keyFile := filepath.Join(dir, "data/secret-key")
	s := serve(t, dir, "--no-demo")
	file := writeFile(t, dir, "catalog.yaml", strings.NewReplacer("BASE", provider.URL).Replace(`
models:
  - {id: swift-1, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
  - {id: other, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
lines:
  - {id: main, provider: openai, base_url: BASE, api_key: "${secret:main}", models: {swift-1: swift}}
  - {id: other, provider: sandbox, models: {other: other}}
`))
	if applied := tollgate(t, dir, "apply", file); applied.code != 0 {
		t.Fatalf("apply ended with %+v, want 0", applied)
	}
	account := must(t, dir, "account", "create", "--name", "a", "--json")["id"].(string)
	must(t, dir, "account", "credit", account, "5", "--json")
	secret := must(t, dir, "key", "create", account, "--allowed-models", "swift-1,other", "--json")["key"].(string)
	store := func(value string) {
		t.Helper()
		if r := tollgateWithInput(t, dir, value+"\n", "secret", "set", "main"); r.code != 0 || strings.Contains(r.out+r.errors, value) {
			t.Fatalf("secret set ended with %+v, want 0 and no value", r)
		}
	}
	store("sk-wrong-key")
	store("sk-first-key")
	s.waitFor(secret, "swift-1", 200)
	if applied := tollgate(t, dir, "apply", file); applied.code != 0 || strings.Contains(applied.errors, "main") {
		t.Errorf("apply with the stored secret ended with %+v, want 0 and no warning about it", applied)
	}
	if refused := tollgate(t, dir, "secret", "delete", "main"); refused.code != 1 ||
		!strings.Contains(refused.errors, "use this secret: main") {
		t.Errorf("secret delete ended with %+v, want the line in an error", refused)
	}

	first, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	second := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	writeFile(t, dir, "data/secret-key", second+"\n"+string(first))
	if rotated := tollgate(t, dir, "secret", "rotate"); rotated.code != 0 {
		t.Fatalf("secret rotate ended with %+v, want 0", rotated)
	}
	writeFile(t, dir, "data/secret-key", second)
	s.waitFor(secret, "swift-1", 200) // the node has only the first key of the installation
	s.stop()
	s = serve(t, dir)
	s.waitFor(secret, "swift-1", 200)
	s.stop()

	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir)
	s.waitFor(secret, "swift-1", 502)
	s.waitFor(secret, "other", 200)
	list := tollgate(t, dir, "secret", "list")
	if _, err := os.Stat(keyFile); err == nil || !strings.Contains(list.out, "the secret main cannot be decrypted") {
		t.Errorf("without the key's file: %v, and secret list shows %s, want no new file and the problem", err, list.out)
	}
	s.signal(syscall.SIGTERM)
	if _, log := s.wait(); !strings.Contains(log, "the secret main cannot be decrypted") || strings.Contains(log, "-key\n") {
		t.Errorf("the log is %s, want the name of the secret and no value", log)
	}
	writeFile(t, dir, "data/secret-key", "not a key")
	if refused := execute(t, dir, "serve", "--listen=127.0.0.1:0"); refused.code != 2 ||
		!strings.Contains(refused.errors, "secret_key_file: ") {
		t.Errorf("serve with a broken file ended with %+v, want 2 and the setting", refused)
	}
}
