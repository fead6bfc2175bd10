// Package groupcommit owns how the steps of many workers share a transaction.
//
// Invariants: a step that was answered with nil is committed, and one that fails
// or panics keeps no other from being written. Of those that wait one writes for
// all; who leaves keeps nobody waiting.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"tollgate/internal/store"
)

// maxGroup bounds the steps of one transaction.
const maxGroup = 64

// Batcher writes the steps of a node's workers. Those that wait at the same time go
// into one transaction, so that thousands of workers take one write connection
// between them and one commit for many of their steps, and the ledger does not
// wait behind each of them. Of the workers that wait, one writes for all.
type Batcher struct {
	db *store.DB

	mu      sync.Mutex
	waiting []*waiter
	writing bool // somebody leads
}

// waiter is a step that waits to be written.
type waiter struct {
	step func(tx *store.Tx) error
	left bool // its worker has gone; under mu
	err  error
	done chan struct{} // closed when err is set
	lead chan struct{} // closed when its worker is to write for all
}

// New makes a writer of a database.
func New(db *store.DB) *Batcher { return &Batcher{db: db} }

// Write writes a step, as store.DB.Update does. The step may run after ctx has
// ended, though Write has returned.
func (w *Batcher) Write(ctx context.Context, step func(tx *store.Tx) error) error {
	l := &waiter{step: step, done: make(chan struct{}), lead: make(chan struct{})}
	w.mu.Lock()
	w.waiting = append(w.waiting, l)
	if !w.writing {
		w.writing = true
		close(l.lead)
	}
	w.mu.Unlock()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		w.mu.Lock()
		l.left = true
		w.mu.Unlock()
		select {
		case <-l.lead: // somebody has to
			w.lead()
		default:
		}
		return ctx.Err()
	case <-l.lead:
	}
	w.lead()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead writes what waits, once, and hands the lead on. The leader is among the
// first that wait, unless it has left.
func (w *Batcher) lead() {
	w.mu.Lock()
	var group []*waiter
	for len(w.waiting) > 0 && len(group) < maxGroup {
		l := w.waiting[0]
		w.waiting = w.waiting[1:]
		if !l.left {
			group = append(group, l)
		}
	}
	w.mu.Unlock()
	w.writeGroup(group)
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > 0 && w.waiting[0].left { // who has left leads nobody
		w.waiting = w.waiting[1:]
	}
	if len(w.waiting) == 0 {
		w.writing = false
		return
	}
	close(w.waiting[0].lead)
}

// writeGroup writes some steps in one transaction. When that fails, each is tried
// by itself, so that one that cannot be written does not keep the others.
func (w *Batcher) writeGroup(group []*waiter) {
	err := w.update(group)
	for i, l := range group {
		if l.err = err; err != nil && len(group) > 1 {
			l.err = w.update(group[i : i+1])
		}
		close(l.done)
	}
}

// ErrPanicked means that a step panicked: it will do so again.
var ErrPanicked = errors.New("a step panicked")

// update writes steps in one transaction. A panic is the step's own: the worker
// that writes for it goes on.
func (w *Batcher) update(group []*waiter) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v at %s", ErrPanicked, cause, debug.Stack())
		}
	}()
	return w.db.Update(context.Background(), func(tx *store.Tx) error {
		for _, l := range group {
			if err := l.step(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
