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
func (lq *lookupQueue) lookUp(ctx context.Context, d digest, addr netip.Addr, isCached bool) (keyResult, error) {
	isFast := isCached || lq.misses.below(addr)
	l, err := lq.put(d, isFast)
	if err != nil {
		return keyResult{}, err
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		return keyResult{}, context.Cause(ctx)
	}
	if l.err == nil && !l.result.usable && l.result.err == nil {
		lq.misses.add(addr)
	}
	return l.result, errors.Join(l.err, l.result.err)
}

// put joins or adds the lookup of d, and starts a reader unless one runs.
func (lq *lookupQueue) put(d digest, isFast bool) (*lookup, error) {
	lq.mu.Lock()
	defer lq.mu.Unlock()
	if lq.closed {
		return nil, errClosed
	}
	q := &lq.slow
	if isFast {
		q = &lq.fast
	}
	l, err := q.put(d)
	if err != nil {
		return nil, err
	}
	if !lq.reading {
		lq.reading = true
		lq.work.Go(lq.run)
	}
	return l, nil
}

// run reads until the queues are empty.
func (lq *lookupQueue) run() {
	for {
		batch := lq.take()
		if batch == nil {
			return
		}
		lq.readBatch(batch)
	}
}

// take removes the next batch from the queues. If it returns nil, the reader ends.
func (lq *lookupQueue) take() []*lookup {
	lq.mu.Lock()
	defer lq.mu.Unlock()
	batch := append(lq.fast.take(fastBatchLimit), lq.slow.take(slowBatchLimit)...)
	lq.reading = len(batch) > 0
	return batch
}

// readBatch reads a batch and wakes its callers.
func (lq *lookupQueue) readBatch(batch []*lookup) {
	digests := make([]digest, len(batch))
	for i, l := range batch {
		digests[i] = l.digest
	}
	// Use no request's context, because a disconnecting client must not end the read for the others.
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	results, err := lq.read(ctx, digests)
	for _, l := range batch {
		l.result, l.err = results[l.digest], err
		close(l.done)
	}
}

// close rejects new lookups and waits until the queues are empty.
func (lq *lookupQueue) close() {
	lq.mu.Lock()
	lq.closed = true
	lq.mu.Unlock()
	lq.work.Wait()
}

// queue is a bounded queue with at most one lookup for each digest.
type queue struct {
	limit   int
	order   []*lookup
	waiting map[digest]*lookup
}

func (q *queue) put(d digest) (*lookup, error) {
	if l := q.waiting[d]; l != nil {
		return l, nil
	}
	if len(q.order) >= q.limit {
		return nil, errQueueFull
	}
	l := &lookup{digest: d, done: make(chan struct{})}
	q.order = append(q.order, l)
	q.waiting[d] = l
	return l, nil
}

func (q *queue) take(n int) []*lookup {
	n = min(n, len(q.order))
	batch := append([]*lookup(nil), q.order[:n]...)
	q.order = append(q.order[:0], q.order[n:]...) // in place, so that the array never grows past the limit
	for _, l := range batch {
		delete(q.waiting, l.digest)
	}
	return batch
}
