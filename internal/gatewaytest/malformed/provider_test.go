package malformed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
)

// provider checks and answers every request.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	invalid  []string // the first few unexpected requests
}

// newProvider starts a provider with the chat form below /v1, the native messages form below
// /native/v1, and the Gemini form below /v1beta.
func newProvider(t *testing.T) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client disconnected
	}
	p.note(r.URL.Path, body)
	var request struct {
		Stream bool `json:"stream"`
	}
	_ = json.Unmarshal(body, &request) // note has checked the body
	var whole, stream fakeprovider.Reply
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/count_tokens"):
		whole = fakeprovider.NativeCount(7)
	case strings.HasSuffix(path, "/messages"):
		whole, stream = fakeprovider.NativeAnswer("fine", 10, 5), fakeprovider.NativeStream(10, 5, "fi", "ne")
	case strings.HasPrefix(path, "/v1beta/"):
		whole, stream = fakeprovider.GeminiAnswer("fine", 10, 5), fakeprovider.GeminiStream(10, 5, "fi", "ne")
		request.Stream = strings.Contains(path, ":stream")
		if strings.HasSuffix(path, ":countTokens") {
			whole = fakeprovider.Reply{Body: `{"totalTokens":7}`}
		}
	default:
		whole, stream = fakeprovider.Answer("fine", 10, 5), fakeprovider.Stream(10, 5, "fi", "ne")
	}
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range stream.Events {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
	for _, raw := range stream.Raw {
		_, _ = io.WriteString(w, raw)
	}
}

// note counts a request, checks the body and records a violation.
func (p *provider) note(path string, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if err := checkSound(body); err != nil && len(p.invalid) < 10 {
		p.invalid = append(p.invalid, fmt.Sprintf("%s: %v: %.2000q", path, err, body))
	}
}

// checkSound checks that a body is a JSON object in UTF-8 that every parser understands in the same
// way: without repeated keys at any depth, and without keys that differ only in case from a key in
// obeyed.
func checkSound(body []byte) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	first, err := d.Token()
	if err != nil || first != json.Delim('{') {
		return fmt.Errorf("no JSON object: %w", err)
	}
	if err := oneEach(d, true); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("data after the object")
	}
	return nil
}

// obeyed are keys with an effect on the cost or the form of the answer. Some vendors ignore the
// case of keys.
var obeyed = []string{"model", "n", "max_tokens", "max_completion_tokens", "stream", "service_tier", "models", "tools"}

// oneEach reads the rest of an object and checks that every key is unique.
func oneEach(d *json.Decoder, top bool) error {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key := token.(string) // the decoder only accepts strings as keys
		if seen[key] {
			return fmt.Errorf("the key %q is repeated", key)
		}
		seen[key] = true
		for _, name := range obeyed {
			if top && key != name && strings.EqualFold(key, name) {
				return fmt.Errorf("the key %q differs from %q only in case", key, name)
			}
		}
		if err := value(d); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// value reads one value.
func value(d *json.Decoder) error {
	token, err := d.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('{'):
		return oneEach(d, false)
	case token == json.Delim('['):
		for d.More() {
			if err := value(d); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

// worldHost is the host of references and callbacks. No other test listens on this address, so an
// address with a mutated port does not reach the server of another test.
const worldHost = "127.0.0.4"

// newWorld starts the server for references and callbacks. It returns the server's base address.
func newWorld(t *testing.T) string {
	files := map[string][]byte{"/p.png": fakestudio.Picture(3), "/text.png": []byte("just words"), "/empty.png": nil}
	listener, err := net.Listen("tcp", worldHost+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, ok := files[r.URL.Path]
		switch {
		case r.URL.Path == "/callback":
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "/p.png", http.StatusFound)
		case ok:
			_, _ = w.Write(file)
		default:
			http.NotFound(w, r)
		}
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}
