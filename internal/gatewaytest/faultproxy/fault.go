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

// Has reports whether one of the statements begins with words, ignoring white space: `INSERT INTO
// ledger_hold`.
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

// Having matches transactions with a statement beginning with words.
func Having(words string) func(Commit) bool {
	return func(c Commit) bool { return c.Has(words) }
}

// Strike is the fate of a COMMIT.
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

// Cut is the way in which the connection of a struck COMMIT ends.
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

// Fault is the fault for one COMMIT.
type Fault struct {
	// Match selects the COMMIT; if nil, any matches.
	Match func(Commit) bool
	// Nth selects the n-th match; 0 means 1.
	Nth     int
	Strike  Strike
	Cut     Cut
	Release <-chan struct{} // of HoldAnswer
	// Then is the state of the proxy from the same moment on. Open leaves it as
	// it is.
	Then State
}

// Hit is a fault before or after its COMMIT.
type Hit struct {
	fault     Fault
	left      int // matches left to pass
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

// Happened reports whether the fault has happened.
func (h *Hit) Happened() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// Arm arms a fault for the COMMIT that it selects. Of several armed faults, the oldest match
// strikes, each once.
func (p *Proxy) Arm(f Fault) *Hit {
	h := &Hit{fault: f, left: max(f.Nth, 1) - 1, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, h)
	return h
}

// Disarm removes the faults without a COMMIT.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = nil
}

// strike returns the fault for a COMMIT, or nil.
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

// Draw returns a random fault that loses the COMMIT or its answer in one of the first few
// transactions with a statement beginning with one of the words.
func Draw(r *rand.Rand, words []string) Fault {
	return Fault{
		Match:  Having(words[r.IntN(len(words))]),
		Nth:    1 + r.IntN(4),
		Strike: []Strike{DropCommit, DropAnswer, DropAnswer}[r.IntN(3)],
		Cut:    []Cut{Reset, Close, Silence}[r.IntN(3)],
		Then:   []State{Open, Frozen, Frozen, Down}[r.IntN(4)],
	}
}
