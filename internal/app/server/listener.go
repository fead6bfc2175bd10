package server

import (
	"cmp"
	"container/list"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/limit"
)

const (
	writeSilence = 30 * time.Second // without a byte accepted by the client
	minDefault   = 32               // of MaxConnections
	maxDefault   = 100_000
	// unknownDescriptors is the assumed limit if the system does not report one.
	unknownDescriptors = 1024
)

// withDefaults derives missing limits from the number of file descriptors. Half of them
// are for connections of clients, because each may need another one to a provider. One
// network may use half of the connections.
func (o Options) withDefaults(descriptors uint64) Options {
	o.MaxConnections = cmp.Or(o.MaxConnections, int(min(max(descriptors/2, minDefault), maxDefault)))
	o.MaxConnectionsPerAddress = cmp.Or(o.MaxConnectionsPerAddress, max(o.MaxConnections/2, 1))
	return o
}

// listener limits the number of open connections, in total and for each client network
// (limit.Network). At a limit it closes another connection to make room: the one with the
// oldest response among lingering connections, or else the one idle for longest. If every
// connection has a running request, the new connection is closed. Errors of accept are
// logged; net/http tries again.
type listener struct {
	net.Listener
	Options
	now func() time.Time

	mu        sync.Mutex
	open      int
	byNetwork map[netip.Prefix]int
	answered  list.List // of lingering *conn, oldest response first
	idle      list.List // of *conn without a request, oldest first
}

func newListener(l net.Listener, o Options) *listener {
	return &listener{Listener: l, Options: o, now: time.Now, byNetwork: make(map[netip.Prefix]int)}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			l.acceptFailed(err)
			return nil, err
		}
		tcp := raw.(*net.TCPConn) // Listen listens only on TCP
		var from netip.Addr
		if remote, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
			from = remote.AddrPort().Addr()
		}
		if c := l.admit(tcp, from); c != nil {
			return c, nil
		}
		_ = tcp.Close()
	}
}

// acceptFailed makes room after an error of accept. Most likely the process has no
// file descriptor left.
func (l *listener) acceptFailed(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Log.Error("connections cannot be accepted", "address", l.Addr().String(), "error", err, "open", l.open)
	l.evict(func(*conn) bool { return true })
}

// admit counts a connection from an address. It returns nil if there is no room.
func (l *listener) admit(tcp *net.TCPConn, from netip.Addr) *conn {
	from = from.Unmap().WithZone("")
	c := &conn{TCPConn: tcp, listener: l, from: from, network: limit.Network(from)}
	c.counted = !slices.ContainsFunc(l.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(from) })
	l.mu.Lock()
	defer l.mu.Unlock()
	sameNetwork := func(o *conn) bool { return o.counted && o.network == c.network }
	full := c.counted && l.byNetwork[c.network] >= l.MaxConnectionsPerAddress && !l.evict(sameNetwork) ||
		l.open >= l.MaxConnections && !l.evict(func(*conn) bool { return true })
	if full {
		l.Log.Warn("connections are refused: max_connections or max_connections_per_address is reached",
			"address", l.Addr().String(), "client", c.from.String(), "open", l.open)
		return nil
	}
	l.open++
	if c.counted {
		l.byNetwork[c.network]++
	}
	l.move(c, &l.idle)
	return c
}

// evict closes the first match in answered, or else in idle. It
// reports whether there was one.
func (l *listener) evict(match func(*conn) bool) bool {
	for _, queue := range []*list.List{&l.answered, &l.idle} {
		for e := queue.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); match(c) {
				l.remove(c)
				_ = c.TCPConn.Close() // net/http notices and calls Close again
				return true
			}
		}
	}
	return false
}

// remove removes a connection from the counts and its queue. A second call is a no-op.
func (l *listener) remove(c *conn) {
	if c.removed {
		return
	}
	c.removed = true
	l.open--
	if c.counted {
		if l.byNetwork[c.network]--; l.byNetwork[c.network] <= 0 {
			delete(l.byNetwork, c.network)
		}
	}
	l.move(c, nil)
}

// move moves a connection from its queue to the end of queue, unless queue already contains the
// connection. If queue is nil, the connection only leaves its queue.
func (l *listener) move(c *conn, queue *list.List) {
	if c.queue == queue {
		return
	}
	if c.queue != nil {
		c.queue.Remove(c.element)
		c.queue, c.element = nil, nil
	}
	if queue != nil && !c.removed {
		c.queue, c.element = queue, queue.PushBack(c)
	}
}

// stateChanged implements http.Server.ConnState.
func (l *listener) stateChanged(raw net.Conn, state http.ConnState) {
	c, ok := raw.(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateIdle:
		c.handled.Store(false)
		c.start = c.start[:0]
		l.move(c, &l.idle)
	case http.StateActive:
		l.move(c, nil)
	}
}

// conn is a connection from a client. Every write extends the write deadline, unless a
// handler has set one. The embedded *net.TCPConn provides ReadFrom, which uses sendfile.
type conn struct {
	*net.TCPConn
	listener *listener
	from     netip.Addr
	network  netip.Prefix
	counted  bool // in byNetwork

	// Guarded by listener.mu. A connection with a running request is in no queue.
	queue   *list.List
	element *list.Element
	removed bool

	spent    atomic.Bool // unread bytes of a request's body may follow, so no further request is read
	lingered atomic.Bool
	handled  atomic.Bool // a handler runs, or its response is being sent

	// Owned by the reading goroutine of net/http.
	start   []byte // the first bytes of the request, up to maxStart
	refused bool   // refuse has sent its response

	writes   sync.Mutex
	own      bool      // a handler has set a write deadline
	deadline time.Time // for writes, set by extend
}

// maxStart is long enough for a method and the first segment of a path.
const maxStart = 64

// connKey is the key of a request's *conn in its context.
type connKey struct{}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.spent.Load() {
		c.linger()
		return 0, io.EOF
	}
	n, err := c.TCPConn.Read(p)
	c.start = append(c.start, p[:min(n, maxStart-len(c.start))]...)
	return n, err
}

// SetWriteDeadline implements net.Conn. After the zero time, writes extend the deadline
// again.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	c.own, c.deadline = !t.IsZero(), time.Time{}
	return c.TCPConn.SetWriteDeadline(t)
}

// Write implements net.Conn. It writes in steps, and each one extends the deadline.
func (c *conn) Write(p []byte) (n int, err error) {
	if !c.handled.Load() {
		return c.refuse(p)
	}
	const step = 256 << 10
	for {
		c.extend()
		size := min(len(p)-n, step)
		m, err := c.TCPConn.Write(p[n : n+size])
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// extend moves the write deadline if a quarter of writeSilence has passed.
func (c *conn) extend() {
	c.writes.Lock()
	defer c.writes.Unlock()
	now := c.listener.now()
	if c.own || c.deadline.Sub(now) > writeSilence*3/4 {
		return
	}
	c.deadline = now.Add(writeSilence)
	_ = c.TCPConn.SetWriteDeadline(c.deadline) // if the connection is closed, the next write fails
}

// setAnswered records a complete response: the connection is now the first to make room
// for others.
func (c *conn) setAnswered() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.move(c, &c.listener.answered)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.TCPConn.Close()
}
