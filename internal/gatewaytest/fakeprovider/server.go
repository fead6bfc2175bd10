// Package fakeprovider owns a provider for tests, of the chat form and the
// native messages form: a real HTTP server on the loopback that does what the
// test scripted, request by request, and misbehaves on the wire as real
// providers do: it resets, stalls, breaks off, sends web pages, errors inside
// good answers, answers without usage.
//
// Invariants:
//   - Requests meet the scripted replies in the order in which they were read
//     completely; one that meets none fails the test.
//   - Every request is recorded as it arrived, before anything is answered.
//   - When the test ends nothing of it runs any more, also no stalled reply.
//
// A test reads:
//
//	p := fakeprovider.New(t, fakeprovider.Busy(1), fakeprovider.Answer("hi", 3, 1))
//	… call p.URL() …
//	got := p.Requests()
package fakeprovider

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	maxBody  = 64 << 20 // bytes read of a request
	maxWaits = 1 << 16  // requests and ends that Arrived and Ended remember
)

// Request is one request as it arrived.
type Request struct {
	Method string
	Path   string
	// URI is path and query as they were sent, escapes included.
	URI string
	// Header as Go's server reads it, canonical names.
	Header http.Header
	Body   []byte
	// From is the address of the caller's end of the connection, so that a
	// test can see whether connections are used again.
	From string
}

// Streamed tells whether the request asks for a stream: in its body, or in its
// path as Gemini has it.
func (r Request) Streamed() bool {
	return bytes.Contains(r.Body, []byte(`"stream":true`)) || strings.Contains(r.URI, ":streamGenerateContent")
}

// Server is a scripted provider. It is safe for concurrent use.
type Server struct {
	t      testing.TB
	http   *httptest.Server
	closed chan struct{} // ends stalls
	read   chan struct{} // one value a recorded request
	ended  chan struct{} // one value a reply that is over

	mu       sync.Mutex
	script   []Reply
	always   func(Request) Reply
	requests []Request
	left     int // requests whose caller left before the end
}

// New starts a provider that answers with the replies in turn and closes it
// when the test ends.
func New(t testing.TB, script ...Reply) *Server {
	t.Helper()
	s := newServer(t, script)
	s.http.Start()
	t.Cleanup(s.Close)
	return s
}

// NewTLS is New over TLS with HTTP/2 on offer; the certificate is trusted by
// Transport's clients. Reset and Cut then end the one connection of all calls.
func NewTLS(t testing.TB, script ...Reply) *Server {
	t.Helper()
	s := newServer(t, script)
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// newServer makes a server that is not started.
func newServer(t testing.TB, script []Reply) *Server {
	s := &Server{t: t, script: script, closed: make(chan struct{}),
		read: make(chan struct{}, maxWaits), ended: make(chan struct{}, maxWaits)}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // callers that break a handshake mean it
	return s
}

// URL is the base address for a line's base_url, without a slash at its end.
func (s *Server) URL() string { return s.http.URL + "/v1" }

// Transport returns an HTTP transport that trusts the server's certificate,
// for servers made by NewTLS.
func (s *Server) Transport() *http.Transport {
	return s.http.Client().Transport.(*http.Transport).Clone()
}

// Certificate returns the certificate of servers made by NewTLS as PEM, for
// the trust store of a process (SSL_CERT_FILE). It is valid for 127.0.0.1 and
// not for localhost.
func (s *Server) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Expect adds replies at the end of the script.
func (s *Server) Expect(script ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, script...)
}

// Always answers what the script has no reply for with what f says. f may be
// called from several goroutines at once.
func (s *Server) Always(f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = f
}

// Requests returns what has arrived so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Arrived waits until one more request has been read and recorded than the
// earlier calls of Arrived have waited for.
func (s *Server) Arrived() { <-s.read }

// Ended waits until one more reply is over, played to its end or left by its
// caller, than the earlier calls of Ended have waited for.
func (s *Server) Ended() { <-s.ended }

// Left returns how many callers left before their answer was complete, as far
// as the server has noticed.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Remaining returns how many scripted replies nobody has asked for.
func (s *Server) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script)
}

// DropConnections closes every connection, also of calls that still run. With
// none running it is what a server does that is tired of idle connections.
func (s *Server) DropConnections() { s.http.CloseClientConnections() }

// Close ends all replies and the server. New calls it at the end of the test;
// a test may call it earlier to have a provider that nobody can connect to.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closed:
		s.mu.Unlock()
		return
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	s.http.CloseClientConnections()
	s.http.Close()
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the caller left while it sent
	}
	reply, err := s.take(Request{Method: r.Method, Path: r.URL.Path, URI: r.RequestURI, Header: r.Header.Clone(), Body: body,
		From: r.RemoteAddr})
	tell(s.read)
	if err != nil {
		s.t.Errorf("fakeprovider: %v", err)
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	p := player{server: s, w: w, r: r}
	p.play(reply)
	if r.Context().Err() != nil {
		s.mu.Lock()
		s.left++
		s.mu.Unlock()
	}
	tell(s.ended)
	if p.abort {
		panic(http.ErrAbortHandler) // the only way to leave an answer unfinished
	}
}

// tell sends a value unless so many are waiting that nobody reads them.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take records a request and takes its reply.
func (s *Server) take(r Request) (Reply, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	n, always := len(s.requests), s.always
	if len(s.script) > 0 {
		reply := s.script[0]
		s.script = s.script[1:]
		s.mu.Unlock()
		return reply, nil
	}
	s.mu.Unlock()
	if always == nil {
		return Reply{}, fmt.Errorf("request %d (%s %s) meets no reply", n, r.Method, r.Path)
	}
	return always(r), nil
}

// player plays one reply.
type player struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	abort  bool
}

// play does what a reply says, until its end or until the caller leaves.
func (p *player) play(r Reply) {
	if p.trouble(r.Before) || !p.wait(r.Wait) || !p.pass(r.Delay) {
		return
	}
	if r.Wire != "" {
		p.wire(r)
		return
	}
	p.head(r)
	if r.AfterHead != None {
		p.flush()
		p.trouble(r.AfterHead)
		return
	}
	if r.Body != "" && !p.write(r.Body) {
		return
	}
	for _, data := range r.Events {
		if !p.wait(r.Gate) || !p.pass(r.Gap) || !p.write(event(data)) {
			return
		}
		p.flush()
	}
	for _, raw := range r.Raw {
		if !p.wait(r.Gate) || !p.pass(r.Gap) || !p.write(raw) {
			return
		}
		p.flush()
	}
	if r.End != None {
		p.flush()
		p.trouble(r.End)
	} else if r.Length > len(r.Body) {
		p.flush()
		p.abort = true
	}
}

// head writes status and headers.
func (p *player) head(r Reply) {
	h := p.w.Header()
	switch {
	case r.ContentType == "-":
		h["Content-Type"] = nil // keeps the server from guessing one
	case r.ContentType != "":
		h.Set("Content-Type", r.ContentType)
	case len(r.Events) > 0:
		h.Set("Content-Type", "text/event-stream")
	default:
		h.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		h.Set(name, value)
	}
	if r.Length > 0 {
		h.Set("Content-Length", strconv.Itoa(r.Length))
	}
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	p.w.WriteHeader(status)
}

// write sends bytes; false when the caller is gone.
func (p *player) write(s string) bool {
	_, err := io.WriteString(p.w, s)
	return err == nil
}

// flush sends what was written; the caller may be gone.
func (p *player) flush() { _ = http.NewResponseController(p.w).Flush() }

// trouble plays a trouble and reports whether the reply is over.
func (p *player) trouble(t Trouble) bool {
	switch t {
	case None:
		return false
	case Stall:
		select {
		case <-p.r.Context().Done():
		case <-p.server.closed:
		}
		p.abort = true
	case Reset, Cut:
		conn, _, err := http.NewResponseController(p.w).Hijack()
		if err != nil { // HTTP/2: the stream is reset instead
			p.abort = true
			return true
		}
		end(conn, t)
	}
	return true
}

// wire plays a reply that is no HTTP.
func (p *player) wire(r Reply) {
	conn, _, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		p.abort = true
		return
	}
	_, _ = io.WriteString(conn, r.Wire) // the caller may be gone
	if r.End == Stall {
		left := make(chan struct{})
		go func() { // a connection that was taken over tells only its reader
			defer close(left)
			_, _ = io.Copy(io.Discard, conn)
		}()
		select {
		case <-left:
		case <-p.server.closed:
		}
		_ = conn.Close()
		<-left
		return
	}
	end(conn, r.End)
}

// end closes a connection, or resets it.
func end(conn net.Conn, t Trouble) {
	if tcp, ok := conn.(*net.TCPConn); ok && t == Reset {
		_ = tcp.SetLinger(0) // else Close would be a FIN
	}
	_ = conn.Close()
}

// wait takes one value from a channel; false when the caller left before.
func (p *player) wait(c <-chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	case <-p.r.Context().Done():
	case <-p.server.closed:
	}
	p.abort = true
	return false
}

// pass lets time pass; false when the caller left before.
func (p *player) pass(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.r.Context().Done():
	case <-p.server.closed:
	}
	p.abort = true
	return false
}
