package job

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"tollgate/internal/store"
)

// maxBatch bounds the writes of one transaction.
const maxBatch = 64

// batcher writes the steps of the workers. Writes that wait at the same time share one
// transaction, so that thousands of workers use one write connection and few commits. One waiting
// worker is the leader and runs the transaction for all. A failed or panicking write does not affect
// the other writes.
type batcher struct {
	db *store.DB

	mu      sync.Mutex
	pending []*pendingWrite
	leading bool // a worker is the leader
}

// pendingWrite is a write that waits for its transaction.
type pendingWrite struct {
	do       func(tx *store.Tx) error
	canceled bool // the worker has stopped waiting; guarded by batcher.mu
	err      error
	done     chan struct{} // closed when err is set
	lead     chan struct{} // closed when the worker becomes the leader
}

// write runs do in a transaction, like store.DB.Update. If ctx ends, write returns, and do may still
// run later.
func (b *batcher) write(ctx context.Context, do func(tx *store.Tx) error) error {
	w := &pendingWrite{do: do, done: make(chan struct{}), lead: make(chan struct{})}
	b.mu.Lock()
	b.pending = append(b.pending, w)
	if !b.leading {
		b.leading = true
		close(w.lead)
	}
	b.mu.Unlock()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		b.mu.Lock()
		w.canceled = true
		b.mu.Unlock()
		select {
		case <-w.lead: // the others wait for this worker
			b.lead()
		default:
		}
		return ctx.Err()
	case <-w.lead:
	}
	b.lead()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead writes one batch and then makes the next waiting worker the leader. The batch includes the
// leader's own write, unless that write was canceled.
func (b *batcher) lead() {
	b.mu.Lock()
	var batch []*pendingWrite
	for len(b.pending) > 0 && len(batch) < maxBatch {
		w := b.pending[0]
		b.pending = b.pending[1:]
		if !w.canceled {
			batch = append(batch, w)
		}
	}
	b.mu.Unlock()
	b.writeBatch(batch)
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.pending) > 0 && b.pending[0].canceled { // the worker has stopped waiting
		b.pending = b.pending[1:]
	}
	if len(b.pending) == 0 {
		b.leading = false
		return
	}
	close(b.pending[0].lead)
}

// writeBatch runs a batch in one transaction. If the transaction fails, writeBatch runs each write in
// its own transaction.
func (b *batcher) writeBatch(batch []*pendingWrite) {
	err := b.update(batch)
	for i, w := range batch {
		if w.err = err; err != nil && len(batch) > 1 {
			w.err = b.update(batch[i : i+1])
		}
		close(w.done)
	}
}

// errPanic means that a write panicked. A retry would panic again.
var errPanic = errors.New("a step panicked")

// update runs writes in one transaction. It returns a panic as an error, so that a worker's panic
// does not stop the leader.
func (b *batcher) update(batch []*pendingWrite) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v at %s", errPanic, cause, debug.Stack())
		}
	}()
	return b.db.Update(context.Background(), func(tx *store.Tx) error {
		for _, w := range batch {
			if err := w.do(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
