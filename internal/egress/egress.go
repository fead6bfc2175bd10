// Package egress owns the way out to addresses that users give (callbacks,
// webhooks, reference files, images of chat) and to hosts that providers name (results).
//
// Invariants: only public addresses of other machines are reached, checked when an address is
// given and again at dial time on the address really dialled, so that a name
// which resolves differently a moment later gains nothing; no redirect is
// followed and no proxy of the environment used; every exchange has its own
// connection and an end, in time and in bytes; what a user is told about a
// failure names no address that the user did not give, and is the same for a
// name that leads into a private network and one that does not exist.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Guard decides which addresses of users may be reached, and reaches them. It
// is safe for concurrent use.
type Guard struct {
	// Resolver looks names up; nil: the system's way. Set it before the first
	// use or not at all.
	Resolver *net.Resolver
	// Interfaces returns the addresses of this machine; nil means
	// net.InterfaceAddrs. Set it before the first use or not at all.
	Interfaces func() ([]net.Addr, error)
	// Own opens a file that this service serves itself, such as the link of a
	// result, which users send as a reference: the link may lead to the machine's
	// own address, so Get dials none. It reports false for every other address,
	// and returns a nil body if the link leads to no file. Nil means that
	// there are no such files. Set it before the first use or not at all.
	Own func(ctx context.Context, address string) (body io.ReadCloser, size int64, ours bool, err error)

	private    []netip.Prefix
	now        func() time.Time
	interfaces interfaces
}

// ErrNotPublic is in the error of a connection that was refused because the
// address it would have gone to may not be reached.
var ErrNotPublic = errors.New("the address is not public or is this machine's own, and private_networks does not list it")

// New returns a guard that allows public addresses, except those of this
// machine, and all addresses of private (the setting private_networks).
func New(private []netip.Prefix) *Guard {
	g := &Guard{now: time.Now}
	for _, p := range private {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // Allowed sees such addresses as IPv4
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		g.private = append(g.private, p.Masked())
	}
	return g
}

// Allowed reports whether an address may be reached: it is in one of the private
// networks that New was given, or it is public and no interface of this machine
// has it. IPv4 in IPv6 (::ffff:…) counts as the IPv4 address; an address with a
// zone is never allowed.
func (g *Guard) Allowed(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	for _, p := range g.private {
		if p.Contains(addr) {
			return true
		}
	}
	return public(addr) && !g.local(addr)
}

// Bounds of an exchange beside the caller's own.
const (
	connectTimeout = 10 * time.Second
	maxHeader      = 64 << 10 // bytes of an answer's head
)

// Transport returns a transport that dials each exchange anew and checks every
// address that it is about to connect to. It speaks HTTP/1.1, asks for no
// compression and uses no proxy. It holds no connection between exchanges.
func (g *Guard) Transport() *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: g.Resolver, Control: g.control, KeepAlive: -1}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			began := time.Now()
			conn, err := dialer.DialContext(ctx, network, address)
			if nowhere(err) {
				blur(ctx, time.Since(began))
			}
			return conn, err
		},
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		Protocols:              protocols,
	}
}

// nowhere tells whether a host has no address that may be reached: its name does
// not exist, or leads into a private network. Users must not learn which.
func nowhere(err error) bool {
	var dns *net.DNSError
	return errors.Is(err, ErrNotPublic) || errors.As(err, &dns) && dns.IsNotFound
}

// step is what the time of a refusal is rounded up to: more than name servers
// usually differ by in what they know and what they have to ask for.
const step = 100 * time.Millisecond

// blur waits until a refusal has taken a whole number of steps.
func blur(ctx context.Context, took time.Duration) {
	timer := time.NewTimer(step - took%step)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// control is called with each address that a name resolved to, before the
// connection to it is begun.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return fmt.Errorf("dial %s: %w", network, ErrNotPublic)
	}
	if !g.Allowed(to.Addr()) {
		return ErrNotPublic
	}
	return nil
}

// Client returns a client on a transport of its own. It follows no redirect (a
// 3xx is an answer like any other), keeps no cookies, and ends an exchange,
// body included, after timeout.
func (g *Guard) Client(timeout time.Duration) *http.Client {
	return &http.Client{
		Transport:     g.Transport(),
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Explain says in words for the user why an exchange with a user's address
// failed. It names no address: what a name resolves to inside of the
// operator's network is nobody's business.
func Explain(err error) string {
	var refusal *AddressError
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refusal):
		return refusal.Text
	case nowhere(err):
		return "the host has no public address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no complete answer in time"
	case errors.As(err, &dns):
		return "the host's name could not be looked up"
	case isCertificate(err):
		return "the host's certificate is not valid for it"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to the host"
	case isTLS(err):
		return "the host does not speak TLS as it should"
	case isCut(err):
		return "the connection closed before the answer was complete"
	}
	return "the answer could not be read as HTTP"
}
