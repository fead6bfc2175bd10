package faultproxy

import (
	"math/rand/v2"
	"strings"
)

// Commit is a COMMIT on its way to the server.
type Commit struct {
	// Statements are the texts that were run since the transaction's BEGIN.
	Statements []string
}

// Has tells whether one of the statements begins with words, whatever space is
// between them: `INSERT INTO ledger_hold`.
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

// Having is the condition that a transaction has a statement that begins with
// words.
func Having(words string) func(Commit) bool {
	return func(c Commit) bool { return c.Has(words) }
}

// Strike is what happens to a COMMIT.
type Strike int

// The strikes.
const (
	// DropCommit: the server never sees the COMMIT.
	DropCommit Strike = iota
	// DropAnswer: the server has answered, and the node never hears it.
	DropAnswer
	// HoldAnswer: the server has answered, and the node hears it when the
	// fault's Release is closed. The connection then goes on.
	HoldAnswer
)

// Cut is how the connection of a COMMIT ends that was struck.
type Cut int

// The cuts.
const (
	// Reset: it is reset.
	Reset Cut = iota
	// Close: it is closed.
	Close
	// Silence: it stays, and nothing passes on it any more.
	Silence
)

// Fault is what is done to one COMMIT.
type Fault struct {
	// Match tells which; nil: any.
	Match func(Commit) bool
	// Nth lets the n-1 before pass that match; 0 is 1.
	Nth     int
	Strike  Strike
	Cut     Cut
	Release <-chan struct{} // of HoldAnswer
	// Then is the state of the proxy from the same moment on. Open leaves it as
	// it is.
	Then State
}

// Hit is a fault that waits for its COMMIT, or has met it.
type Hit struct {
	fault     Fault
	left      int // matches that still pass
	done      chan struct{}
	committed bool // written before done is closed
}

// Done is closed when the fault has happened: the server has answered the
// COMMIT or will never see it, and the proxy is in the fault's state.
func (h *Hit) Done() <-chan struct{} { return h.done }

// Committed tells, after Done, whether the server has committed. False with
// DropAnswer and HoldAnswer: it refused, or its connection broke.
func (h *Hit) Committed() bool {
	<-h.done
	return h.committed
}

// Happened tells whether the fault has happened.
func (h *Hit) Happened() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// Arm makes a fault happen to the COMMIT that it asks for. Of several that are
// armed, the oldest that matches strikes, each once.
func (p *Proxy) Arm(f Fault) *Hit {
	h := &Hit{fault: f, left: max(f.Nth, 1) - 1, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, h)
	return h
}

// Disarm forgets the faults that have met no COMMIT.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = nil
}

// strike returns the fault that a COMMIT meets, or nil.
func (p *Proxy) strike(c Commit) *Hit {
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

// struck reports a fault as done, once.
func (p *Proxy) struck(h *Hit, committed bool) {
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

// Draw draws a fault that loses the COMMIT or its answer on one of the first
// few transactions that have a statement beginning with one of the words.
func Draw(r *rand.Rand, words []string) Fault {
	return Fault{
		Match:  Having(words[r.IntN(len(words))]),
		Nth:    1 + r.IntN(4),
		Strike: []Strike{DropCommit, DropAnswer, DropAnswer}[r.IntN(3)],
		Cut:    []Cut{Reset, Close, Silence}[r.IntN(3)],
		Then:   []State{Open, Frozen, Frozen, Down}[r.IntN(4)],
	}
}
