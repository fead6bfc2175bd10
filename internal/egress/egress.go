// Package egress owns the connections to addresses from users (callbacks, webhooks, reference
// files, images of chat) and to hosts named by providers (results).
//
// Invariants: only public addresses of other machines are reached. An address is checked when the
// user sets it, and the resolved address is checked again at dial time, so a later change of the
// name's address does not help an attacker. No redirect is followed and no proxy of the environment
// is used. Every exchange has its own connection and is bounded in time and bytes. An error for a
// user names no address except the user's own, and is the same for a name in a private network and
// for an unknown name.
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

// Guard decides which addresses may be reached, and connects to them. It is safe for concurrent
// use.
type Guard struct {
	// Resolver resolves names. If nil, the system's resolver is used. It must not change after the
	// first use.
	Resolver *net.Resolver
	// Interfaces returns the addresses of this machine. If nil, net.InterfaceAddrs is used. It must
	// not change after the first use.
	Interfaces func() ([]net.Addr, error)
	// OpenOwnFile opens a file served by this gateway, for example a result sent as a reference.
	// Get does not dial the file's link, because the link may lead to the machine's own address.
	// isOwn is false for an address of another service. A nil body means that there is no file at
	// the link. If OpenOwnFile is nil, Get dials every address. OpenOwnFile must not change after
	// the first use.
	OpenOwnFile func(ctx context.Context, address string) (body io.ReadCloser, size int64, isOwn bool, err error)

	private    []netip.Prefix
	now        func() time.Time
	interfaces interfaces
}

// ErrNotPublic is wrapped by the error of a connection to a forbidden address.
var ErrNotPublic = errors.New("the address is not public or is this machine's own, and private_networks does not list it")

// New returns a guard that allows public addresses, except those of this machine, and all addresses
// in private (the setting private_networks).
func New(private []netip.Prefix) *Guard {
	g := &Guard{now: time.Now}
	for _, p := range private {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // Allows compares such addresses as IPv4
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		g.private = append(g.private, p.Masked())
	}
	return g
}

// Allows reports whether an address may be reached, because it is in one of the private networks
// passed to New, or is public and belongs to no interface of this machine. IPv4 in IPv6 (::ffff:…)
// counts as the IPv4 address. An address with a zone is never allowed.
func (g *Guard) Allows(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	for _, p := range g.private {
		if p.Contains(addr) {
			return true
		}
	}
	return isPublic(addr) && !g.isLocal(addr)
}

// Bounds of every exchange, in addition to the caller's.
const (
	connectTimeout = 10 * time.Second
	maxHeader      = 64 << 10 // bytes of a response header
)

// Transport returns a transport that uses a new connection for each exchange and checks every
// address before it connects. It speaks HTTP/1.1, without compression or a proxy.
func (g *Guard) Transport() *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: g.Resolver, Control: g.control, KeepAlive: -1}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			start := time.Now()
			conn, err := dialer.DialContext(ctx, network, address)
			if hasNoAddress(err) {
				padTime(ctx, time.Since(start))
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

// hasNoAddress reports whether a host's name does not exist or resolves to a forbidden address.
// Users must not learn which of the two is the case.
func hasNoAddress(err error) bool {
	var dns *net.DNSError
	return errors.Is(err, ErrNotPublic) || errors.As(err, &dns) && dns.IsNotFound
}

// refusalStep is the unit of the duration of a refusal. It exceeds the usual difference between a
// name server's cached and fresh answers, so the duration does not reveal whether a private name
// exists.
const refusalStep = 100 * time.Millisecond

// padTime waits until a refusal has taken a whole number of refusalSteps.
func padTime(ctx context.Context, elapsed time.Duration) {
	timer := time.NewTimer(refusalStep - elapsed%refusalStep)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// control checks each resolved address before the connection begins.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return fmt.Errorf("dial %s: %w", network, ErrNotPublic)
	}
	if !g.Allows(target.Addr()) {
		return ErrNotPublic
	}
	return nil
}

// Client returns a client with its own transport. The client returns redirects like any other
// response, keeps no cookies, and ends an exchange, including the body, after timeout.
func (g *Guard) Client(timeout time.Duration) *http.Client {
	return &http.Client{
		Transport:     g.Transport(),
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Explain describes for the user why an exchange with the user's address failed. The text names no
// address, because an address could reveal the operator's network.
func Explain(err error) string {
	var addressErr *AddressError
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return ""
	case errors.As(err, &addressErr):
		return addressErr.Text
	case hasNoAddress(err):
		return "the host has no public address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no complete answer in time"
	case errors.As(err, &dns):
		return "the host's name could not be looked up"
	case isCertificateError(err):
		return "the host's certificate is not valid for it"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to the host"
	case isTLSError(err):
		return "the host does not speak TLS as it should"
	case isTruncationError(err):
		return "the connection closed before the answer was complete"
	}
	return "the answer could not be read as HTTP"
}
