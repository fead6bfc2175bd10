package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// newTestListener returns a listener for tests of admit.
func newTestListener(t *testing.T, o Options) *listener {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	o.Log = slog.New(slog.DiscardHandler)
	return newListener(tcp, o)
}

// admitActive admits n connections with a running request and returns how many had room.
// The function from returns the address of each.
func admitActive(l *listener, n int, from func(i int) netip.Addr) (admitted int) {
	for i := range n {
		if c := l.admit(new(net.TCPConn), from(i)); c != nil {
			admitted++
			l.stateChanged(c, http.StateActive)
		}
	}
	return admitted
}

// TestLimitOfNetwork checks which addresses share a limit.
func TestLimitOfNetwork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from func(i int) string
		want int // of 40, with 5 for a network
	}{
		"one address":                 {func(int) string { return "93.184.215.14" }, 5},
		"addresses of a /64":          {func(i int) string { return fmt.Sprintf("2606:4700::%x", i+1) }, 5},
		"far apart in a /64":          {func(i int) string { return fmt.Sprintf("2606:4700:0:0:%x:%x::1", i*1500, i) }, 5},
		"link-local, zones differ":    {func(i int) string { return fmt.Sprintf("fe80::%x%%eth%d", i+1, i) }, 5},
		"unique local, of a /64":      {func(i int) string { return fmt.Sprintf("fd00::%x", i+1) }, 5},
		"IPv4 written as IPv6":        {func(i int) string { return []string{"93.184.215.14", "::ffff:93.184.215.14"}[i%2] }, 5},
		"networks beside each other":  {func(i int) string { return fmt.Sprintf("2606:4700:0:%x::1", i) }, 40},
		"addresses of IPv4":           {func(i int) string { return fmt.Sprintf("93.184.215.%d", i) }, 40},
		"IPv4 of one /24, as IPv6":    {func(i int) string { return fmt.Sprintf("::ffff:93.184.215.%d", i) }, 40},
		"a trusted proxy":             {func(int) string { return "10.0.0.1" }, 40},
		"a trusted proxy's /64":       {func(i int) string { return fmt.Sprintf("2001:4860::%x", i) }, 40},
		"beside the trusted one, /64": {func(i int) string { return fmt.Sprintf("2001:4860:1::%x", i) }, 5},
	} {
		l := newTestListener(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 5, TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:4860::/64")}})
		if got := admitActive(l, 40, func(i int) netip.Addr { return netip.MustParseAddr(test.from(i)) }); got != test.want {
			t.Errorf("%s: %d connections, want %d", name, got, test.want)
		}
	}
}

// TestOneNetworkBlocksNobody checks that a /64 network cannot use up the connections of other
// networks.
func TestOneNetworkBlocksNobody(t *testing.T) {
	t.Parallel()
	l := newTestListener(t, Options{MaxConnections: 240, MaxConnectionsPerAddress: 120})
	admitActive(l, 1000, func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2606:4700::%x", i+1)) })
	if got := admitActive(l, 120, func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("93.184.215.%d", i)) }); got != 120 {
		t.Errorf("%d of 120 other clients had room", got)
	}
}

// TestNetworksAreForgotten checks that closed connections leave no counter behind.
func TestNetworksAreForgotten(t *testing.T) {
	t.Parallel()
	l := newTestListener(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 2})
	for i := range 50 {
		c := l.admit(new(net.TCPConn), netip.MustParseAddr(fmt.Sprintf("2606:4700::%x", i+1)))
		if c == nil {
			t.Fatalf("connection %d had no room", i)
		}
		_ = c.Close()
	}
	if l.open != 0 || len(l.byNetwork) != 0 {
		t.Errorf("%d open, %d networks", l.open, len(l.byNetwork))
	}
}

// waitAnswered waits until n connections of a server linger after their response.
func waitAnswered(s *Server, n int) { waitCount(s, n, &s.listener.answered) }

// startPatient starts a server with a linger time of an hour after a response.
func startPatient(t *testing.T, o Options) (*Server, *scene.Buffer) {
	t.Helper()
	later := time.Now().Add(time.Hour)
	return startServer(t, o, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "0") // otherwise the end of the response follows after the wait
		w.WriteHeader(http.StatusUnauthorized)
	}), func(s *Server) { s.listener.now = func() time.Time { return later } })
}

// TestAnsweredConnectionsMakeRoomFirst checks that lingering connections are closed for new
// connections before idle connections.
func TestAnsweredConnectionsMakeRoomFirst(t *testing.T) {
	t.Parallel()
	const head = " / HTTP/1.1\r\nHost: x\r\n"
	for name, request := range map[string]string{
		"a long body that does not arrive": "POST" + head + "Content-Length: 100000000\r\n\r\n",
		"chunks that do not arrive":        "POST" + head + "Transfer-Encoding: chunked\r\n\r\n",
		"a body that breaks off":           "POST" + head + "Content-Length: 100000000\r\n\r\nxxxxx",
		"not HTTP":                         "no such thing\r\n\r\n",
		"a malformed header":               "GET" + head + "X y\r\n\r\n",
		"an unknown expectation":           "GET" + head + "Expect: wonders\r\n\r\n",
		"two ends":                         "POST" + head + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
		"another version":                  "GET / HTTP/3.7\r\nHost: x\r\n\r\n",
	} {
		for limit, o := range map[string]Options{
			"all": {MaxConnections: 4}, "address": {MaxConnectionsPerAddress: 4},
		} {
			t.Run(name+", "+limit, func(t *testing.T) {
				t.Parallel()
				s, logged := startPatient(t, o)
				idle := dial(t, s)
				if roundTrip(idle, plainGet) != 401 {
					t.Fatal("no answer")
				}
				waitIdle(s, 1) // the oldest idle connection
				for n := range 3 {
					c := dial(t, s)
					if status := roundTrip(c, request); status < 400 {
						t.Fatalf("status %d", status)
					}
					waitAnswered(s, n+1)
				}
				for range 3 {
					if status := roundTrip(dial(t, s), plainGet); status != 401 {
						t.Errorf("another client: %d", status)
					}
				}
				if roundTrip(idle, plainGet) != 401 {
					t.Error("the idle connection made room")
				}
				if n := logged.Count("connections are refused"); n != 0 {
					t.Errorf("%d refused", n)
				}
			})
		}
	}
}

// TestRunningRequestsStay checks that a connection is not closed for another while its body
// arrives.
func TestRunningRequestsStay(t *testing.T) {
	t.Parallel()
	reader := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, n, err)
	})
	s, _ := startServer(t, Options{MaxConnections: 2}, reader)
	var runs []net.Conn
	for range 2 {
		c := dial(t, s)
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReaderSize(c, 16).ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatal(line, err)
		}
		runs = append(runs, c)
	}
	if status := roundTrip(dial(t, s), plainGet); status != 0 {
		t.Errorf("another client was served: %d", status)
	}
	for _, c := range runs {
		if status := roundTrip(c, "abcd"); status != 200 {
			t.Errorf("a running request got status %d", status)
		}
	}
}
