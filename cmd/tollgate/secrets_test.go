package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"tollgate/internal/gatewaytest/scene"
)

// keyProvider is a provider with one valid key at a time. Streams end when finish is closed.
type keyProvider struct {
	*httptest.Server
	key    atomic.Pointer[string]
	finish chan struct{}
}

func newKeyProvider(t *testing.T, key string) *keyProvider {
	t.Helper()
	k := &keyProvider{finish: make(chan struct{})}
	k.setKey(key)
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer "+*k.key.Load():
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}`)
		case strings.Contains(string(body), `"stream":true`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-k.finish
			_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a"},`+
				`"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		}
	}))
	t.Cleanup(k.Close)
	return k
}

func (k *keyProvider) setKey(key string) { k.key.Store(&key) }

// waitFor sends requests for a model until the status is want.
func (s *service) waitFor(secret, model string, want int) {
	s.t.Helper()
	body := strings.Replace(question, "swift-1", model, 1)
	scene.Eventually(s.t, fmt.Sprintf("%s answers %d", model, want), func() bool {
		status, _ := s.request("POST", "/v1/chat/completions", secret, body)
		return status == want
	})
}

// TestProviderKeysReloadOnSIGHUP checks that SIGHUP rereads the key files of providers, also of
// a provider added later. A stream continues meanwhile, and a deleted file keeps its key in use.
func TestProviderKeysReloadOnSIGHUP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string { return writeFile(t, dir, name, text) }
	first, second := newKeyProvider(t, "provider-key-1"), newKeyProvider(t, "other-key-1")
	model := "  - {id: %s, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}\n"
	line := "  - {id: %s, provider: openai, base_url: '%s', api_key: '${file:%s}', forms: [chat], models: {%s: vendor}}\n"
	models, lines := fmt.Sprintf(model, "swift-1"), fmt.Sprintf(line, "main", first.URL, file("first.key", "provider-key-1\n"), "swift-1")
	apply := func() {
		t.Helper()
		if got := tollgate(t, dir, "apply", file("catalog.yaml", "models:\n"+models+"lines:\n"+lines)); got.code != 0 {
			t.Fatalf("apply ended with %+v, want exit 0", got)
		}
	}
	apply()
	id, _ := must(t, dir, "account", "create", "--name", "acme")["id"].(string)
	must(t, dir, "account", "credit", id, "5")
	secret, _ := must(t, dir, "key", "create", id)["key"].(string)
	s := serve(t, dir)
	s.waitFor(secret, "swift-1", 200)
	answer, rest := s.stream(secret)
	defer answer.Body.Close()

	first.setKey("provider-key-2")
	if status, _ := s.request("POST", "/v1/chat/completions", secret, question); status < 500 {
		t.Errorf("with an invalid provider key, a request got %d, want 5xx", status)
	}
	file("first.key", "provider-key-2\n")
	s.signal(syscall.SIGHUP)
	s.waitFor(secret, "swift-1", 200) // only the new key returns the line to service

	models += fmt.Sprintf(model, "swift-2")
	lines += fmt.Sprintf(line, "second", second.URL, file("second.key", "other-key-1"), "swift-2")
	apply()
	s.waitFor(secret, "swift-2", 200)

	if err := os.Remove(filepath.Join(dir, "first.key")); err != nil {
		t.Fatal(err)
	}
	second.setKey("other-key-2")
	file("second.key", "other-key-2")
	s.signal(syscall.SIGHUP)
	s.waitFor(secret, "swift-2", 200)
	if status, body := s.request("POST", "/v1/chat/completions", secret, question); status != 200 {
		t.Errorf("with a deleted key file, a request got %d %s, want 200", status, body)
	}

	close(first.finish)
	if got, err := io.ReadAll(rest); err != nil || !strings.HasSuffix(string(got), "data: [DONE]\n\n") {
		t.Errorf("the stream ended with %s, %v, want [DONE]", got, err)
	}
	s.signal(syscall.SIGTERM)
	code, log := s.wait()
	for _, want := range []string{`"catalog: reloaded a line's secret" line=main`, `"catalog: reloaded a line's secret" line=second`,
		`"catalog: a line's secret cannot be read again, so the line keeps its previous secret" line=main`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %s: %s", want, log)
		}
	}
	if code != 0 || strings.Contains(log, "-key-") {
		t.Errorf("the service ended with %d and this log, want 0 and no key in the log: %s", code, log)
	}
}

// TestOperatorTokenReloadsOnSIGHUP checks that SIGHUP replaces the token for the operator API and
// the metrics, and keeps the old token if the token's file is empty, invalid or missing.
func TestOperatorTokenReloadsOnSIGHUP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(token string) string { return writeFile(t, dir, "token", token+"\n") }
	const first, second = "operator-token-number-one", "operator-token-number-two"
	path := write(first)
	s := serve(t, dir, "--admin-token-file", path)
	status := func(path, token string) int {
		t.Helper()
		got, _ := s.request("GET", path, token, "")
		return got
	}
	waitFor := func(token string, want int) {
		t.Helper()
		scene.Eventually(t, fmt.Sprintf("%s gets %d", token, want), func() bool { return status("/admin/v1/accounts", token) == want })
	}
	waitFor(first, 200)
	write(second)
	if got := status("/admin/v1/accounts", second); got != 401 {
		t.Errorf("before SIGHUP, the new token got %d, want 401", got)
	}
	s.signal(syscall.SIGHUP)
	waitFor(second, 200)
	for _, path := range []string{"/admin/v1/accounts", "/metrics"} {
		if oldStatus, newStatus := status(path, first), status(path, second); oldStatus != 401 || newStatus != 200 {
			t.Errorf("%s answered %d with the old token and %d with the new token, want 401 and 200", path, oldStatus, newStatus)
		}
	}
	for _, text := range []string{"", "two words"} {
		write(text)
		s.signal(syscall.SIGHUP)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGHUP)
	waitFor(second, 200)
	s.signal(syscall.SIGTERM)
	code, log := s.wait()
	for _, want := range []string{"operator token reloaded", "kept the old operator token"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q: %s", want, log)
		}
	}
	if code != 0 || strings.Contains(log, first) || strings.Contains(log, second) {
		t.Errorf("the service ended with %d and this log, want 0 and no token in the log: %s", code, log)
	}
}
