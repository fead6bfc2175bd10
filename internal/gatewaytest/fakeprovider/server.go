// Package fakeprovider owns a fake chat provider for tests: an HTTP server on the loopback with
// scripted replies in the chat, responses, native messages and Gemini forms. It can also break
// connections, send web pages and send errors inside answers.
//
// Invariants:
//   - The requests get the scripted replies in the order in which the server has read them. A
//     request without a reply fails the test.
//   - Every request is recorded before its answer.
//   - The server and all replies stop at the end of the test.
//
// For example:
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
	maxBody  = 64 << 20 // bytes of a request
	maxWaits = 1 << 16  // requests and replies for WaitRequest and WaitReplyEnd
)

// Request is a request to the provider.
type Request struct {
	Method string
	Path   string
	// URI is the path and query as sent, with escapes.
	URI string
	// Header has canonical names.
	Header http.Header
	Body   []byte
	// From is the client's address. It identifies the connection.
	From string
}

// IsStream reports whether the client wants a stream, according to the body, or to the path in the
// Gemini form.
func (r Request) IsStream() bool {
	return bytes.Contains(r.Body, []byte(`"stream":true`)) || strings.Contains(r.URI, ":streamGenerateContent")
}

// Server is a scripted provider. It is safe for concurrent use.
type Server struct {
	t      testing.TB
	http   *httptest.Server
	closed chan struct{} // ends Stall
	read   chan struct{} // a value for each recorded request
	ended  chan struct{} // a value for each reply at its end

	mu       sync.Mutex
	script   []Reply
	always   func(Request) Reply
	requests []Request
	left     int // clients that disconnected before the end of their answer
}

// New starts a provider with scripted replies. It stops at the end of the test.
func New(t testing.TB, script ...Reply) *Server {
	t.Helper()
	s := newServer(t, script)
	s.http.Start()
	t.Cleanup(s.Close)
	return s
}

// NewTLS is like New, but with TLS and HTTP/2. Transport trusts the server's certificate. Reset and
// Cut reset the stream of the request.
func NewTLS(t testing.TB, script ...Reply) *Server {
	t.Helper()
	s := newServer(t, script)
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func newServer(t testing.TB, script []Reply) *Server {
	s := &Server{t: t, script: script, closed: make(chan struct{}),
		read: make(chan struct{}, maxWaits), ended: make(chan struct{}, maxWaits)}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // tests break handshakes
	return s
}

// URL returns the base_url of a line.
func (s *Server) URL() string { return s.http.URL + "/v1" }

// Transport returns an HTTP transport that trusts the certificate of a NewTLS server.
func (s *Server) Transport() *http.Transport {
	return s.http.Client().Transport.(*http.Transport).Clone()
}

// Certificate returns the certificate of a NewTLS server as PEM, for SSL_CERT_FILE. It is valid for
// 127.0.0.1, not for localhost.
func (s *Server) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Expect adds replies to the script.
func (s *Server) Expect(script ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, script...)
}

// Always sets f to answer requests without a scripted reply. f must be safe for concurrent use.
func (s *Server) Always(f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = f
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// WaitRequest waits for the next request. Each call waits for another request. Without one for a minute, the test
// fails and continues.
func (s *Server) WaitRequest() { s.wait(s.read, "request") }

// WaitReplyEnd waits for the next end of a reply, complete or not. Each call waits for another reply. Without one for
// a minute, the test fails and continues.
func (s *Server) WaitReplyEnd() { s.wait(s.ended, "end of a reply") }

func (s *Server) wait(c <-chan struct{}, what string) {
	s.t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		s.t.Errorf("the provider has no %s within a minute", what)
	}
}

// Disconnects returns the number of clients that disconnected before the end of their answer.
func (s *Server) Disconnects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Remaining returns the number of unused scripted replies.
func (s *Server) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script)
}

// DropConnections closes all connections, idle or not.
func (s *Server) DropConnections() { s.http.CloseClientConnections() }

// Close stops all replies and the server. A test may call it before the end.
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

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client disconnected
	}
	reply, err := s.take(Request{Method: r.Method, Path: r.URL.Path, URI: r.RequestURI, Header: r.Header.Clone(), Body: body,
		From: r.RemoteAddr})
	signal(s.read)
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
	signal(s.ended)
	if p.abort {
		panic(http.ErrAbortHandler) // leaves the answer incomplete
	}
}

// signal sends a value unless the channel is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take records a request and returns its reply.
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
		return Reply{}, fmt.Errorf("request %d (%s %s) has no reply", n, r.Method, r.Path)
	}
	return always(r), nil
}

// player sends one reply.
type player struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	abort  bool
}

// play sends a reply until its end or until the client disconnects.
func (p *player) play(r Reply) {
	if p.breaks(r.Before) || !p.wait(r.Wait) || !p.sleep(r.Delay) {
		return
	}
	if r.Wire != "" {
		p.wire(r)
		return
	}
	p.head(r)
	if r.AfterHead != None {
		p.flush()
		p.breaks(r.AfterHead)
		return
	}
	if r.Body != "" && !p.write(r.Body) {
		return
	}
	for n := range len(r.Events) + len(r.Raw) {
		if !p.wait(r.Gate) || !p.sleep(r.Gap) || !p.write(r.piece(n)) {
			return
		}
		p.flush()
	}
	if r.End != None {
		p.flush()
		p.breaks(r.End)
	} else if r.Length > len(r.Body) {
		p.flush()
		p.abort = true
	}
}

// head writes the status and headers.
func (p *player) head(r Reply) {
	h := p.w.Header()
	switch {
	case r.ContentType == "-":
		h["Content-Type"] = nil // no default
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

// write sends text. It returns false if the client has disconnected.
func (p *player) write(s string) bool {
	_, err := io.WriteString(p.w, s)
	return err == nil
}

func (p *player) flush() { _ = http.NewResponseController(p.w).Flush() }

// breaks breaks the connection, unless t is None. It reports whether the reply has ended.
func (p *player) breaks(t Break) bool {
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
		if err != nil { // HTTP/2: reset the stream
			p.abort = true
			return true
		}
		end(conn, t)
	}
	return true
}

// wire sends Reply.Wire.
func (p *player) wire(r Reply) {
	conn, _, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		p.abort = true
		return
	}
	_, _ = io.WriteString(conn, r.Wire) // the client may have disconnected
	if r.End == Stall {
		left := make(chan struct{})
		go func() { // only a read notices that a hijacked connection has ended
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

// end closes or resets a connection.
func end(conn net.Conn, t Break) {
	if tcp, ok := conn.(*net.TCPConn); ok && t == Reset {
		_ = tcp.SetLinger(0) // Close then resets
	}
	_ = conn.Close()
}

// wait receives a value from a channel. It returns false if the client has disconnected.
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

// sleep waits for a time. It returns false if the client has disconnected.
func (p *player) sleep(d time.Duration) bool {
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
