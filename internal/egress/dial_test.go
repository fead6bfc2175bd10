package egress_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nameServer is a test name server. Each lookup of a name returns the next of the name's addresses.
// The last address repeats.
type nameServer struct {
	mu      sync.Mutex
	addrs   map[string][]string // by name; guarded by mu
	lookups map[string]int      // guarded by mu
}

func newNameServer(addrs map[string][]string) *nameServer {
	return &nameServer{addrs: addrs, lookups: map[string]int{}}
}

// resolver returns a resolver that only uses n.
func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go n.serve(server)
		return client, nil
	}}
}

// serve answers the questions on one connection. The resolver treats the connection as TCP, so each
// message is preceded by its length.
func (n *nameServer) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		response := n.reply(question)
		binary.BigEndian.PutUint16(size[:], uint16(len(response)))
		if _, err := conn.Write(append(size[:], response...)); err != nil {
			return
		}
	}
}

// reply returns the response to a question for IPv4 or IPv6 addresses.
func (n *nameServer) reply(question []byte) []byte {
	end, name := 12, []string{}
	for question[end] != 0 {
		name = append(name, string(question[end+1:end+1+int(question[end])]))
		end += 1 + int(question[end])
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	response := append([]byte{}, question[:end+5]...)
	response[2], response[3] = 0x81, 0x80                        // an answer
	copy(response[4:], []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}[:8]) // one question, no records yet
	addr, known := n.next(strings.ToLower(strings.Join(name, ".")), kind)
	if !known {
		response[3] |= 3 // no such name
		return response
	}
	raw := addr.AsSlice()
	if (kind == 1) != addr.Is4() {
		return response
	}
	response[7] = 1
	response = append(response, 0xc0, 12)
	response = binary.BigEndian.AppendUint16(response, kind)
	response = append(response, 0, 1, 0, 0, 0, 0)
	response = binary.BigEndian.AppendUint16(response, uint16(len(raw)))
	return append(response, raw...)
}

// next returns the next address of a name, or false if the name is unknown. kind is the record type
// of the question, 1 for IPv4.
func (n *nameServer) next(name string, kind uint16) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.addrs[name]
	if len(list) == 0 {
		return netip.Addr{}, false
	}
	addr := netip.MustParseAddr(list[0])
	if (kind == 1) == addr.Is4() {
		n.lookups[name]++
		if len(list) > 1 {
			n.addrs[name] = list[1:]
		}
	}
	return addr, true
}

// loopback lets a guard reach the test's own servers.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// port returns the port of a test server.
func port(t *testing.T, s *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// TestResolvedAddressIsCheckedWhenDialled checks that a request fails if the host's name resolves
// to a private address when it is dialled, although it resolved to a public address before.
func TestResolvedAddressIsCheckedWhenDialled(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- struct{}{} }))
	defer s.Close()
	for name, addr := range map[string]string{
		"rebound.example": "127.0.0.1", "mapped.example": "::ffff:127.0.0.1", "six.example": "::1", "private.example": "10.0.0.1",
		"metadata.example": "169.254.169.254", "nat64.example": "64:ff9b::7f00:1", "sixtofour.example": "2002:7f00:1::1",
		"zero.example": "0.0.0.0",
	} {
		n := newNameServer(map[string][]string{name: {"93.184.215.14", addr}})
		g := egress.New(nil)
		g.Resolver = n.resolver()
		raw := fmt.Sprintf("http://%s:%s/hook", name, port(t, s))
		if _, err := g.Check(raw); err != nil {
			t.Errorf("Check(%s): error %v, want none", raw, err)
		}
		if addrs, err := g.Resolver.LookupNetIP(t.Context(), "ip4", name); err != nil || !g.Allows(addrs[0].Unmap()) {
			t.Fatalf("%s first resolves to %v, %v, want a public address", name, addrs, err)
		}
		_, err := g.Client(5 * time.Second).Get(raw)
		if !errors.Is(err, egress.ErrNotPublic) || egress.Explain(err) != "the host has no public address" {
			t.Errorf("request to %s at %s: error %v, want %v", name, addr, err, egress.ErrNotPublic)
		}
		var addressErr *egress.AddressError
		if _, err = g.Get(t.Context(), raw, egress.Limits{Size: 10, Timeout: 5 * time.Second}); !errors.As(err, &addressErr) ||
			strings.Contains(err.Error(), addr) {
			t.Errorf("Get of %s at %s: error %v, want an AddressError without the address", name, addr, err)
		}
	}
	if len(reached) != 0 {
		t.Error("the server was reached at a private address")
	}
	n := newNameServer(map[string][]string{"receiver.example": {"127.0.0.1"}})
	g := egress.New(loopback)
	g.Resolver = n.resolver()
	resp, err := g.Client(5 * time.Second).Get("http://receiver.example:" + port(t, s))
	if err != nil {
		t.Fatalf("request to a name in an allowed network: error %v, want none", err)
	}
	_ = resp.Body.Close()
	if len(reached) != 1 {
		t.Errorf("the server got %d requests to a name in an allowed network, want 1", len(reached))
	}
}

// TestPrivateAndUnknownHostsFailAlike checks that neither the text nor the time of a rejection
// reveals the names inside the operator's network.
func TestPrivateAndUnknownHostsFailAlike(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	g.Resolver = newNameServer(map[string][]string{"vault.example": {"10.0.0.1"}, "six.example": {"fd00::1"}}).resolver()
	const size, timeout = 10, 10 * time.Second
	_, unknownErr := g.Get(t.Context(), "http://nobody.example/", egress.Limits{Size: size, Timeout: timeout})
	for _, host := range []string{"nobody.example", "vault.example", "vault.example:22", "six.example"} {
		start := time.Now()
		_, err := g.Get(t.Context(), "http://"+host+"/", egress.Limits{Size: size, Timeout: timeout})
		if took := time.Since(start); took < 100*time.Millisecond {
			t.Errorf("Get of %s failed after %v, want at least 100ms", host, took)
		}
		if err == nil || err.Error() != unknownErr.Error() {
			t.Errorf("Get of %s: error %v, want the error of an unknown name, %v", host, err, unknownErr)
		}
		if _, err = g.Client(timeout).Get("http://" + host + "/"); egress.Explain(err) != "the host has no public address" {
			t.Errorf("request to %s: error %v, want one explained as no public address", host, err)
		}
	}
}

// TestEachExchangeIsChecked checks that the second exchange of a client is refused if the name has
// moved to a private address, because no connection is kept open.
func TestEachExchangeIsChecked(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer s.Close()
	n := newNameServer(map[string][]string{"moving.example": {"127.0.0.1", "10.9.9.9"}})
	g := egress.New(loopback)
	g.Resolver = n.resolver()
	client := g.Client(5 * time.Second)
	resp, err := client.Get("http://moving.example:" + port(t, s))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if _, err := client.Get("http://moving.example:" + port(t, s)); !errors.Is(err, egress.ErrNotPublic) {
		t.Errorf("second exchange: error %v, want %v", err, egress.ErrNotPublic)
	}
}

// TestProxiesOfTheEnvironmentAreIgnored is not parallel, because the test sets environment
// variables.
func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	proxied := make(chan struct{}, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied <- struct{}{} }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "direct") }))
	defer s.Close()
	g := egress.New(loopback)
	g.Resolver = newNameServer(map[string][]string{"receiver.example": {"127.0.0.1"}}).resolver()
	doc, err := g.Get(t.Context(), "http://receiver.example:"+port(t, s), egress.Limits{Size: 100, Timeout: 5 * time.Second})
	if err != nil || string(doc.Body) != "direct" {
		t.Errorf("Get = %v, %v, want the body direct", doc, err)
	}
	if len(proxied) != 0 {
		t.Error("the proxy was used")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	followed := make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/target" {
			followed <- struct{}{}
			return
		}
		http.Redirect(w, r, "/target", http.StatusFound)
	}))
	defer s.Close()
	g := egress.New(loopback)
	resp, err := g.Client(5 * time.Second).Get(s.URL)
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Fatalf("Client.Get = %v, %v, want status 302", resp, err)
	}
	_ = resp.Body.Close()
	_, err = g.Get(t.Context(), s.URL, egress.Limits{Size: 10, Timeout: 5 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "redirect") {
		t.Errorf("Get of a redirect: error %v, want one that names the redirect", err)
	}
	if len(followed) != 0 {
		t.Error("the redirect was followed")
	}
}
