// Package faultproxy owns a proxy between a node and PostgreSQL for tests. It parses enough of the
// protocol to recognize a COMMIT and its statements, and acts like a network: it loses the COMMIT
// or its answer, cuts connections, freezes them, refuses new ones.
//
// Invariants:
//   - A fault happens at a point of the protocol, never at a time: when a hit is reported, the
//     server has answered the COMMIT or will never see it.
//   - Everything else passes unchanged and in order, in both directions.
//   - Nothing of the proxy runs after the end of the test.
package faultproxy

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
)

// State is a proxy's treatment of traffic.
type State int

// The states of a proxy.
const (
	// Open: everything passes.
	Open State = iota
	// Frozen: nothing passes, also no end of a connection. Connections stay and
	// new ones hang, as when a network is cut.
	Frozen
	// Down: all connections were reset and new ones are, as when the server is
	// gone and its machine is not.
	Down
)

// Proxy stands in front of one database. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	url      string
	group    sync.WaitGroup

	mu      sync.Mutex
	server  string // host and port of the server
	closed  bool
	state   State
	changed chan struct{} // closed and made anew when state changes
	links   map[*link]struct{}
	armed   []*Hit
	commits int
	cancels Cancels
}

// Cancels counts forwarded cancel requests.
type Cancels struct {
	All int
	// Commits counts those for a connection with an unanswered COMMIT: on a server with synchronous
	// standbys such a request makes the COMMIT succeed without them. COMMITs of read-only
	// transactions wait for nothing and do not count.
	Commits int
}

// New starts a proxy for the database at address (postgres://…, without TLS) until the end of the
// test.
func New(t testing.TB, address string) *Proxy {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: u.Host, changed: make(chan struct{}), links: map[*link]struct{}{}}
	u.Host = listener.Addr().String()
	p.url = u.String()
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// URL is the address of the database through the proxy.
func (p *Proxy) URL() string { return p.url }

// Target directs new connections to another server of the same database, like a cluster's proxy
// after a failover.
func (p *Proxy) Target(t testing.TB, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = u.Host
}

// target is the host and port of the server.
func (p *Proxy) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// Freeze lets nothing pass until Open or Reopen.
func (p *Proxy) Freeze() { p.set(Frozen) }

// Down resets all connections and refuses new ones until Open or Reopen.
func (p *Proxy) Down() { p.set(Down) }

// Open lets everything pass again; delayed messages arrive late.
func (p *Proxy) Open() { p.set(Open) }

// Reopen is Open with a reset of the existing connections, whose delayed messages are lost, like
// the end of a long cut.
func (p *Proxy) Reopen() {
	p.Reset()
	p.set(Open)
}

// Reset resets all connections, towards both ends.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetLocked()
}

func (p *Proxy) resetLocked() {
	for l := range p.links {
		l.end(true)
	}
}

// Cancels returns how many requests to cancel have passed.
func (p *Proxy) Cancels() Cancels {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cancels
}

// Commits returns how many COMMITs have come.
func (p *Proxy) Commits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commits
}

func (p *Proxy) set(s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setLocked(s)
}

func (p *Proxy) setLocked(s State) {
	p.state = s
	close(p.changed)
	p.changed = make(chan struct{})
	if s == Down {
		p.resetLocked()
	}
}

// wait waits while the proxy is frozen. It returns false when done was closed.
func (p *Proxy) wait(done <-chan struct{}) bool {
	for {
		p.mu.Lock()
		state, changed := p.state, p.changed
		p.mu.Unlock()
		if state != Frozen {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // a connection broke while it was accepted
		}
		l := &link{proxy: p, client: conn.(*net.TCPConn), done: make(chan struct{}),
			statements: map[string]string{}, portals: map[string]string{}}
		p.mu.Lock()
		refused := p.closed || p.state == Down
		if !refused {
			p.links[l] = struct{}{}
		}
		p.mu.Unlock()
		if refused {
			l.end(true)
			continue
		}
		p.group.Go(func() {
			l.run()
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
		})
	}
}

// close ends everything.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.resetLocked()
	p.mu.Unlock()
	_ = p.listener.Close() // it is not needed any more
	p.group.Wait()
}
