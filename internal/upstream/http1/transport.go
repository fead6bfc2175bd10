// Package http1 owns HTTP/1.1 connections to providers. The caller's goroutine writes the request and
// reads the response.
//
// net/http gives each connection two goroutines and passes every request and response between them
// and the caller. For a small request this costs more than reading and writing it. This package
// parses responses with net/http.
//
// Invariants:
//   - A request is sent again only if none of its bytes were written.
//   - A connection serves the next request only if the last request was written and the last response
//     read to its end, both allow it, and nothing has arrived since.
//   - The end of a request's context closes its connection, up to the end of the response's body.
package http1

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Transport is an http.RoundTripper. It leaves some requests to a standard transport: requests to hosts
// with HTTP/2, the first request to each host with TLS, and bodies of unknown length. It is safe for
// concurrent use.
type Transport struct {
	standard *http.Transport
	now      func() time.Time

	mu     sync.Mutex
	hosts  map[hostKey]*host
	idle   int         // idle connections to all hosts
	sweeps *time.Timer // nil while no connection is idle
}

// hostKey identifies a host.
type hostKey struct {
	tls     bool
	address string // host and perhaps a port, as in a URL
}

// host is the state of one host. Transport.mu guards it.
type host struct {
	key   hostKey
	http1 bool    // whether the host is known to speak HTTP/1.1
	idle  []*conn // the most recently used is last
}

// New returns a transport with the dialer, TLS settings, limits and timeouts of standard. The caller
// must not change standard afterwards.
func New(standard *http.Transport) *Transport {
	return &Transport{standard: standard, now: time.Now, hosts: make(map[hostKey]*host)}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	h, isHTTP1 := t.hostOf(req)
	if h == nil {
		return t.standard.RoundTrip(req)
	}
	if !isHTTP1 {
		resp, err := t.standard.RoundTrip(req)
		if err == nil && resp.ProtoMajor == 1 {
			t.mu.Lock()
			h.http1 = true
			t.mu.Unlock()
		}
		return resp, err
	}
	if err := context.Cause(req.Context()); err != nil {
		closeBody(req)
		return nil, err
	}
	for {
		c, err := t.connect(req.Context(), h)
		if err != nil {
			closeBody(req)
			return nil, err
		}
		resp, err := c.roundTrip(req)
		if err == nil || !c.reused || !errors.Is(err, errNotSent) || req.Body != nil && req.GetBody == nil {
			return resp, err
		}
		if req, err = withNewBody(req); err != nil {
			return nil, err
		}
	}
}

// withNewBody returns a copy of req with an unread body.
func withNewBody(req *http.Request) (*http.Request, error) {
	if req.Body == nil {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again := *req
	again.Body = body
	return &again, nil
}

// closeBody closes the body of a request, as RoundTrip must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the body was not needed
	}
}

// hostOf returns the host of a request and reports whether the host is known to speak HTTP/1.1. It returns
// nil if the standard transport must send the request.
func (t *Transport) hostOf(req *http.Request) (h *host, isHTTP1 bool) {
	u := req.URL
	isTLS := u != nil && u.Scheme == "https"
	if !canCheck || u == nil || !isTLS && u.Scheme != "http" || !isPlain(u.Host) ||
		req.Host != "" && req.Host != u.Host && !isPlain(req.Host) ||
		req.ContentLength < 0 || req.ContentLength == 0 && req.Body != nil && req.Body != http.NoBody || req.Close || !canSend(req) {
		return nil, false
	}
	key := hostKey{isTLS, u.Host}
	t.mu.Lock()
	defer t.mu.Unlock()
	h = t.hosts[key]
	if h == nil {
		h = &host{key: key, http1: !isTLS}
		t.hosts[key] = h
	}
	return h, h.http1
}

// isPlain reports whether a host needs no conversion before it is sent and dialed: it is ASCII, without a
// zone or an empty port.
func isPlain(address string) bool {
	for i := range len(address) {
		if c := address[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("%/?#@\\", c) >= 0 {
			return false
		}
	}
	return address != "" && address[len(address)-1] != ':'
}

// connect returns an idle connection to the host, or a new one.
func (t *Transport) connect(ctx context.Context, h *host) (*conn, error) {
	for {
		c := t.take(h)
		if c == nil {
			return t.dial(ctx, h)
		}
		if c.isReady() {
			c.reused = true
			return c, nil
		}
		c.close()
	}
}

// take removes the most recently used idle connection and returns it, or nil.
func (t *Transport) take(h *host) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(h.idle)
	if n == 0 {
		return nil
	}
	c := h.idle[n-1]
	h.idle[n-1] = nil
	h.idle = h.idle[:n-1]
	t.idle--
	return c
}

// put adds a connection to the idle ones, or closes it.
func (t *Transport) put(c *conn) {
	t.mu.Lock()
	isFull := len(c.host.idle) >= t.standard.MaxIdleConnsPerHost || t.idle >= t.standard.MaxIdleConns
	if !isFull {
		c.idleSince = t.now()
		c.host.idle = append(c.host.idle, c)
		t.idle++
		if t.sweeps == nil {
			t.sweeps = time.AfterFunc(t.sweepWait(), t.sweep)
		}
	}
	t.mu.Unlock()
	if isFull {
		c.close()
	}
}

// sweepWait is the time between two sweeps.
func (t *Transport) sweepWait() time.Duration { return t.standard.IdleConnTimeout / 8 }

// sweep closes connections after a long idle time and connections closed by the host.
func (t *Transport) sweep() {
	t.mu.Lock()
	oldest := t.now().Add(-t.standard.IdleConnTimeout + t.sweepWait())
	gone := t.remove(func(c *conn) bool { return c.idleSince.Before(oldest) || !c.isReady() })
	if t.idle > 0 {
		t.sweeps.Reset(t.sweepWait())
	} else {
		t.sweeps = nil
	}
	t.mu.Unlock()
	for _, c := range gone {
		c.close()
	}
}

// CloseIdleConnections closes all idle connections, as http.Client expects.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	gone := t.remove(func(*conn) bool { return true })
	t.mu.Unlock()
	for _, c := range gone {
		c.close()
	}
	t.standard.CloseIdleConnections()
}

// remove removes idle connections and returns them. The caller holds t.mu.
func (t *Transport) remove(isGone func(*conn) bool) (gone []*conn) {
	for _, h := range t.hosts {
		kept := h.idle[:0]
		for _, c := range h.idle {
			if isGone(c) {
				gone = append(gone, c)
			} else {
				kept = append(kept, c)
			}
		}
		clear(h.idle[len(kept):])
		h.idle = kept
	}
	t.idle -= len(gone)
	return gone
}
