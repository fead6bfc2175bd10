package account

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// Bounds of lookups.
const (
	lookupTimeout  = 2 * time.Second // of one read
	fastQueueLimit = 1024            // lookups in the fast queue
	slowQueueLimit = 256             // lookups in the slow queue
	fastBatchLimit = 64              // lookups of the fast queue in one read
	slowBatchLimit = 16              // lookups of the slow queue in one read
)

var (
	errQueueFull = errors.New("too many unknown keys wait to be looked up")
	errClosed    = errors.New("the key cache is closed")
)

// keyResult is the database's answer for a digest.
type keyResult struct {
	principal Principal // if usable
	usable    bool
	err       error // an error of this key only
}

// lookup is a pending read of a digest. All callers with the same digest share one lookup.
type lookup struct {
	digest digest
	done   chan struct{} // closed when result or err is set
	result keyResult
	err    error
}

// lookupQueue reads keys from the database in batches. All lookups that arrive during a read go into
// the next read, so a flood of keys costs one small read at a time. The slow queue is for addresses
// with many recent unknown keys. The fast queue is for other addresses, and for cached keys of all
// addresses. Each read takes a bounded number of lookups from the slow queue, which therefore cannot
// delay the fast queue.
type lookupQueue struct {
	read   func(context.Context, []digest) (map[digest]keyResult, error)
	misses *missCounter

	mu      sync.Mutex
	fast    queue
	slow    queue
	reading bool // a goroutine is reading
	closed  bool
	work    sync.WaitGroup
}

func newLookupQueue(now func() time.Time, read func(context.Context, []digest) (map[digest]keyResult, error)) *lookupQueue {
	return &lookupQueue{
		read:   read,
		misses: newMissCounter(now),
		fast:   queue{limit: fastQueueLimit, waiting: make(map[digest]*lookup)},
		slow:   queue{limit: slowQueueLimit, waiting: make(map[digest]*lookup)},
	}
}

// lookUp returns the database's answer for d from a read that begins after this call, or an error
// if the database is unavailable.
func (c *lookupQueue) lookUp(ctx context.Context, d digest, addr netip.Addr, isCached bool) (keyResult, error) {
	isFast := isCached || c.misses.below(addr)
	q, err := c.put(d, isFast)
	if err != nil {
		return keyResult{}, err
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return keyResult{}, context.Cause(ctx)
	}
	if q.err == nil && !q.result.usable && q.result.err == nil {
		c.misses.add(addr)
	}
	return q.result, errors.Join(q.err, q.result.err)
}

// put joins or adds the lookup of d, and starts a reader unless one runs.
func (c *lookupQueue) put(d digest, isFast bool) (*lookup, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	l := &c.slow
	if isFast {
		l = &c.fast
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
	batch := append(c.fast.take(fastBatchLimit), c.slow.take(slowBatchLimit)...)
	c.reading = len(batch) > 0
	return batch
}

// readBatch reads a batch and wakes its callers.
func (c *lookupQueue) readBatch(batch []*lookup) {
	digests := make([]digest, len(batch))
	for i, q := range batch {
		digests[i] = q.digest
	}
	// Use no request's context, because a disconnecting client must not end the read for the others.
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
type queue struct {
	limit   int
	order   []*lookup
	waiting map[digest]*lookup
}

func (l *queue) put(d digest) (*lookup, error) {
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

func (l *queue) take(n int) []*lookup {
	n = min(n, len(l.order))
	batch := append([]*lookup(nil), l.order[:n]...)
	l.order = append(l.order[:0], l.order[n:]...) // in place, so that the array never grows past the limit
	for _, q := range batch {
		delete(l.waiting, q.digest)
	}
	return batch
}
