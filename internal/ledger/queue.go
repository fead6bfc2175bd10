package ledger

import (
	"sync"
	"sync/atomic"
)

// op is an operation in the queue. The comments name the kinds that use a field.
type op struct {
	kind         opKind
	account, key string

	admission  Admission     // opAdmit
	hold       *Hold         // opAdmit (the result) and opEnd
	holdID     string        // opEnd, opSweep and opJob
	epoch      string        // opEnd and opSweep: the epoch of the hold
	end        End           // opEnd
	attempts   string        // opEnd, as JSON
	progressOf *Hold         // opProgress
	refusal    Refusal       // opRefused
	admitHook  AdmissionHook // opAdmit of a job
	endHook    EndHook       // opJob

	passes      int // how often a batch has passed over the operation; only the committer uses it
	state       atomic.Int32
	leaveAnswer Refusal       // opAdmit: the answer for a caller that stopped waiting; read after opAbandoned
	err         error         // read after done
	hookRan     bool          // see decision.hookRan; read after done
	logged      bool          // opAdmit: the refusal may already be in the request log; read after done
	done        chan struct{} // closed when answered; nil if there is no caller
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

// States of an operation. Its caller moves it from waiting to left, or from taken to abandoned. The
// committer moves it from waiting to taken, and from taken to answered.
const (
	opWaiting int32 = iota
	opTaken
	opLeft      // the caller stopped waiting before a batch took the operation, so it never runs
	opAbandoned // the caller stopped waiting afterwards, so the operation is undone
	opAnswered
)

// Bounds of the queue. The open holds bound the settlements, and QueueWait bounds the admissions,
// so only refusals need a bound.
const (
	batchSize    = 256
	maxRefusals  = 10_000
	maxAnonymous = 100 // refusals of unknown callers
)

// queue holds the operations for the committer. Endings go first and are never refused. Admissions
// go round robin by account, so that a burst of one account cannot starve others. Log rows fill the
// rest of a batch, those of unknown callers last. opConfirm operations are not limited: all of them
// go with the next batch.
type queue struct {
	mu        sync.Mutex
	closed    bool
	endings   fifo
	admits    map[string]*fifo // by account
	waiting   []string         // accounts with waiting admissions, the next one first
	refusals  fifo
	anonymous fifo // of unknown callers
	confirms  fifo
	wake      chan struct{} // holds a value if there may be work
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

// push adds an operation. It returns false for an admission after close, and for a refusal if the
// queue has too many. It accepts endings after close as long as the committer runs.
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
			q.waiting = append(q.waiting, o.account)
		}
		list.push(o)
	case opRefused:
		list, most := &q.refusals, maxRefusals
		if o.refusal.anonymous() {
			list, most = &q.anonymous, maxAnonymous
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

// take waits for operations and returns at most batchSize of them plus all waiting opConfirm,
// marked as taken. The operations passed, which were taken before, come first; if there are any, take
// does not wait. take returns nil if there are no operations and the queue is closed.
func (q *queue) take(into, passed []*op) []*op {
	for {
		q.mu.Lock()
		into = q.gather(append(into[:0], passed...))
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

// more appends the operations in the queue to those of a batch, like take, without waiting.
func (q *queue) more(ops []*op) []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gather(ops)
}

// gather appends operations, up to batchSize and at least half of batchSize if there are as many.
func (q *queue) gather(into []*op) []*op {
	most := max(batchSize, len(into)+batchSize/2)
	for len(into) < most && q.endings.len() > 0 {
		into = q.appendTaken(into, q.endings.pop())
	}
	for len(into) < most && len(q.waiting) > 0 {
		account := q.waiting[0]
		q.waiting = q.waiting[1:]
		list := q.admits[account]
		into = q.appendTaken(into, list.pop())
		if list.len() > 0 {
			q.waiting = append(q.waiting, account)
		} else {
			delete(q.admits, account)
		}
	}
	for len(into) < most && q.refusals.len() > 0 {
		into = q.appendTaken(into, q.refusals.pop())
	}
	for len(into) < most && q.anonymous.len() > 0 {
		into = q.appendTaken(into, q.anonymous.pop())
	}
	for q.confirms.len() > 0 {
		into = q.appendTaken(into, q.confirms.pop())
	}
	return into
}

// appendTaken appends an operation unless its caller has stopped waiting.
func (q *queue) appendTaken(into []*op, o *op) []*op {
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
