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
	lookupTimeout = 2 * time.Second // of one read
	queueLimit    = 1024            // in the queue of cached keys and of addresses below the limit
	queueSlow     = 256             // in the slow queue
	batchLimit    = 64              // of the first queue in one read
	batchSlow     = 16              // of the slow queue
)

var (
	errQueueFull = errors.New("too many unknown keys wait to be looked up")
	errClosed    = errors.New("the key cache is closed")
)

// keyResult is the database's answer for a digest: a usable key or nothing.
type keyResult struct {
	principal Principal
	good      bool
	err       error // an error of this key only
}

// lookup is a digest waiting for an answer, with all its callers.
type lookup struct {
	digest digest
	done   chan struct{} // closed when result or err is set
	result keyResult
	err    error
}

// lookupQueue reads keys from the database in batches: all lookups that arrive during a read go
// into the next read, so a flood of keys costs one small read at a time. A lookup is answered by a
// read that begins after it. There are two queues: the first for cached keys and for addresses with
// few unknown keys, the slow one for addresses with many recent unknown keys. The share of the slow
// queue in a read is bounded, so it cannot delay the first.
type lookupQueue struct {
	read   func(context.Context, []digest) (map[digest]keyResult, error)
	misses *missCounter

	mu      sync.Mutex
	front   lane
	slow    lane
	reading bool // a goroutine is reading
	closed  bool
	work    sync.WaitGroup
}

func newLookupQueue(now func() time.Time, read func(context.Context, []digest) (map[digest]keyResult, error)) *lookupQueue {
	return &lookupQueue{
		read:   read,
		misses: newMissCounter(now),
		front:  lane{limit: queueLimit, waiting: make(map[digest]*lookup)},
		slow:   lane{limit: queueSlow, waiting: make(map[digest]*lookup)},
	}
}

// lookUp returns the database's answer for d from a read that begins after this call, or an error
// if the database is unavailable.
func (c *lookupQueue) lookUp(ctx context.Context, d digest, from netip.Addr, isCached bool) (keyResult, error) {
	inFront := isCached || c.misses.below(from)
	q, err := c.put(d, inFront)
	if err != nil {
		return keyResult{}, err
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return keyResult{}, context.Cause(ctx)
	}
	if q.err == nil && !q.result.good && q.result.err == nil {
		c.misses.add(from)
	}
	return q.result, errors.Join(q.err, q.result.err)
}

// put joins or adds the lookup of d, and starts a reader unless one runs.
func (c *lookupQueue) put(d digest, inFront bool) (*lookup, error) {
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

// run reads until the queues are empty.
func (c *lookupQueue) run() {
	for {
		batch := c.take()
		if batch == nil {
			return
		}
		c.readBatch(batch)
	}
}

// take removes the next batch from the queues. If it returns nil, the reader ends.
func (c *lookupQueue) take() []*lookup {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := append(c.front.take(batchLimit), c.slow.take(batchSlow)...)
	c.reading = len(batch) > 0
	return batch
}

// readBatch reads a batch and wakes its callers.
func (c *lookupQueue) readBatch(batch []*lookup) {
	digests := make([]digest, len(batch))
	for i, q := range batch {
		digests[i] = q.digest
	}
	// No request's context: a client that disconnects must not end the read of others.
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	results, err := c.read(ctx, digests)
	for _, q := range batch {
		q.result, q.err = results[q.digest], err
		close(q.done)
	}
}

// close rejects new lookups and waits until the queues are empty.
func (c *lookupQueue) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.work.Wait()
}

// lane is a bounded queue of lookups, one for each digest.
type lane struct {
	limit   int
	order   []*lookup
	waiting map[digest]*lookup
}

func (l *lane) put(d digest) (*lookup, error) {
	if q := l.waiting[d]; q != nil {
		return q, nil
	}
	if len(l.order) >= l.limit {
		return nil, errQueueFull
	}
	q := &lookup{digest: d, done: make(chan struct{})}
	l.order = append(l.order, q)
	l.waiting[d] = q
	return q, nil
}

func (l *lane) take(n int) []*lookup {
	n = min(n, len(l.order))
	batch := append([]*lookup(nil), l.order[:n]...)
	l.order = append(l.order[:0], l.order[n:]...) // in place: the queue's array never grows past its limit
	for _, q := range batch {
		delete(l.waiting, q.digest)
	}
	return batch
}
