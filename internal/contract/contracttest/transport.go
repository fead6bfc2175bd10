package contracttest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
)

// shared is the checker of all clients of a test binary: schemas are compiled once.
var shared = sync.OnceValues(New)

// Transport sends requests with next and checks each answer at its end. A difference fails the
// test.
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
	answer.Body = &watched{ReadCloser: answer.Body, ended: func(body []byte, cut bool) {
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

// largest is how much of a body is kept to be checked.
const largest = 8 << 20

// watched is a body with a copy of everything read.
type watched struct {
	io.ReadCloser
	copy  bytes.Buffer
	ended func(body []byte, cut bool)
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.copy.Write(p[:n])
	if err != nil && w.ended != nil && w.copy.Len() <= largest {
		w.ended(w.copy.Bytes(), !errors.Is(err, io.EOF))
		w.ended = nil
	}
	return n, err
}
