package contracttest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
)

// shared is the checker of all clients in a test binary, so that schemas are compiled only once.
var shared = sync.OnceValues(New)

// Transport returns a transport that sends requests with next and checks each answer once its body was read. A
// difference fails the test.
func Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	checker, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return &transport{t, checker, next}
}

type transport struct {
	t       testing.TB
	checker *Checker
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			sent, _ = io.ReadAll(body) // from memory
		}
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &recordingBody{ReadCloser: answer.Body, onEnd: func(body []byte, cut bool) {
		if err := t.checker.Check(Answer{Method: r.Method, Path: r.URL.Path, Sent: sent, Status: answer.StatusCode, Header: answer.Header,
			Body: body, Cut: cut}); err != nil {
			t.t.Errorf("an answer breaks the contract: %v", err)
		}
	}}
	return answer, nil
}

func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// largest is the maximum size of a checked body, in bytes. Larger bodies are not checked.
const largest = 8 << 20

// recordingBody is a body that keeps a copy of the bytes read. It calls onEnd once, after the last byte or an
// error.
type recordingBody struct {
	io.ReadCloser
	copy  bytes.Buffer
	onEnd func(body []byte, cut bool)
}

// Read implements io.Reader.
func (w *recordingBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.copy.Write(p[:n])
	if err != nil && w.onEnd != nil && w.copy.Len() <= largest {
		w.onEnd(w.copy.Bytes(), !errors.Is(err, io.EOF))
		w.onEnd = nil
	}
	return n, err
}
