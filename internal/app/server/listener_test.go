package server

import (
	"bufio"
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/scene"
)

func TestMain(m *testing.M) {
	// net/http waits half a second before it closes a connection with unread bytes.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// startServer starts a server and returns it with its log. By default, it takes many connections.
// The changes are made before it serves.
func startServer(t *testing.T, o Options, h http.Handler, changes ...func(*Server)) (*Server, *scene.Buffer) {
	t.Helper()
	logged := new(scene.Buffer)
	o.Log = slog.New(slog.NewTextHandler(logged, nil))
	o.MaxConnections, o.MaxConnectionsPerAddress = cmp.Or(o.MaxConnections, 1000), cmp.Or(o.MaxConnectionsPerAddress, 1000)
	s, err := Listen(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(s)
	}
	s.Serve(h, make(chan error, 1))
	t.Cleanup(func() {
		if _, err := s.Drain(0); err != nil {
			t.Error(err)
		}
	})
	return s, logged
}

// dial connects to a server for at most ten seconds.
func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// roundTrip sends a request and returns the status of the response, or 0 without a response.
func roundTrip(c net.Conn, request string) int {
	if _, err := io.WriteString(c, request); err != nil {
		return 0
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	return response.StatusCode
}

const plainGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// unauthorized answers 401 and does not read the body.
var unauthorized = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })

// TestResponsesBeforeBodies checks that a response is sent before an unread body has arrived, and
// that the connection does not wait long for the body.
func TestResponsesBeforeBodies(t *testing.T) {
	t.Parallel()
	s, _ := startServer(t, Options{}, unauthorized)
	for _, field := range []string{"Content-Length: 1000", "Content-Length: 100000000", "Transfer-Encoding: chunked",
		"Content-Length: 10\r\nExpect: 100-continue"} {
		for _, method := range []string{"POST", "GET"} {
			c := dial(t, s)
			if status := roundTrip(c, method+" / HTTP/1.1\r\nHost: x\r\n"+field+"\r\n\r\n"); status != 401 {
				t.Errorf("%s, %s: %d", method, field, status)
			}
			if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, syscall.ETIMEDOUT) || isTimeout(err) {
				t.Errorf("%s, %s: the connection is open: %v", method, field, err)
			}
		}
	}
	c := dial(t, s)
	for range 2 {
		if status := roundTrip(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); status != 401 {
			t.Error("a connection whose body arrived was closed:", status)
		}
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// waitIdle waits until n connections of a server are idle.
func waitIdle(s *Server, n int) { waitCount(s, n, &s.listener.idle) }

// waitCount waits until a list of connections has the length n.
func waitCount(s *Server, n int, conns *list.List) {
	for l := s.listener; ; runtime.Gosched() {
		l.mu.Lock()
		count := conns.Len()
		l.mu.Unlock()
		if count == n {
			return
		}
	}
}

// TestConnectionLimits checks that the oldest idle connection is closed for a new connection, and
// that a connection with a running request is not.
func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Options{
		"all": {MaxConnections: 3}, "address": {MaxConnectionsPerAddress: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, leave := make(chan struct{}), make(chan struct{})
			s, logged := startServer(t, limits, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/stay" {
					entered <- struct{}{}
					<-leave
				}
			}))
			idle := dial(t, s)
			if roundTrip(idle, plainGet) != 200 {
				t.Fatal("no answer")
			}
			waitIdle(s, 1) // the state changes after the response
			silent := []net.Conn{dial(t, s), dial(t, s)}
			if roundTrip(silent[1], plainGet) != 200 {
				t.Fatal("no answer")
			}
			waitIdle(s, 3)
			if roundTrip(dial(t, s), plainGet) != 200 { // a fourth
				t.Error("no room was made")
			}
			if _, err := idle.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Error("the oldest idle connection is open:", err)
			}
			waitIdle(s, 3) // the fourth is one of them
			stays := make(chan int, 3)
			for range 3 {
				c := dial(t, s)
				go func() { stays <- roundTrip(c, "GET /stay HTTP/1.1\r\nHost: x\r\n\r\n") }()
				<-entered
			}
			for range 5 {
				if status := roundTrip(dial(t, s), plainGet); status != 0 {
					t.Error("a connection above the limit was served:", status)
				}
			}
			if n := logged.Count("connections are refused"); n != 5 {
				t.Errorf("%d log lines", n)
			}
			close(leave)
			for range 3 {
				if status := <-stays; status != 200 {
					t.Error("a running request was cut:", status)
				}
			}
			waitIdle(s, 3)
			if roundTrip(dial(t, s), plainGet) != 200 {
				t.Error("no room after the requests")
			}
		})
	}
}

// TestTrustedProxiesAreExempt checks that a trusted proxy may exceed the limit of an address.
func TestTrustedProxiesAreExempt(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s, _ := startServer(t, Options{MaxConnectionsPerAddress: 1, TrustedProxies: proxies}, unauthorized)
	first, second := dial(t, s), dial(t, s)
	for range 2 {
		if roundTrip(first, plainGet) != 401 || roundTrip(second, plainGet) != 401 {
			t.Error("a proxy's connection was closed")
		}
	}
}

// failingListener fails to accept the first connections.
type failingListener struct {
	net.Listener
	left int
}

func (f *failingListener) Accept() (net.Conn, error) {
	if f.left > 0 {
		f.left--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestAcceptErrors(t *testing.T) {
	t.Parallel()
	s, logged := startServer(t, Options{}, unauthorized, func(s *Server) { s.listener.Listener = &failingListener{s.listener.Listener, 3} })
	if roundTrip(dial(t, s), plainGet) != 401 {
		t.Error("no connection is accepted after the errors")
	}
	if n := logged.Count("cannot be accepted"); n != 3 {
		t.Errorf("%d log lines", n)
	}
}

// TestWriteDeadline checks that a connection is closed if the client does not read its response.
func TestWriteDeadline(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 1)
	past := time.Now().Add(-writeSilence + 200*time.Millisecond) // its deadline is near
	s, _ := startServer(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				ends <- err
				return
			}
		}
	}), func(s *Server) { s.listener.now = func() time.Time { return past } })
	c := dial(t, s)
	if _, err := io.WriteString(c, plainGet); err != nil {
		t.Fatal(err)
	}
	if err := <-ends; !isTimeout(err) {
		t.Error(err)
	}
}

func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all, each   int
		descriptors uint64
		want        string
	}{
		{0, 0, 400, "200 100"}, {0, 0, 1 << 40, "100000 50000"}, {0, 0, 10, "32 16"},
		{10, 0, 400, "10 5"}, {1, 0, 400, "1 1"}, {10, 20, 400, "10 20"}, {0, 7, 1024, "512 7"},
	} {
		o := Options{MaxConnections: c.all, MaxConnectionsPerAddress: c.each}.withDefaults(c.descriptors)
		if got := fmt.Sprint(o.MaxConnections, o.MaxConnectionsPerAddress); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
