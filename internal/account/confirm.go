package account

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// Bounds of the lookups of keys that are not in the cache.
const (
	confirmTimeout = 2 * time.Second // of one read
	queueLimit     = 1024            // questions waiting in the front lane
	queueSlow      = 256             // and in the slow lane
	batchLimit     = 64              // questions of the front lane in one read
	batchSlow      = 16              // and of the slow lane
)

var (
	errQueueFull = errors.New("too many unknown keys wait to be looked up")
	errClosed    = errors.New("the key cache is closed")
)

// finding is the database's answer for one digest: a good key or nothing.
type finding struct {
	principal Principal
	good      bool
	err       error // an error of this key only
}

// question is one digest waiting for an answer, with all its callers.
type question struct {
	digest digest
	done   chan struct{} // closed when the answer below is there
	found  finding
	err    error
}

// confirmer looks up keys in the database. All questions waiting at the end of a read go into the
// next read, so a flood costs one small read at a time and every key gets an answer. A question is
// answered by a read that began after the question. There are two lanes: the front lane for cached
// keys and for addresses in good standing, the slow lane for addresses with many recent unknown
// keys; the slow lane's share of a read is bounded, so it cannot delay the front lane.
type confirmer struct {
	read  func(context.Context, []digest) (map[digest]finding, error)
	trust *standing

	mu      sync.Mutex
	front   lane
	slow    lane
	reading bool // a goroutine works the lanes off
	closed  bool
	work    sync.WaitGroup
}

func newConfirmer(now func() time.Time, read func(context.Context, []digest) (map[digest]finding, error)) *confirmer {
	return &confirmer{
		read:  read,
		trust: newStanding(now),
		front: lane{limit: queueLimit, waiting: make(map[digest]*question)},
		slow:  lane{limit: queueSlow, waiting: make(map[digest]*question)},
	}
}

// ask returns the database's answer for d from a read that began after this call, or an error if
// the database is unavailable.
func (c *confirmer) ask(ctx context.Context, d digest, from netip.Addr, remembered bool) (finding, error) {
	inFront := remembered || c.trust.good(from)
	q, err := c.put(d, inFront)
	if err != nil {
		return finding{}, err
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return finding{}, context.Cause(ctx)
	}
	if q.err == nil && !q.found.good && q.found.err == nil {
		c.trust.miss(from)
	}
	return q.found, errors.Join(q.err, q.found.err)
}

// put joins or adds the question for d, and starts a reader unless one runs.
func (c *confirmer) put(d digest, inFront bool) (*question, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	l := &c.slow
	if inFront {
		l = &c.front
	}
	q, err := l.put(d)
	if err != nil {
		return nil, err
	}
	if !c.reading {
		c.reading = true
		c.work.Go(c.run)
	}
	return q, nil
}

// run reads until no question waits.
func (c *confirmer) run() {
	for {
		batch := c.take()
		if batch == nil {
			return
		}
		c.answer(batch)
	}
}

// take removes the next batch from the lanes; nil ends the reading.
func (c *confirmer) take() []*question {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := append(c.front.take(batchLimit), c.slow.take(batchSlow)...)
	c.reading = len(batch) > 0
	return batch
}

// answer reads a batch and wakes its callers.
func (c *confirmer) answer(batch []*question) {
	asked := make([]digest, len(batch))
	for i, q := range batch {
		asked[i] = q.digest
	}
	// Of no request's context: the client of one must not take the answer
	// from the others.
	ctx, cancel := context.WithTimeout(context.Background(), confirmTimeout)
	defer cancel()
	found, err := c.read(ctx, asked)
	for _, q := range batch {
		q.found, q.err = found[q.digest], err
		close(q.done)
	}
}

// close refuses new questions and waits until those put are answered.
func (c *confirmer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.work.Wait()
}

// lane is a bounded queue of questions, one for each digest.
type lane struct {
	limit   int
	order   []*question
	waiting map[digest]*question
}

func (l *lane) put(d digest) (*question, error) {
	if q := l.waiting[d]; q != nil {
		return q, nil
	}
	if len(l.order) >= l.limit {
		return nil, errQueueFull
	}
	q := &question{digest: d, done: make(chan struct{})}
	l.order = append(l.order, q)
	l.waiting[d] = q
	return q, nil
}

func (l *lane) take(n int) []*question {
	n = min(n, len(l.order))
	batch := append([]*question(nil), l.order[:n]...)
	l.order = append(l.order[:0], l.order[n:]...) // in place: the queue's array never grows past its limit
	for _, q := range batch {
		delete(l.waiting, q.digest)
	}
	return batch
}
