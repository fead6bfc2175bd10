package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// providerRequest is a request received by the provider.
type providerRequest struct {
	path   string
	header http.Header
	body   []byte
}

// provider is the test's own provider for the lines of a catalog. A function decides each answer of
// its model. The provider answers in the form of the request, whole or streamed.
type provider struct {
	url   string // of the server, without a path
	model func(providerRequest) turn

	mu       sync.Mutex
	requests []providerRequest
}

// newProvider starts a provider that ends with the test.
func newProvider(t *testing.T, model func(providerRequest) turn) *provider {
	p := &provider{model: model}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// recordedRequests returns the requests so far.
func (p *provider) recordedRequests() []providerRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]providerRequest(nil), p.requests...)
}

// ServeHTTP answers a request.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return // the client disconnected
	}
	request := providerRequest{path: r.URL.Path, header: r.Header.Clone(), body: body}
	p.mu.Lock()
	p.requests = append(p.requests, request)
	number := len(p.requests)
	p.mu.Unlock()
	var options struct {
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(body, &options); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	say := encodedTurn{turn: p.model(request), number: number}
	var whole string
	var events []string
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		whole, events = say.chat()
	case strings.HasSuffix(r.URL.Path, "/responses"):
		whole, events = say.responses()
	case strings.HasSuffix(r.URL.Path, "/messages"):
		whole, events = say.messages()
	case strings.HasSuffix(r.URL.Path, ":generateContent"), strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		whole, events = say.gemini()
		options.Stream = strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
	default:
		http.NotFound(w, r)
		return
	}
	if !options.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole) // the client may have disconnected
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		if _, err := io.WriteString(w, event+"\n\n"); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// onlyLine returns a catalog with one model on a line of one form. The model has all forms and may
// think first.
func (p *provider) onlyLine(form, model string, thinks bool) string {
	adapter, path := "openai", "/v1"
	switch form {
	case "messages":
		adapter, path = "anthropic", ""
	case "gemini":
		adapter, path = "gemini", "/v1beta"
	}
	return fmt.Sprintf(`
models:
  - {id: %s, kind: chat, state: open, forms: [chat, responses, messages, gemini], reasoning: %t,`+
		` context_window: 200000, max_output_tokens: 64000, price: {input: 1, output: 1}}
lines:
  - {id: only, provider: %s, base_url: "%s%s", api_key: "${FAKE_KEY}", forms: [%s], models: {%s: vendor}}
`, model, thinks, adapter, p.url, path, form, model)
}

// quote encodes a JSON string.
func quote(s string) string {
	out, _ := json.Marshal(s) // a string always encodes
	return string(out)
}
