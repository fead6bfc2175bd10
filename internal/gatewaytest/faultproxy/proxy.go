// Package faultproxy owns a proxy between a node and PostgreSQL for tests. It parses enough of the
// protocol to recognize a COMMIT and its statements, and simulates faults of a network: it loses a
// COMMIT or the answer to a COMMIT, cuts or freezes connections, and refuses new connections.
//
// Invariants:
//   - A fault happens at a defined point of the protocol: when the proxy reports a hit, the server has
//     answered the COMMIT or will never receive it.
//   - All other messages pass unchanged and in order, in both directions.
//   - No goroutine of the proxy runs after the end of the test.
package faultproxy

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
)

// State decides how a proxy handles traffic.
type State int

// The states of a proxy.
const (
	// Open passes all traffic.
	Open State = iota
	// Frozen passes no traffic, and neither side notices that the other side closes a connection.
	// New connections hang. This simulates an interrupted network.
	Frozen
	// Down resets all connections, including new ones. This simulates a stopped server on a running
	// machine.
	Down
)

// Proxy forwards connections to one database. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	url      string
	group    sync.WaitGroup

	mu      sync.Mutex
	server  string // host and port of the server
	closed  bool
	state   State
	changed chan struct{} // closed and replaced when state changes
	links   map[*link]struct{}
	armed   []*Hit
	commits int
	cancels Cancels
	watch   func(Step) bool // may be nil
}

// Cancels counts forwarded cancel requests.
type Cancels struct {
	All int
	// Commits counts the requests for a connection with an unanswered COMMIT. On a server with
	// synchronous standbys, such a request makes the COMMIT succeed without the standbys. COMMITs
	// of read-only transactions are not counted, because they do not wait for standbys.
	Commits int
}

// New starts a proxy for the database at address (postgres://…, without TLS). The proxy stops at
// the end of the test.
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

// URL returns the address of the database through the proxy.
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

// target returns the host and port of the server.
func (p *Proxy) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// Freeze stops all traffic until Open or Reopen.
func (p *Proxy) Freeze() { p.set(Frozen) }

// Down resets all connections and refuses new ones until Open or Reopen.
func (p *Proxy) Down() { p.set(Down) }

// Open passes all traffic again. Messages delayed by Freeze arrive late.
func (p *Proxy) Open() { p.set(Open) }

// Reopen resets the existing connections and passes traffic again. Delayed messages are lost, as
// after a long interruption of the network.
func (p *Proxy) Reopen() {
	p.Reset()
	p.set(Open)
}

// Reset resets all connections on both sides.
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

// Cancels returns the numbers of forwarded cancel requests.
func (p *Proxy) Cancels() Cancels {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cancels
}

// Commits returns the number of COMMITs received from nodes.
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

// wait waits while the proxy is frozen. It returns false if done is closed first.
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
			continue // the connection broke before Accept returned
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

// close closes the listener, resets all connections and waits for the goroutines.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.resetLocked()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.group.Wait()
}
