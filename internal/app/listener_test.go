package app

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// logged is a log that tests read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) lines(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// openDoor opens a door with limits for a test.
func openDoor(t *testing.T, limits connectionLimits, h http.Handler) (*door, *logged) {
	t.Helper()
	said := &logged{}
	d, err := newDoor(t.Context(), "127.0.0.1:0", limits, slog.New(slog.NewTextHandler(said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	d.open(h, make(chan error, 1))
	t.Cleanup(func() {
		if _, err := d.drain(0); err != nil {
			t.Error(err)
		}
	})
	return d, said
}

// dial opens a connection to a door; its reads end in ten seconds.
func dial(t *testing.T, d *door) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", d.address())
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
	d, _ := openDoor(t, connectionLimits{all: 100, perAddress: 100}, refuser)
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
func waiting(d *door, n int) {
	for l := d.listener; ; runtime.Gosched() {
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
	for name, limits := range map[string]connectionLimits{
		"all": {all: 3, perAddress: 100}, "address": {all: 100, perAddress: 3},
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
			if n := said.lines("connections are refused"); n != 5 {
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
	d, _ := openDoor(t, connectionLimits{all: 100, perAddress: 1, exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, refuser)
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
	said := &logged{}
	d, err := newDoor(t.Context(), "127.0.0.1:0", connectionLimits{all: 9, perAddress: 9}, slog.New(slog.NewTextHandler(said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	d.listener.Listener = &failing{d.listener.Listener, 3}
	d.open(refuser, make(chan error, 1))
	if say(dial(t, d), plainGet) != 401 {
		t.Error("the door is shut")
	}
	if n := said.lines("cannot be accepted"); n != 3 {
		t.Errorf("%d lines in the log", n)
	}
	if _, err := d.drain(0); err != nil {
		t.Error(err)
	}
}

// TestClientsThatDoNotReadAreCut: a write has a deadline that moves with
// progress, whoever writes.
func TestClientsThatDoNotReadAreCut(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 1)
	d, err := newDoor(t.Context(), "127.0.0.1:0", connectionLimits{all: 9, perAddress: 9}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-writeSilence + 200*time.Millisecond) // a deadline from then on is near
	d.listener.now = func() time.Time { return long }
	d.open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	if _, err := d.drain(0); err != nil {
		t.Error(err)
	}
}

func TestLimitsOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all, each   int
		descriptors uint64
		want        string
	}{
		{0, 0, 400, "200 100"}, {0, 0, 1 << 40, "100000 50000"}, {0, 0, 10, "32 16"},
		{10, 0, 400, "10 5"}, {1, 0, 400, "1 1"}, {10, 20, 400, "10 20"}, {0, 7, 1024, "512 7"},
	} {
		l := limitsOf(&Settings{MaxConnections: c.all, MaxConnectionsPerAddress: c.each}, c.descriptors)
		if got := fmt.Sprint(l.all, l.perAddress); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
