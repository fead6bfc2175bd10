package commit

import "sync"

// Bounds of the queue. The open holds bound the settlements, and the callers' patience bounds the
// admissions, so only refusals need a bound.
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
	ops  []*Op
	head int
}

func (f *fifo) push(o *Op) { f.ops = append(f.ops, o) }

func (f *fifo) len() int { return len(f.ops) - f.head }

func (f *fifo) pop() *Op {
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
func (q *queue) push(o *Op) bool {
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
func (q *queue) take(into, passed []*Op) []*Op {
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
func (q *queue) more(ops []*Op) []*Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gather(ops)
}

// gather appends operations, up to batchSize and at least half of batchSize if there are as many.
func (q *queue) gather(into []*Op) []*Op {
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
func (q *queue) appendTaken(into []*Op, o *Op) []*Op {
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

// Queued returns the number of operations in the queue.
func (c *Committer) Queued() int {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.endings.len() + q.refusals.len() + q.anonymous.len() + q.confirms.len()
	for _, list := range q.admits {
		n += list.len()
	}
	return n
}
