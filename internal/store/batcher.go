package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// maxBatch bounds the writes of one transaction.
const maxBatch = 64

// Batcher writes for many callers. Writes that wait at the same time share one transaction, so that
// thousands of callers use one write connection and few commits. One waiting caller is the leader
// and runs the transaction for all. A failed or panicking write does not affect the other writes. A
// Batcher is safe for concurrent use.
type Batcher[T any] struct {
	db  *DB
	run func(tx *Tx, writes []T) error

	mu      sync.Mutex
	pending []*pendingWrite[T]
	leading bool // a caller is the leader
}

// NewBatcher returns a batcher. run executes writes in a transaction, and must have no effect outside
// the transaction. After an error or a panic of run with several writes, run is called for each
// write separately.
func NewBatcher[T any](db *DB, run func(tx *Tx, writes []T) error) *Batcher[T] {
	return &Batcher[T]{db: db, run: run}
}

// pendingWrite is a write that waits for its transaction.
type pendingWrite[T any] struct {
	write    T
	canceled bool // the caller has stopped waiting; guarded by Batcher.mu
	err      error
	done     chan struct{} // closed when err is set
	lead     chan struct{} // closed when the caller becomes the leader
}

// Write executes one write in a transaction, like DB.Update. If ctx ends, Write returns, and the
// write may still be executed later.
func (b *Batcher[T]) Write(ctx context.Context, write T) error {
	w := &pendingWrite[T]{write: write, done: make(chan struct{}), lead: make(chan struct{})}
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
		case <-w.lead: // the others wait for this caller
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

// lead writes one batch and then makes the next waiting caller the leader. The batch includes the
// leader's own write, unless that write was canceled.
func (b *Batcher[T]) lead() {
	b.mu.Lock()
	var batch []*pendingWrite[T]
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
	for len(b.pending) > 0 && b.pending[0].canceled { // the caller has stopped waiting
		b.pending = b.pending[1:]
	}
	if len(b.pending) == 0 {
		b.leading = false
		return
	}
	close(b.pending[0].lead)
}

// writeBatch executes a batch in one transaction. If the transaction fails, writeBatch executes each
// write in its own transaction.
func (b *Batcher[T]) writeBatch(batch []*pendingWrite[T]) {
	err := b.update(batch)
	for i, w := range batch {
		if w.err = err; err != nil && len(batch) > 1 {
			w.err = b.update(batch[i : i+1])
		}
		close(w.done)
	}
}

// ErrPanic reports that a write of a Batcher panicked. A retry would panic again.
var ErrPanic = errors.New("a write panicked")

// update executes writes in one transaction. It returns a panic as an error, so that a caller's panic
// does not stop the leader.
func (b *Batcher[T]) update(batch []*pendingWrite[T]) (err error) {
	if len(batch) == 0 {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v at %s", ErrPanic, cause, debug.Stack())
		}
	}()
	writes := make([]T, len(batch))
	for i, w := range batch {
		writes[i] = w.write
	}
	return b.db.Update(context.Background(), func(tx *Tx) error { return b.run(tx, writes) })
}
