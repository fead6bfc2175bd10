// Package node owns who is there: the identity of this node among those on its
// database, its heartbeat, and the judgement of which others are dead. The table
// is node, which is older than the room.
//
// Invariants:
//   - An epoch is one life of one process. Whatever a node holds names the epoch
//     and is taken over when that is dead; a dead epoch never lives again.
//   - A node is dead when its heartbeat has not changed for a lease on the
//     observer's own monotonic clock, while the database could be reached. No
//     clock is compared across machines.
//   - Who is dead is said by the table alone, in the transaction of whoever asks
//     (MembersTx): no memory of it decides anything.
//   - The row of a dead epoch stays for a day, so that its node can learn what
//     became of its last batch (docs/adr/0003). The node begins another life
//     only when it has learnt that.
package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Options are a node's surroundings. Only DB is required.
type Options struct {
	DB *store.DB
	// Lease is after how long without a heartbeat another node is dead; 0: 15 s.
	Lease time.Duration
	// Now is this process's clock, by which the silence of others is measured;
	// nil: time.Now.
	Now func() time.Time
	Log *slog.Logger // nil: nobody is told
}

// Node is this process among the nodes on its database. It is safe for
// concurrent use. The ledger leads its life: what it commits is what makes an
// epoch's death matter, so that it calls Beat, Judge, Rejoin and Leave.
type Node struct {
	opts  Options
	epoch atomic.Pointer[string] // this life; changes when it was declared dead
	watch watch                  // of the others; used by Judge alone
}

// Join registers this process as a node. On SQLite the caller holds
// store.LockFile: whoever else is registered is a process that has ended, and is
// declared dead.
func Join(ctx context.Context, o Options) (*Node, error) {
	if o.Lease <= 0 {
		o.Lease = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{opts: o}
	if err := n.Rejoin(ctx); err != nil {
		return nil, err
	}
	if !o.DB.OneProcess() {
		return n, nil
	}
	rows, err := List(ctx, o.DB)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Epoch == n.Epoch() || row.Dead {
			continue
		}
		if _, err := Fence(ctx, o.DB, row.Epoch, row.Beat); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Epoch names this life of the node. It changes when the node was declared dead
// and began anew.
func (n *Node) Epoch() string { return *n.epoch.Load() }

// Lease is after how long without a heartbeat a node is dead.
func (n *Node) Lease() time.Duration { return n.opts.Lease }

// Rejoin begins a new life. What the former one held is taken over by whoever
// sweeps.
func (n *Node) Rejoin(ctx context.Context) error {
	epoch := id.New("node_")
	if err := Register(ctx, n.opts.DB, epoch); err != nil {
		return err
	}
	n.epoch.Store(&epoch)
	return nil
}

// Beat says that this node is alive. ErrFenced: it was declared dead.
func (n *Node) Beat(ctx context.Context) error { return Heartbeat(ctx, n.opts.DB, n.Epoch()) }

// Judge declares dead the nodes that have not renewed for a lease. Call it four
// times a lease, from one goroutine; several nodes may do so at once.
func (n *Node) Judge(ctx context.Context) error {
	rows, err := List(ctx, n.opts.DB)
	if err != nil {
		n.watch = watch{} // not reachable: nobody is judged by this silence
		return err
	}
	for _, row := range n.watch.stale(rows, n.Epoch(), n.opts.Lease, n.opts.Now()) {
		dead, err := Fence(ctx, n.opts.DB, row.Epoch, row.Beat)
		if err != nil {
			return err
		}
		if dead {
			n.opts.Log.Warn("node: another one has not renewed its lease and was declared dead", "epoch", row.Epoch)
		}
	}
	return nil
}

// Leave ends this life: nothing can be committed under it any more. Its row goes,
// unless busy says that something still runs under the epoch: then it stays for
// the sweep of another node or of the next start.
func (n *Node) Leave(ctx context.Context, busy func(ctx context.Context, epoch string) (bool, error)) error {
	epoch := n.Epoch()
	rows, err := List(ctx, n.opts.DB)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Epoch != epoch {
			continue
		}
		if _, err := Fence(ctx, n.opts.DB, epoch, row.Beat); err != nil {
			return err
		}
	}
	if still, err := busy(ctx, epoch); err != nil || still {
		return err
	}
	return Remove(ctx, n.opts.DB, epoch)
}
