package soak

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
)

// The usage in every answer of the healthy provider.
const (
	promptTokens = 1000
	answerTokens = 500
)

// healthy answers every request in the chat form, with usage.
func healthy(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return // the client disconnected
	}
	var request struct {
		Stream bool `json:"stream"`
	}
	_ = json.Unmarshal(body, &request)
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, fakeprovider.Answer("all is well", promptTokens, answerTokens).Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range fakeprovider.Stream(promptTokens, answerTokens, "all ", "is ", "well").Events {
		_, _ = io.WriteString(w, "data: "+data+"\n\n")
		_ = http.NewResponseController(w).Flush()
	}
}

// hostile is a provider that answers every request with a random kind of bad answer.
type hostile struct {
	*httptest.Server
	trap string // an address that the gateway may not connect to
	done chan struct{}

	mu     sync.Mutex
	random *rand.Rand
	sent   map[string]int // number of answers by kind
}

// newTrap starts a server on a private address. requests counts the requests it gets.
func newTrap(t *testing.T) (address string, requests *atomic.Int64) {
	listener, err := net.Listen("tcp", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, requests
}

func newHostile(t *testing.T, seed uint64, trap string) *hostile {
	h := &hostile{trap: trap, done: make(chan struct{}), random: rand.New(rand.NewPCG(seed, seed)), sent: map[string]int{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(func() {
		close(h.done)
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// ServeHTTP answers with a random kind of bad answer.
func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)) // the rest is ignored
	all := badAnswers()
	h.mu.Lock()
	kind := all[h.random.IntN(len(all))]
	h.sent[kind.name]++
	h.mu.Unlock()
	kind.play(h, w, r)
}

// counts returns the number of answers so far by kind. The gateway's probes still add answers.
func (h *hostile) counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.sent)
}

// badAnswer is a kind of bad answer.
type badAnswer struct {
	name string
	play func(h *hostile, w http.ResponseWriter, r *http.Request)
}

func badAnswers() []badAnswer {
	body := func(status int, kind, text string) func(*hostile, http.ResponseWriter, *http.Request) {
		return func(_ *hostile, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	const asJSON, asStream = "application/json", "text/event-stream"
	frame := func(text string) string { return "data: " + text + "\n\n" }
	role := frame(fakeprovider.Frame(`{"role":"assistant","content":""}`, ""))
	usage := func(prompt, answer int) string { return fakeprovider.Answer("all is well", prompt, answer).Body }
	return []badAnswer{
		{"a body of brackets", body(200, asJSON, strings.Repeat("[", 8<<20))},
		{"an error of brackets", body(400, asJSON, `{"error":`+strings.Repeat(`{"a":`, 1<<20))},
		{"a frame of brackets", body(200, asStream, frame(strings.Repeat("[", 8<<20)))},
		{"a header without an end", endlessHeader},
		{"an answer of 65 MiB", huge(false)},
		{"a stream of 65 MiB in one frame", huge(true)},
		{"a million empty frames", million},
		{"a drip", drip},
		{"silence", silence},
		{"a cut before the answer", cut("")},
		{"a cut in the header", cut("HTTP/1.1 200 OK\r\nContent-Ty")},
		{"a cut in the body",
			cut("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{\"id\":\"x\",\"choices\":[{")},
		{"another protocol", cut("SSH-2.0-OpenSSH_9.6\r\n")},
		{"500", body(500, asJSON, `{"error":{"message":"x","type":"server_error"}}`)},
		{"a page", body(502, "text/html", "<html><title>502</title></html>")},
		{"a page with status 200", body(200, "text/html", "<html><title>welcome</title></html>")},
		{"an error with status 200", body(200, asJSON, `{"error":{"message":"x","type":"server_error","code":null}}`)},
		{"an error in the stream", body(200, asStream, role+frame(`{"error":{"message":"x","type":"server_error"}}`))},
		{"a cut after the first words", cut("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" +
			role + frame(fakeprovider.Frame(`{"content":"all "}`, "")))},
		{"an empty stream", body(200, asStream, role+"data: [DONE]\n\n")},
		{"a huge usage", body(200, asJSON, usage(1<<60, 1<<60))},
		{"a negative usage", body(200, asJSON, usage(-1000, -500))},
		{"busy for three seconds", func(_ *hostile, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			body(429, asJSON, `{"error":{"message":"x","type":"rate_limit_error"}}`)(nil, w, nil)
		}},
		{"a redirect to the trap", func(h *hostile, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, h.trap, http.StatusTemporaryRedirect)
		}},
		{"a compression bomb", bomb},
	}
}

func endlessHeader(_ *hostile, w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	for line := "X-Endless: " + strings.Repeat("a", 4000) + "\r\n"; err == nil; {
		_, err = io.WriteString(conn, line)
	}
}

func huge(stream bool) func(*hostile, http.ResponseWriter, *http.Request) {
	return func(_ *hostile, w http.ResponseWriter, _ *http.Request) {
		begin := `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"`
		w.Header().Set("Content-Type", "application/json")
		if stream {
			begin = `data: {"choices":[{"index":0,"delta":{"content":"`
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, err := io.WriteString(w, begin)
		chunk := bytes.Repeat([]byte("a"), 1<<20)
		for n := 0; n < 65 && err == nil; n++ {
			_, err = w.Write(chunk)
		}
	}
}

func million(_ *hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := []byte(strings.Repeat("data: {}\n\n:\n\n", 10_000))
	for n, err := 0, error(nil); n < 100 && err == nil; n++ {
		_, err = w.Write(chunk)
	}
}

// drip sends single bytes until the client disconnects.
func drip(h *hostile, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for _, b := range []byte(`{"id":"x","object":"chat.completion","choices":[` + strings.Repeat(" ", 10_000)) {
		if _, err := w.Write([]byte{b}); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-h.done:
			return
		}
	}
}

func silence(h *hostile, _ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-h.done:
	}
}

func cut(after string) func(*hostile, http.ResponseWriter, *http.Request) {
	return func(_ *hostile, w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(conn, after)
			_ = conn.Close()
		}
	}
}

// bomb sends a small body with a large decompressed size.
func bomb(_ *hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	packed := gzip.NewWriter(w)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for n, err := 0, error(nil); n < 200 && err == nil; n++ {
		_, err = packed.Write(chunk)
	}
	_ = packed.Close()
}

// newHost starts a server for references. It sends them slowly, or with the maximum size.
func newHost(t *testing.T) string {
	done := make(chan struct{})
	large := append(fakestudio.Picture(5), make([]byte, 29<<20)...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		if r.URL.Path == "/large.png" {
			_, _ = w.Write(large)
			return
		}
		_, _ = io.WriteString(w, "\x89PNG\r\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	t.Cleanup(func() {
		close(done)
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}
