package door

import (
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

// Connection limits where no setting says otherwise.
const (
	writeSilence  = 30 * time.Second // of a client that does not read its answer
	fewestDefault = 32
	maxDefault    = 100_000
	// unknownDescriptors stands in where the system does not tell.
	unknownDescriptors = 1024
)

// filled has, where a number is not given, what the number of descriptors that the
// process may have allows: half of them for connections of clients, since each may
// need another one to a provider, and half of those for an address.
func (o Options) filled(descriptors uint64) Options {
	if o.MaxConnections == 0 {
		o.MaxConnections = int(min(max(descriptors/2, fewestDefault), maxDefault))
	}
	if o.MaxConnectionsPerAddress == 0 {
		o.MaxConnectionsPerAddress = max(o.MaxConnections/2, 1)
	}
	return o
}

// listener bounds how many connections a door has, in all and for a client's
// network (limit.Network). If one more does not fit, a connection of the same
// network, or of any, is closed for it: the one whose last answer has been out
// longest, or else the one that has waited longest for a request. If there is
// none, the new one is closed. Failures to accept are logged and survived.
type listener struct {
	net.Listener
	Options
	now func() time.Time

	mu       sync.Mutex
	open     int
	from     map[netip.Prefix]int
	answered list.List // of *conn whose answer is out and who read on, the longest first
	waiting  list.List // of *conn that no request runs on, the longest first
}

func newListener(l net.Listener, o Options) *listener {
	return &listener{Listener: l, Options: o, now: time.Now, from: make(map[netip.Prefix]int)}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			l.survive(err)
			return nil, err
		}
		tcp, ok := raw.(*net.TCPConn)
		if !ok {
			return raw, nil
		}
		var from netip.Addr
		if at, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
			from = at.AddrPort().Addr()
		}
		if c := l.admit(tcp, from); c != nil {
			return c, nil
		}
		_ = tcp.Close() // nobody waits for what it says
	}
}

// survive makes room after a failure to accept, most likely for want of
// descriptors. The server tries again in a moment.
func (l *listener) survive(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Log.Error("connections cannot be accepted", "address", l.Addr().String(), "error", err, "open", l.open)
	l.evict(func(*conn) bool { return true })
}

// admit counts a connection from an address, or returns nil if it finds no room.
func (l *listener) admit(tcp *net.TCPConn, from netip.Addr) *conn {
	from = from.Unmap().WithZone("")
	c := &conn{TCPConn: tcp, door: l, from: from, network: limit.Network(from)}
	c.counted = !slices.ContainsFunc(l.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(from) })
	l.mu.Lock()
	defer l.mu.Unlock()
	sameNetwork := func(o *conn) bool { return o.counted && o.network == c.network }
	full := c.counted && l.from[c.network] >= l.MaxConnectionsPerAddress && !l.evict(sameNetwork) ||
		l.open >= l.MaxConnections && !l.evict(func(*conn) bool { return true })
	if full {
		l.Log.Warn("connections are refused: max_connections or max_connections_per_address is reached",
			"address", l.Addr().String(), "client", c.from.String(), "open", l.open)
		return nil
	}
	l.open++
	if c.counted {
		l.from[c.network]++
	}
	l.move(c, &l.waiting)
	return c
}

// evict closes the first connection of answered, or else of waiting, that
// matches. It reports whether there is one.
func (l *listener) evict(match func(*conn) bool) bool {
	for _, queue := range []*list.List{&l.answered, &l.waiting} {
		for e := queue.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); match(c) {
				l.forget(c)
				_ = c.TCPConn.Close() // the server notices, and closes it again
				return true
			}
		}
	}
	return false
}

// forget takes a connection out of the books, once.
func (l *listener) forget(c *conn) {
	if c.gone {
		return
	}
	c.gone = true
	l.open--
	if c.counted {
		if l.from[c.network]--; l.from[c.network] <= 0 {
			delete(l.from, c.network)
		}
	}
	l.move(c, nil)
}

// move puts a connection at the end of a queue; nil takes it out of all. A
// connection that is there already keeps its place.
func (l *listener) move(c *conn, to *list.List) {
	if c.queue == to {
		return
	}
	if c.queue != nil {
		c.queue.Remove(c.place)
		c.queue, c.place = nil, nil
	}
	if to != nil && !c.gone {
		c.queue, c.place = to, to.PushBack(c)
	}
}

// changed is told by the server what becomes of a connection.
func (l *listener) changed(raw net.Conn, state http.ConnState) {
	c, ok := raw.(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateIdle:
		c.handled.Store(false)
		l.move(c, &l.waiting)
	case http.StateActive:
		l.move(c, nil)
	}
}

// conn is a connection of a door. Its writes have a deadline that moves with
// them, unless a handler has set one of its own. It keeps the ways of a
// *net.TCPConn to send files.
type conn struct {
	*net.TCPConn
	door    *listener
	from    netip.Addr
	network netip.Prefix
	counted bool // towards its network

	// Under the door's lock. A connection in no queue is not closed for another:
	// a request runs on it whose answer is not out.
	queue *list.List // answered or waiting
	place *list.Element
	gone  bool

	dead     atomic.Bool // nothing that comes is a request any more
	dropped  atomic.Bool // it is the rest of a body, whose answer is out
	lingered atomic.Bool

	head    head
	handled atomic.Bool // a handler runs, or its answer is on its way
	refused bool        // in place of a handler; the server's goroutine owns it

	writes  sync.Mutex
	own     bool      // a handler has set a write deadline
	writeBy time.Time // the deadline that we have set
}

// connKey is the key of a request's *conn in its context.
type connKey struct{}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.dead.Load() {
		if c.dropped.Load() {
			c.linger()
		}
		return 0, io.EOF
	}
	n, err := c.TCPConn.Read(p)
	c.head.read(p[:n])
	return n, err
}

// SetWriteDeadline implements net.Conn. The zero time gives the connection back
// to its own deadlines.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	c.own, c.writeBy = !t.IsZero(), time.Time{}
	return c.TCPConn.SetWriteDeadline(t)
}

// Write implements net.Conn: in steps, each of which has its own time.
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

// extend gives the client time for the next write. The deadline is moved only
// when a good part of it has passed.
func (c *conn) extend() {
	c.writes.Lock()
	defer c.writes.Unlock()
	now := c.door.now()
	if c.own || c.writeBy.Sub(now) > writeSilence*3/4 {
		return
	}
	c.writeBy = now.Add(writeSilence)
	_ = c.TCPConn.SetWriteDeadline(c.writeBy) // a connection that is closed says so when it is written to
}

// wrote notes that the answer is out and nothing more of the connection is needed:
// it makes room for others first.
func (c *conn) wrote() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.door.move(c, &c.door.answered)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.door.mu.Lock()
	c.door.forget(c)
	c.door.mu.Unlock()
	return c.TCPConn.Close()
}
