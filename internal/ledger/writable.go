package ledger

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// writing is what this node's writes came to lately. The zero value knows of
// none.
type writing struct {
	mu     sync.Mutex
	stuck  error     // why a batch is being tried again
	beat   error     // why the last heartbeat was not committed
	lastAt time.Time // when a write was last committed
}

// batch notes what a try of a batch came to: nil, it was committed; else it is
// tried again.
func (w *writing) batch(err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = err
	if err == nil {
		w.lastAt = now
	}
}

// over notes that no batch is being tried any more, whatever became of it.
func (w *writing) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = nil
}

// beats notes what a heartbeat came to. One that says that this node was
// declared dead was committed: its next batch begins a new life.
func (w *writing) beats(err error, now time.Time) {
	if errors.Is(err, node.ErrFenced) {
		err = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beat = err
	if err == nil {
		w.lastAt = now
	}
}

// fault returns why the database does not take writes, as far as it is known at
// a time; nil: it does. Heartbeats are tried four times a lease.
func (w *writing) fault(now time.Time, lease time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch silent := now.Sub(w.lastAt); {
	case w.stuck != nil:
		return w.stuck
	case w.beat != nil:
		return w.beat
	case silent > lease:
		return fmt.Errorf("nothing was committed for %s", silent.Round(time.Second))
	}
	return nil
}

// Writable returns why the database takes no writes of this node: a batch is
// being tried again, the last heartbeat failed, or nothing was committed for a
// lease. nil: it does. It asks nobody: a full disk shows within a quarter of a
// lease, and at once where there are requests; so does its end.
func (l *Ledger) Writable() error { return nameFullDisk(l.writing.fault(l.now(), l.node.Lease())) }

// withFault adds to err why the database takes no writes, if that is known.
func (l *Ledger) withFault(err error) error {
	if fault := l.Writable(); fault != nil {
		return fmt.Errorf("%w: %w", err, fault)
	}
	return err
}

// nameFullDisk says in words if err means a full disk; drivers show a number.
func nameFullDisk(err error) error {
	if store.NoRoom(err) {
		return fmt.Errorf("the disk of the database is full, or fails: %w", err)
	}
	return err
}
