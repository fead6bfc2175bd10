package ledger

import (
	"sync"
	"sync/atomic"
)

// op is an operation in the queue.
type op struct {
	kind         opKind
	account, key string
	free         bool // the hold took a place of a free quota

	admission Admission      // opAdmit
	hold      *Hold          // opAdmit: the answer; opEnd: the hold
	holdID    string         // opEnd, opSweep
	epoch     string         // opEnd: the life of the hold
	end       End            // opEnd
	attempts  string         // opEnd: JSON
	note      *Hold          // opProgress
	refusal   Refusal        // opRefused
	admitting AdmissionRider // opAdmit of a job
	ending    EndRider       // opJob

	state     atomic.Int32
	told      Refusal       // opAdmit: the answer given to the caller when it left; read once it has
	err       error         // the answer; read after done
	ridden    bool          // the rider has written, or err is its own; read after done
	receipted bool          // opAdmit: refused, and the log has its row or may get one; read after done
	done      chan struct{} // closed when answered; nil if there is no caller
}

type opKind int

const (
	opAdmit opKind = iota
	opEnd
	opSweep
	opProgress
	opRefused
	opJob
	opConfirm // changes nothing: its commit proves everything visible before it
)

// States of an operation. Its caller moves it from waiting to left, or from
// taken to abandoned; the committer from waiting to taken and to answered.
const (
	opWaiting int32 = iota
	opTaken
	opLeft      // its caller left before it was taken: it never ran
	opAbandoned // its caller left afterwards: its effect is undone
	opAnswered
)

// Bounds of the queue. Settlements are bounded by the open holds; admissions
// wait at most QueueWait; only refusals could pile up.
const (
	batchSize    = 256
	maxRefusals  = 10_000
	maxStrangers = 100 // refusals of unknown callers
)

// queue holds the operations waiting for the committer. Endings go first and are never refused.
// Admissions go round robin by account, so that one account's burst cannot starve another's
// request. Log rows fill the rest of a batch, those of strangers last. Operations that only need a
// commit take no place: all of them go with the next batch.
type queue struct {
	mu        sync.Mutex
	closed    bool
	endings   fifo
	admits    map[string]*fifo // by account
	turns     []string         // accounts with waiting admissions, the next one first
	refusals  fifo
	strangers fifo // refusals too
	confirms  fifo
	wake      chan struct{} // holds one token when there may be work
}

// fifo is a queue that reuses its space.
type fifo struct {
	ops  []*op
	head int
}

func (f *fifo) push(o *op) { f.ops = append(f.ops, o) }

func (f *fifo) len() int { return len(f.ops) - f.head }

func (f *fifo) pop() *op {
	o := f.ops[f.head]
	f.ops[f.head] = nil
	f.head++
	switch {
	case f.head == len(f.ops):
		f.ops, f.head = f.ops[:0], 0
	case f.head >= 1024 && f.head*2 >= len(f.ops):
		f.ops = append(f.ops[:0], f.ops[f.head:]...)
		f.head = 0
	}
	return o
}

func newQueue() *queue {
	return &queue{admits: map[string]*fifo{}, wake: make(chan struct{}, 1)}
}

// push adds an operation. False: an admission after close, or a refusal too
// many. Endings are taken also after close, as long as the committer runs.
func (q *queue) push(o *op) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch o.kind {
	case opAdmit:
		if q.closed {
			return false
		}
		list := q.admits[o.account]
		if list == nil {
			list = &fifo{}
			q.admits[o.account] = list
		}
		if list.len() == 0 {
			q.turns = append(q.turns, o.account)
		}
		list.push(o)
	case opRefused:
		list, most := &q.refusals, maxRefusals
		if o.refusal.strange() {
			list, most = &q.strangers, maxStrangers
		}
		if list.len() >= most {
			return false
		}
		list.push(o)
	case opConfirm:
		q.confirms.push(o)
	default:
		q.endings.push(o)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// take waits for operations and returns at most batchSize of them, and whatever
// confirms wait, each marked as taken. Nil: the queue is closed and empty.
func (q *queue) take(into []*op) []*op {
	for {
		q.mu.Lock()
		into = q.gather(into[:0])
		closed := q.closed
		q.mu.Unlock()
		if len(into) > 0 {
			return into
		}
		if closed {
			return nil
		}
		<-q.wake
	}
}

func (q *queue) gather(into []*op) []*op {
	for len(into) < batchSize && q.endings.len() > 0 {
		into = q.taken(into, q.endings.pop())
	}
	for len(into) < batchSize && len(q.turns) > 0 {
		account := q.turns[0]
		q.turns = q.turns[1:]
		list := q.admits[account]
		into = q.taken(into, list.pop())
		if list.len() > 0 {
			q.turns = append(q.turns, account)
		} else {
			delete(q.admits, account)
		}
	}
	for len(into) < batchSize && q.refusals.len() > 0 {
		into = q.taken(into, q.refusals.pop())
	}
	for len(into) < batchSize && q.strangers.len() > 0 {
		into = q.taken(into, q.strangers.pop())
	}
	for q.confirms.len() > 0 {
		into = q.taken(into, q.confirms.pop())
	}
	return into
}

// taken appends an operation unless its caller has left.
func (q *queue) taken(into []*op, o *op) []*op {
	if o.state.CompareAndSwap(opWaiting, opTaken) {
		return append(into, o)
	}
	return into
}

// close refuses further admissions; the committer ends once it has committed the queue.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
