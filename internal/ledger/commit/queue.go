package commit

import (
	"maps"
	"math"
	"sync"
	"time"
)

// Bounds of the queue. The number of open holds bounds the settlements, and the callers' timeouts
// bound the admissions, so only refusals need a bound.
const (
	batchSize    = 256
	maxRefusals  = 10_000
	maxAnonymous = 100 // refusals of unknown callers
)

// queue holds the operations for the workers. Endings go first and are never refused. Admissions
// go round robin by account, so that a burst of one account cannot starve others. Log rows fill the
// rest of a batch, rows of unknown callers last. opConfirm operations are not limited: all of them
// go with the next batch. While an account is in the batch of another worker, its operations wait for
// the end of that batch.
type queue struct {
	mu        sync.Mutex
	work      *sync.Cond // there may be work for a worker
	closed    bool
	passed    fifo // operations that a batch has passed over; they go first
	endings   fifo
	admits    map[string]*fifo // by account
	waiting   []string         // accounts with waiting admissions, the next one first
	refusals  fifo
	anonymous fifo // of unknown callers
	confirms  fifo

	now      func() time.Time
	interval time.Duration  // Options.Interval
	workers  map[string]int // by account in a batch: the worker of the batch
	batches  int            // number of running batches
	begun    time.Time      // start of the newest batch
	idle     int            // workers without a batch
	timer    bool           // a timer will wake a worker
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

func newQueue(interval time.Duration, now func() time.Time) *queue {
	q := &queue{admits: map[string]*fifo{}, workers: map[string]int{}, interval: interval, now: now}
	q.work = sync.NewCond(&q.mu)
	return q
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
	q.wake()
	return true
}

// take waits for operations and returns at most batchSize of them plus all waiting opConfirm, marked
// as taken. The worker must call end after their batch. take returns nil if there are no operations
// and the queue is closed.
func (q *queue) take(worker int) []*Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if pause := q.pause(); pause > 0 && !q.empty() {
			q.wakeAfter(pause)
		} else if ops := q.gather(worker, make([]*Op, 0, 64)); len(ops) > 0 {
			q.batches++
			q.begun = q.now()
			if !q.empty() {
				q.wake()
			}
			return ops
		}
		if q.closed && q.empty() {
			return nil
		}
		q.idle++
		q.work.Wait()
		q.idle--
	}
}

// pass puts back the operations that the batch of a worker has passed over, before all others. Other
// workers can take them.
func (q *queue) pass(worker int, ops []*Op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range ops {
		q.passed.push(o)
		if q.workers[o.account] == worker {
			delete(q.workers, o.account)
		}
	}
	q.wake()
}

// end ends the batch of a worker.
func (q *queue) end(worker int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.workers, func(_ string, owner int) bool { return owner == worker })
	q.batches--
	if q.closed {
		q.work.Broadcast()
	}
}

// pause returns the time until the next batch may begin.
func (q *queue) pause() time.Duration {
	if q.batches == 0 {
		return 0
	}
	return q.interval - q.now().Sub(q.begun)
}

// wake wakes an idle worker when the next batch may begin.
func (q *queue) wake() {
	if q.idle == 0 {
		return
	}
	if pause := q.pause(); pause > 0 {
		q.wakeAfter(pause)
		return
	}
	q.work.Signal()
}

func (q *queue) wakeAfter(pause time.Duration) {
	if q.timer {
		return
	}
	q.timer = true
	time.AfterFunc(pause, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.timer = false
		q.work.Signal()
	})
}

// empty reports whether the queue has no operations.
func (q *queue) empty() bool {
	return q.passed.len()+q.endings.len()+len(q.waiting)+q.refusals.len()+q.anonymous.len()+q.confirms.len() == 0
}

// more appends the operations in the queue to those of a worker's batch, like take, without waiting.
func (q *queue) more(worker int, ops []*Op) []*Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gather(worker, ops)
}

// gather appends operations until into has batchSize of them, or batchSize/2 more than before if that
// is more. Operations passed over and opConfirm operations are not limited.
func (q *queue) gather(worker int, into []*Op) []*Op {
	most := max(batchSize, len(into)+batchSize/2)
	into = q.gatherFrom(&q.passed, worker, into, math.MaxInt)
	into = q.gatherFrom(&q.endings, worker, into, most)
	var reserved []string // by other batches
	for len(into) < most && len(q.waiting) > 0 {
		account := q.waiting[0]
		q.waiting = q.waiting[1:]
		if !q.reserve(worker, account) {
			reserved = append(reserved, account)
			continue
		}
		list := q.admits[account]
		into = appendTaken(into, list.pop())
		if list.len() > 0 {
			q.waiting = append(q.waiting, account)
		} else {
			delete(q.admits, account)
		}
	}
	if len(reserved) > 0 {
		q.waiting = append(reserved, q.waiting...)
	}
	into = q.gatherFrom(&q.refusals, worker, into, most)
	into = q.gatherFrom(&q.anonymous, worker, into, most)
	return q.gatherFrom(&q.confirms, worker, into, math.MaxInt)
}

// gatherFrom appends operations of a list. It moves operations of accounts in other batches to the end
// of the list.
func (q *queue) gatherFrom(list *fifo, worker int, into []*Op, most int) []*Op {
	for range list.len() {
		if len(into) >= most {
			break
		}
		if o := list.pop(); q.reserve(worker, o.account) {
			into = appendTaken(into, o)
		} else {
			list.push(o)
		}
	}
	return into
}

// reserve adds an account to the batch of a worker. It returns false if the account is in the batch of
// another worker.
func (q *queue) reserve(worker int, account string) bool {
	if account == "" {
		return true
	}
	owner, reserved := q.workers[account]
	if !reserved {
		q.workers[account] = worker
	}
	return !reserved || owner == worker
}

// appendTaken marks an operation as taken and appends it, unless its caller stopped waiting before.
func appendTaken(into []*Op, o *Op) []*Op {
	if !o.state.CompareAndSwap(opWaiting, opTaken) && o.state.Load() == opLeft {
		return into
	}
	return append(into, o)
}

// close refuses further admissions; the workers end once they have committed the queue.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.work.Broadcast()
}

// Queued returns the number of operations in the queue.
func (c *Committer) Queued() int {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.passed.len() + q.endings.len() + q.refusals.len() + q.anonymous.len() + q.confirms.len()
	for _, list := range q.admits {
		n += list.len()
	}
	return n
}
