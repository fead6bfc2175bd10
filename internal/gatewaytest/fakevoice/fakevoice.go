// Package fakevoice owns fake vendors of speech and transcriptions with an API of their own.
//
// Invariants: each fake is as strict as the vendor's documents; an unknown field, a wrong header and a wrong address
// are errors in the vendor's shape.
//
// A mark in the text, or in the file, replaces the good answer: [busy], [broke] (the account),
// [long] (too large), [cut] (breaks off after half of the answer), [empty], [page].
package fakevoice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Sound returns the sound of every answer.
func Sound() string { return strings.Repeat("0123456789abcdef", 3_000) }

// Request is a request to a fake.
type Request struct {
	URI, Body string
	Header    http.Header
}

// Server is a fake vendor.
type Server struct {
	// URL is the base_url of a line.
	URL string

	mu       sync.Mutex
	requests []Request
}

// serve starts a fake. path is a part of its base address.
func serve(t testing.TB, path string, answer func(w http.ResponseWriter, r *http.Request, body []byte)) *Server {
	s := &Server{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway has gone
		}
		s.mu.Lock()
		s.requests = append(s.requests, Request{r.RequestURI, string(body), r.Header.Clone()})
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r, body)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL + path
	return s
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// marked reports whether a text or file has a mark.
func marked(content []byte, mark string) bool { return bytes.Contains(content, []byte("["+mark+"]")) }

// reply writes a JSON answer.
func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a failed write shows in the answer
}

// send writes and flushes each piece of a good answer. With cut, it breaks the connection after half of the pieces.
func send(w http.ResponseWriter, contentType string, cut bool, pieces ...string) {
	w.Header().Set("Content-Type", contentType)
	for i, piece := range pieces {
		if cut && i >= len(pieces)/2 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, piece) // a failed write shows in the answer
		_ = http.NewResponseController(w).Flush()
	}
}

// page writes a page of a proxy.
func page(w http.ResponseWriter) { send(w, "text/html", false, "<html>bad gateway</html>") }

// pieces splits the sound.
func pieces() (list []string) {
	for part := range slices.Chunk([]byte(Sound()), 8_000) {
		list = append(list, string(part))
	}
	return list
}

// strict decodes JSON without unknown fields.
func strict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// words are the words of every transcript: three sentences by two speakers.
var words = []struct {
	text       string
	start, end float64
	speaker    int
}{
	{"Hello", 0.1, 0.5, 0}, {"world.", 0.6, 1, 0}, {"How", 1.2, 1.4, 1}, {"are", 1.5, 1.6, 1}, {"you?", 1.7, 2.1, 1}, {"Fine", 4, 4.5, 0},
}

// Text is the text of every transcript.
const Text = "Hello world. How are you? Fine"

// object returns a JSON value.
func object(format string, args ...any) string { return fmt.Sprintf(format, args...) }
