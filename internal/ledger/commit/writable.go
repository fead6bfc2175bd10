package commit

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// writeState is the outcome of this node's latest writes.
type writeState struct {
	mu       sync.Mutex
	batchErr error     // why a batch is being tried again
	beatErr  error     // why the last heartbeat was not committed
	lastAt   time.Time // when a write was last committed
}

// recordBatch records the outcome of a try of a batch. If err is not nil, the batch is tried again.
func (w *writeState) recordBatch(err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batchErr = err
	if err == nil {
		w.lastAt = now
	}
}

// recordIdle records that no batch is being tried any more.
func (w *writeState) recordIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batchErr = nil
}

// recordBeat records the outcome of a heartbeat. A heartbeat that finds this node declared dead
// counts as a success: the database takes writes, and the next batch starts a new epoch.
func (w *writeState) recordBeat(err error, now time.Time) {
	if errors.Is(err, node.ErrFenced) {
		err = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beatErr = err
	if err == nil {
		w.lastAt = now
	}
}

// reason returns the known reason why the database takes no writes, or nil. There are four
// heartbeats in a lease.
func (w *writeState) reason(now time.Time, lease time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch silent := now.Sub(w.lastAt); {
	case w.batchErr != nil:
		return w.batchErr
	case w.beatErr != nil:
		return w.beatErr
	case silent > lease:
		return fmt.Errorf("nothing was committed for %s", silent.Round(time.Second))
	}
	return nil
}

// Writable returns the reason why the database takes no writes of this node: a batch is being tried
// again, the last heartbeat failed, or nothing was committed for a lease. It returns nil if the
// database takes writes. It sends no query. A full disk shows within a quarter of a lease, or at
// once if there are requests.
func (c *Committer) Writable() error {
	return explainFullDisk(c.writes.reason(c.opts.Now(), c.opts.Node.Lease()))
}

// Unavailable returns the error of an admission while the database is unreachable.
func Unavailable(cause error) *fault.Error { return fault.TryAgain(explainFullDisk(cause)) }

// explainFullDisk adds an explanation to an error about a full disk, because drivers report only a
// number.
func explainFullDisk(err error) error {
	if store.NoRoom(err) {
		return fmt.Errorf("the disk of the database is full, or fails: %w", err)
	}
	return err
}
