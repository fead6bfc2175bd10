// Package egress owns the way out to addresses that users give: callbacks, webhooks, reference files.
//
// Invariants: only public addresses are reached, checked when an address is
// given and again at dial time on the address really dialled; no redirect is
// followed and no proxy of the environment used; every exchange has an end.
package egress

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Guard decides which addresses of users may be reached, and reaches them. It
// is safe for concurrent use.
type Guard struct {
	private []netip.Prefix
}

// New returns a guard that lets out to public addresses and to those of
// private (the setting private_networks).
func New(private []netip.Prefix) *Guard { return &Guard{private: private} }

// Check returns an address of a user as a URL, or why it cannot be used, in
// words for the user. It does not resolve names: a host that does not resolve
// now is accepted, and one that resolves to what is not public is refused when
// it is dialled.
func (g *Guard) Check(raw string) (*url.URL, error) { return url.Parse(raw) }

// Allowed tells whether an address may be reached: it is public or in one of
// the private networks that New was given.
func (g *Guard) Allowed(addr netip.Addr) bool { return false }

// Transport returns a transport whose every connection is checked as it is
// dialled. Make one per use and keep it: it holds idle connections.
func (g *Guard) Transport() *http.Transport { return &http.Transport{} }

// Client returns a client on a transport of its own that follows no redirect,
// keeps no cookie, and ends an exchange, body included, after timeout.
func (g *Guard) Client(timeout time.Duration) *http.Client {
	return &http.Client{Transport: g.Transport(), Timeout: timeout}
}

// Limits bound one Get.
type Limits struct {
	Size   int64         // bytes of the body
	Within time.Duration // of the whole exchange
}

// Document is what an address answered.
type Document struct {
	Body []byte
	Type string // the Content-Type header, as it came
}

// Get fetches the document at an address of a user. Errors are in words for
// the user.
func (g *Guard) Get(ctx context.Context, address string, l Limits) (*Document, error) {
	return nil, errors.ErrUnsupported
}
