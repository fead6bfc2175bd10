package faultproxy

import (
	"bufio"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// link is a connection from a node with its connection to the server.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	ended  sync.Once
	done   chan struct{} // closed when the link ends

	silent atomic.Bool // traffic is stopped

	// The goroutine that reads the node's messages owns the following fields: the texts of prepared
	// statements and bound portals, and the statements since BEGIN.
	statements, portals map[string]string
	transaction         []string
	reading             bool    // BEGIN … READ ONLY
	commit              *Commit // the COMMIT at the end of the current messages
	executes            bool    // the current messages have a statement of a transaction that may write

	mu      sync.Mutex
	server  *net.TCPConn
	pid     uint32
	waiting []turn // requests without a ReadyForQuery, in order
}

// turn is a forwarded Sync or simple query.
type turn struct {
	commit     bool     // a COMMIT of a transaction that may write
	statements []string // of the transaction, if commit is set
	hit        *Hit     // the fault for the answer; if nil, the answer is forwarded
}

// end closes both connections. If reset is true, it resets the node's connection.
func (l *link) end(reset bool) {
	l.ended.Do(func() {
		close(l.done)
		if reset {
			_ = l.client.SetLinger(0) // the connection may be closed already
		}
		_ = l.client.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.server != nil {
			_ = l.server.Close()
		}
	})
}

// dial connects to the server. It returns false if the link has ended.
func (l *link) dial() bool {
	conn, err := net.Dial("tcp", l.proxy.target())
	if err != nil {
		return false
	}
	l.mu.Lock()
	l.server = conn.(*net.TCPConn)
	l.mu.Unlock()
	select {
	case <-l.done:
		_ = conn.Close() // end may have run before the field was set
		return false
	default:
		return true
	}
}

// run serves the link until it ends.
func (l *link) run() {
	defer l.end(false)
	in := bufio.NewReaderSize(l.client, 32<<10)
	first, err := readStartup(in, l.client)
	if err != nil || !l.proxy.wait(l.done) || !l.dial() {
		return
	}
	if key, ok := cancelKey(first); ok {
		l.proxy.cancelled(key)
	}
	if _, err := l.server.Write(first); err != nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() {
		l.answers(bufio.NewReaderSize(l.server, 32<<10))
		if l.silent.Load() {
			<-l.done // hide the end of the server's connection from the node
		}
		l.finish()
	})
	l.requests(in)
	l.finish()
	group.Wait()
}

// finish ends the link when the proxy is not frozen.
func (l *link) finish() {
	if l.proxy.wait(l.done) {
		l.end(false)
	}
}

// cancelled counts a cancel request.
func (p *Proxy) cancelled(pid uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels.All++
	for l := range p.links {
		l.mu.Lock()
		for _, turn := range l.waiting {
			if l.pid == pid && turn.commit {
				p.cancels.Commits++
			}
		}
		l.mu.Unlock()
	}
}

// requests forwards the node's messages, up to each message that the server answers.
func (l *link) requests(in *bufio.Reader) {
	var out []byte
	for {
		m, err := readMessage(in)
		if err != nil {
			return
		}
		if l.silent.Load() {
			continue
		}
		l.note(m)
		if out = append(out, m.raw...); !m.flushes() {
			continue
		}
		if !l.proxy.wait(l.done) {
			return
		}
		if !l.pass(m) {
			continue
		}
		if _, err := l.server.Write(out); err != nil {
			return
		}
		out = out[:0]
	}
}

// pass reports whether to forward the messages up to m to the server.
func (l *link) pass(m message) bool {
	if !m.asks() {
		return true
	}
	next := turn{}
	step := Step{Transaction: l.transaction}
	if l.commit != nil {
		next.commit, next.statements, next.hit = !l.reading, l.commit.Statements, l.proxy.takeFault(*l.commit)
		step = Step{Transaction: l.commit.Statements, Commit: true}
		l.commit = nil
	}
	if l.executes && !l.takeStep(step) {
		return false
	}
	l.executes = false
	l.mu.Lock()
	l.waiting = append(l.waiting, next)
	l.mu.Unlock()
	if next.hit != nil && next.hit.fault.Effect == DropCommit {
		l.silent.Store(true)
		l.applyFault(next.hit, false)
		return false
	}
	return true
}

// note records the statement of a message.
func (l *link) note(m message) {
	switch m.kind {
	case 'P': // Parse: statement, text
		name, rest := cString(m.body())
		l.statements[name], _ = cString(rest)
	case 'B': // Bind: portal, statement
		portal, rest := cString(m.body())
		name, _ := cString(rest)
		l.portals[portal] = l.statements[name]
	case 'E': // Execute: portal
		portal, _ := cString(m.body())
		l.ran(l.portals[portal])
	case 'Q':
		text, _ := cString(m.body())
		l.ran(text)
	}
}

// ran records an executed statement.
func (l *link) ran(text string) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToUpper(strings.TrimSuffix(first, ";")) {
	case "BEGIN":
		l.transaction, l.reading = nil, strings.Contains(strings.ToUpper(text), "READ ONLY")
	case "ROLLBACK":
		l.transaction = nil
	case "COMMIT":
		l.commit = &Commit{Statements: l.transaction}
		l.transaction, l.executes = nil, !l.reading
	default:
		l.transaction, l.executes = append(l.transaction, text), !l.reading
	}
}

// applyFault applies a fault to the link and marks the fault as done.
func (l *link) applyFault(h *Hit, committed bool) {
	switch h.fault.Cut {
	case Reset:
		l.end(true)
	case Close:
		l.end(false)
	case Silence:
		l.silent.Store(true)
	}
	l.proxy.finish(h, committed)
}

// answers forwards the server's messages.
func (l *link) answers(in *bufio.Reader) {
	var held []byte // the messages of a withheld answer
	committed := false
	for {
		m, err := readMessage(in)
		hit := l.hit()
		if err != nil {
			if hit != nil { // the connection broke: the outcome is unknown
				l.applyFault(hit, false)
			}
			return
		}
		if m.kind == 'K' {
			l.mu.Lock()
			l.pid = binary.BigEndian.Uint32(m.body())
			l.mu.Unlock()
		}
		if hit == nil {
			if m.kind == 'Z' {
				l.ready()
			}
			if l.silent.Load() {
				continue
			}
			if !l.committed(m) || !l.proxy.wait(l.done) || !l.write(m.raw) {
				return
			}
			continue
		}
		held = append(held, m.raw...)
		if m.kind == 'C' {
			tag, _ := cString(m.body())
			committed = tag == "COMMIT"
		}
		if m.kind != 'Z' {
			continue
		}
		if !l.release(hit, committed, held) {
			return
		}
		held, committed = nil, false
	}
}

// committed takes the step after a COMMIT if m is its answer. It returns false if the link has ended.
func (l *link) committed(m message) bool {
	if m.kind != 'C' {
		return true
	}
	if tag, _ := cString(m.body()); tag != "COMMIT" {
		return true
	}
	l.mu.Lock()
	var first turn
	if len(l.waiting) > 0 {
		first = l.waiting[0]
	}
	l.mu.Unlock()
	return !first.commit || l.takeStep(Step{Transaction: first.statements, Commit: true, Answered: true})
}

// release ends the turn of a COMMIT with a fault after the server's answer. If the answer is lost, the
// turn stays open and the node waits. It returns false if the link has ended.
func (l *link) release(h *Hit, committed bool, answer []byte) bool {
	if h.fault.Effect != HoldAnswer {
		l.applyFault(h, committed)
		return l.silent.Load()
	}
	l.proxy.finish(h, committed)
	select {
	case <-h.fault.Release:
	case <-l.done:
		return false
	}
	l.ready()
	return l.proxy.wait(l.done) && l.write(answer)
}

// write writes a message to the node.
func (l *link) write(raw []byte) bool {
	_, err := l.client.Write(raw)
	return err == nil
}

// hit returns the fault for the current answer.
func (l *link) hit() *Hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	return l.waiting[0].hit
}

// ready ends the first turn. It is a no-op if there is no turn, as on a new connection.
func (l *link) ready() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 {
		l.waiting = l.waiting[1:]
	}
}
