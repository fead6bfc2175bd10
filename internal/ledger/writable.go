package ledger

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// writing is the outcome of this node's latest writes. The zero value has none.
type writing struct {
	mu     sync.Mutex
	stuck  error     // why a batch is being tried again
	beat   error     // why the last heartbeat was not committed
	lastAt time.Time // when a write was last committed
}

// batch records the outcome of a try of a batch: nil if it was committed; otherwise it is tried
// again.
func (w *writing) batch(err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = err
	if err == nil {
		w.lastAt = now
	}
}

// over records that no batch is being tried any more, whatever its outcome.
func (w *writing) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = nil
}

// beats records the outcome of a heartbeat. A heartbeat that finds this node declared dead was
// committed: the next batch begins a new life.
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

// fault returns the known reason why the database takes no writes at now, or nil if it takes them.
// Heartbeats are tried four times a lease.
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

// Writable returns the reason why the database takes no writes of this node: a batch is being tried
// again, the last heartbeat failed, or nothing was committed for a lease. It returns nil if the
// database takes writes. It sends no query: a full disk shows within a quarter of a lease, and at
// once if there are requests, and so does its end.
func (l *Ledger) Writable() error { return nameFullDisk(l.writing.fault(l.now(), l.node.Lease())) }

// withFault adds to err the reason why the database takes no writes, if it is known.
func (l *Ledger) withFault(err error) error {
	if fault := l.Writable(); fault != nil {
		return fmt.Errorf("%w: %w", err, fault)
	}
	return err
}

// nameFullDisk adds words to err if it means a full disk; drivers only show a number.
func nameFullDisk(err error) error {
	if store.NoRoom(err) {
		return fmt.Errorf("the disk of the database is full, or fails: %w", err)
	}
	return err
}
