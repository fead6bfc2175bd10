package door

import (
	"bufio"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openDoor opens a door with limits for a test; what it logs can be read.
func openDoor(t *testing.T, o Options, h http.Handler) (*Server, *scene.Buffer) {
	t.Helper()
	said := new(scene.Buffer)
	o.Log = slog.New(slog.NewTextHandler(said, nil))
	s, err := Listen(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	s.Open(h, make(chan error, 1))
	t.Cleanup(func() {
		if _, err := s.Drain(0); err != nil {
			t.Error(err)
		}
	})
	return s, said
}

// dial opens a connection to a door; its reads end in ten seconds.
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

// say sends a request and reads the answer's status; 0: none came.
func say(c net.Conn, request string) int {
	if _, err := io.WriteString(c, request); err != nil {
		return 0
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer.StatusCode
}

const plainGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// refuser refuses without reading a body.
var refuser = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })

// TestRefusalsDoNotWaitForBodies: an answer that needs no body goes out before
// one comes, and the connection does not wait for it long.
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	t.Parallel()
	d, _ := openDoor(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 100}, refuser)
	for _, head := range []string{"Content-Length: 1000", "Content-Length: 100000000", "Transfer-Encoding: chunked",
		"Content-Length: 10\r\nExpect: 100-continue"} {
		for _, method := range []string{"POST", "GET"} {
			c := dial(t, d)
			if status := say(c, method+" / HTTP/1.1\r\nHost: x\r\n"+head+"\r\n\r\n"); status != 401 {
				t.Errorf("%s, %s: %d", method, head, status)
			}
			if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, syscall.ETIMEDOUT) || isTimeout(err) {
				t.Errorf("%s, %s: the connection is kept: %v", method, head, err)
			}
		}
	}
	c := dial(t, d)
	for range 2 {
		if status := say(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); status != 401 {
			t.Error("a connection whose body came is not kept:", status)
		}
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// waiting returns once so many connections of a door wait for a request.
func waiting(s *Server, n int) {
	for l := s.listener; ; runtime.Gosched() {
		l.mu.Lock()
		found := l.waiting.Len()
		l.mu.Unlock()
		if found == n {
			return
		}
	}
}

// TestConnectionsAreBounded: the longest waiting connection makes room, one with
// a running request does not.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Options{
		"all": {MaxConnections: 3, MaxConnectionsPerAddress: 100}, "address": {MaxConnections: 100, MaxConnectionsPerAddress: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, leave := make(chan struct{}), make(chan struct{})
			d, said := openDoor(t, limits, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/stay" {
					entered <- struct{}{}
					<-leave
				}
			}))
			idle := dial(t, d)
			if say(idle, plainGet) != 200 {
				t.Fatal("no answer")
			}
			waiting(d, 1) // the server notes it after the answer
			silent := []net.Conn{dial(t, d), dial(t, d)}
			if say(silent[1], plainGet) != 200 {
				t.Fatal("no answer")
			}
			waiting(d, 3)
			if say(dial(t, d), plainGet) != 200 { // a fourth
				t.Error("no room was made")
			}
			if _, err := idle.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Error("the longest waiting connection is open:", err)
			}
			waiting(d, 3) // the fourth is one of them, and makes room in its turn
			stays := make(chan int, 3)
			for range 3 {
				c := dial(t, d)
				go func() { stays <- say(c, "GET /stay HTTP/1.1\r\nHost: x\r\n\r\n") }()
				<-entered
			}
			for range 5 {
				if status := say(dial(t, d), plainGet); status != 0 {
					t.Error("one more than the limit was answered:", status)
				}
			}
			if n := said.Count("connections are refused"); n != 5 {
				t.Errorf("%d lines in the log", n)
			}
			close(leave)
			for range 3 {
				if status := <-stays; status != 200 {
					t.Error("a running request was cut:", status)
				}
			}
			waiting(d, 3)
			if say(dial(t, d), plainGet) != 200 {
				t.Error("no room afterwards")
			}
		})
	}
}

// TestProxiesAreNoOneAddress: the bound of an address is not for proxies.
func TestProxiesAreNoOneAddress(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	d, _ := openDoor(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 1, TrustedProxies: proxies}, refuser)
	first, second := dial(t, d), dial(t, d)
	for range 2 {
		if say(first, plainGet) != 401 || say(second, plainGet) != 401 {
			t.Error("a proxy's connection was closed")
		}
	}
}

// failing is a listener that has no descriptors for a while.
type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left > 0 {
		f.left--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestAcceptFailuresAreLoggedAndSurvived(t *testing.T) {
	t.Parallel()
	said := new(scene.Buffer)
	d, err := Listen(t.Context(), "127.0.0.1:0", Options{
		MaxConnections: 9, MaxConnectionsPerAddress: 9, Log: slog.New(slog.NewTextHandler(said, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.listener.Listener = &failing{d.listener.Listener, 3}
	d.Open(refuser, make(chan error, 1))
	if say(dial(t, d), plainGet) != 401 {
		t.Error("the door is shut")
	}
	if n := said.Count("cannot be accepted"); n != 3 {
		t.Errorf("%d lines in the log", n)
	}
	if _, err := d.Drain(0); err != nil {
		t.Error(err)
	}
}

// TestClientsThatDoNotReadAreCut: a write has a deadline that moves with
// progress, whoever writes.
func TestClientsThatDoNotReadAreCut(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 1)
	d, err := Listen(t.Context(), "127.0.0.1:0", Options{MaxConnections: 9, MaxConnectionsPerAddress: 9, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-writeSilence + 200*time.Millisecond) // a deadline from then on is near
	d.listener.now = func() time.Time { return long }
	d.Open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				ends <- err
				return
			}
		}
	}), make(chan error, 1))
	c := dial(t, d)
	if _, err := io.WriteString(c, plainGet); err != nil {
		t.Fatal(err)
	}
	if err := <-ends; !isTimeout(err) {
		t.Error(err)
	}
	if _, err := d.Drain(0); err != nil {
		t.Error(err)
	}
}

func TestLimitsByDescriptors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all, each   int
		descriptors uint64
		want        string
	}{
		{0, 0, 400, "200 100"}, {0, 0, 1 << 40, "100000 50000"}, {0, 0, 10, "32 16"},
		{10, 0, 400, "10 5"}, {1, 0, 400, "1 1"}, {10, 20, 400, "10 20"}, {0, 7, 1024, "512 7"},
	} {
		o := Options{MaxConnections: c.all, MaxConnectionsPerAddress: c.each}.filled(c.descriptors)
		if got := fmt.Sprint(o.MaxConnections, o.MaxConnectionsPerAddress); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
