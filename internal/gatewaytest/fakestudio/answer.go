package fakestudio

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
)

// turnAway records a submission that the protocol itself refuses, whatever the
// behaviours say; they wait for the next one.
func (s *Studio) turnAway(r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.submissions = append(s.submissions, Submission{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
}

// FilesHost is where the servers of results listen. It is not the host of the
// fakes' own calls, so a gateway reaches it only if private_networks lists it.
const FilesHost = "127.0.0.3"

// openFiles starts a server for the results alone: `/TICKET/N.png` and
// `/TICKET/N.mp4`. It ends with the test.
func (s *Studio) openFiles() *httptest.Server {
	listener, err := net.Listen("tcp", FilesHost+":0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization")+r.Header.Get("X-Key")+r.Header.Get("Api-Key") != "" {
			s.t.Error("fake studio: a credential came to the host of results")
		}
		ticket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if strings.HasSuffix(name, ".mp4") {
			s.serve(w, r, ticket, "video/mp4", Clip())
			return
		}
		var n int
		if _, err := fmt.Sscanf(name, "%d.png", &n); err != nil {
			s.strange(w, r)
			return
		}
		s.serve(w, r, ticket, "image/png", Picture(n))
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	s.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// tellJSON writes an answer.
func tellJSON(w http.ResponseWriter, status int, header map[string]string, body string) {
	for name, value := range header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// whole tells whether a decoded JSON value is a whole number.
func whole(v any) bool {
	n, ok := v.(float64)
	return ok && n == float64(int64(n))
}

// readable tells whether a provider could read a file: an http(s) address, or
// a data URI of at most so many bytes.
func readable(v any, most int) bool {
	text, _ := v.(string)
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return true
	}
	kind, data, ok := strings.Cut(strings.TrimPrefix(text, "data:"), ";base64,")
	raw, err := base64.StdEncoding.DecodeString(data)
	return ok && strings.Contains(kind, "/") && err == nil && len(raw) > 0 && len(raw) <= most
}
