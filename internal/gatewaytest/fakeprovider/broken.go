package fakeprovider

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ClosedAddress returns a base address with a port that refuses connections until the end of the
// test. The port is bound but nothing listens on it.
func ClosedAddress(t testing.TB) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	tcp := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: address.(*syscall.SockaddrInet4).Port}
	return "http://" + tcp.String() + "/v1"
}

// GoAway is an HTTP/2 server. On each connection, it reads one request, sends GOAWAY with an error,
// and closes the connection.
type GoAway struct {
	listener net.Listener
	requests atomic.Int64
	group    sync.WaitGroup
}

// NewGoAway starts a GoAway server with the certificate of NewTLS. The server stops at the end of
// the test.
func NewGoAway(t testing.TB) *GoAway {
	t.Helper()
	// httptest has the certificate, but cannot send GOAWAY.
	model := httptest.NewUnstartedServer(http.NotFoundHandler())
	model.EnableHTTP2 = true
	model.StartTLS()
	config := model.TLS.Clone()
	model.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	g := &GoAway{listener: listener}
	g.group.Go(g.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		g.group.Wait()
	})
	return g
}

// URL returns the base_url of a line.
func (g *GoAway) URL() string { return "https://" + g.listener.Addr().String() + "/v1" }

// Requests returns the number of requests.
func (g *GoAway) Requests() int { return int(g.requests.Load()) }

func (g *GoAway) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		g.group.Go(func() {
			_ = conn.SetDeadline(time.Now().Add(time.Minute)) // bounds a connection without a request
			g.serve(conn)
			_ = conn.Close()
		})
	}
}

// Frames of HTTP/2, RFC 9113.
const (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeaders = 1
	// settings is an empty SETTINGS frame. goAway is a GOAWAY frame with last stream 1 and the error
	// INTERNAL_ERROR.
	settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	goAway   = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x01\x00\x00\x00\x02"
)

// serve reads frames up to the first request and sends GOAWAY.
func (g *GoAway) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	if _, err := io.ReadFull(in, make([]byte, len(preface))); err != nil {
		return
	}
	if _, err := io.WriteString(conn, settings); err != nil {
		return
	}
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head) >> 8
		if _, err := io.CopyN(io.Discard, in, int64(size)); err != nil {
			return
		}
		if head[3] == frameHeaders {
			g.requests.Add(1)
			_, _ = io.WriteString(conn, goAway) // the connection closes next
			return
		}
	}
}
