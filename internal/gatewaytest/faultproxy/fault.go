package faultproxy

import (
	"math/rand/v2"
	"strings"
)

// Commit is a COMMIT on its way to the server.
type Commit struct {
	// Statements are the texts executed since the transaction's BEGIN.
	Statements []string
}

// Has reports whether a statement begins with words, such as `INSERT INTO ledger_hold`. White space
// and case do not matter.
func (c Commit) Has(words string) bool {
	want := strings.Fields(words)
	for _, s := range c.Statements {
		got := strings.Fields(s)
		if len(got) >= len(want) && strings.EqualFold(strings.Join(got[:len(want)], " "), strings.Join(want, " ")) {
			return true
		}
	}
	return false
}

// Having returns a Match function for transactions with a statement that begins with words.
func Having(words string) func(Commit) bool {
	return func(c Commit) bool { return c.Has(words) }
}

// Effect is the effect of a fault on a COMMIT.
type Effect int

// The effects.
const (
	// DropCommit does not forward the COMMIT to the server.
	DropCommit Effect = iota
	// DropAnswer does not forward the server's answer to the node.
	DropAnswer
	// HoldAnswer forwards the server's answer to the node when the fault's Release is closed. The
	// connection then continues.
	HoldAnswer
)

// Cut is the effect of a fault on the connection of the COMMIT.
type Cut int

// The effects on the connection.
const (
	// Reset resets the connection.
	Reset Cut = iota
	// Close closes the connection.
	Close
	// Silence leaves the connection open but stops its traffic.
	Silence
)

// Fault is the fault for one COMMIT.
type Fault struct {
	// Match selects the COMMIT. If nil, every COMMIT matches.
	Match func(Commit) bool
	// Nth selects the n-th match. Zero means 1.
	Nth     int
	Effect  Effect
	Cut     Cut
	Release <-chan struct{} // for HoldAnswer
	// Then is the state of the proxy after the fault. Open leaves the state unchanged.
	Then State
}

// Hit is an armed fault, which may have happened already.
type Hit struct {
	fault     Fault
	left      int // number of matches to let pass
	done      chan struct{}
	committed bool // written before done is closed
}

// Done returns a channel that is closed when the fault has happened: the server has answered the
// COMMIT or will never receive it, and the proxy is in the state Then.
func (h *Hit) Done() <-chan struct{} { return h.done }

// Committed waits for Done and reports whether the server has committed. With DropAnswer and
// HoldAnswer, false means that the server rejected the COMMIT or that its connection broke.
func (h *Hit) Committed() bool {
	<-h.done
	return h.committed
}

// Happened reports whether the fault has happened.
func (h *Hit) Happened() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// Arm arms a fault, which happens once. If several armed faults match a COMMIT, the oldest happens.
func (p *Proxy) Arm(f Fault) *Hit {
	h := &Hit{fault: f, left: max(f.Nth, 1) - 1, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, h)
	return h
}

// Disarm removes all faults that have not happened.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = nil
}

// takeFault removes and returns the fault for a COMMIT, or nil.
func (p *Proxy) takeFault(c Commit) *Hit {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits++
	for i, h := range p.armed {
		if h.fault.Match != nil && !h.fault.Match(c) {
			continue
		}
		if h.left > 0 {
			h.left--
			continue
		}
		p.armed = append(p.armed[:i:i], p.armed[i+1:]...)
		return h
	}
	return nil
}

// finish marks a fault as done. Later calls are no-ops.
func (p *Proxy) finish(h *Hit, committed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Happened() {
		return
	}
	h.committed = committed
	if h.fault.Then != Open && !p.closed {
		p.setLocked(h.fault.Then)
	}
	close(h.done)
}

// Draw returns a random fault. It loses the COMMIT, or the answer to the COMMIT, of one of the next
// transactions that have a statement beginning with one of words.
func Draw(r *rand.Rand, words []string) Fault {
	return Fault{
		Match:  Having(words[r.IntN(len(words))]),
		Nth:    1 + r.IntN(4),
		Effect: []Effect{DropCommit, DropAnswer, DropAnswer}[r.IntN(3)],
		Cut:    []Cut{Reset, Close, Silence}[r.IntN(3)],
		Then:   []State{Open, Frozen, Frozen, Down}[r.IntN(4)],
	}
}
