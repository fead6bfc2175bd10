// Package node owns the identity of this node, its heartbeat, the detection of dead nodes on the same
// database, in the table node, and the comparison of the nodes' settings.
//
// Invariants:
//   - An epoch is one life of one process. Work in progress names its epoch and is taken
//     over when the epoch is dead. A dead epoch never lives again.
//   - A node is dead when its heartbeat has not changed for a lease on the
//     observer's own monotonic clock, while the database could be reached. No
//     clock is compared across machines.
//   - Only the table decides who is dead, read in the transaction of the decision
//     (MembersTx).
//   - The row of a dead epoch stays for a day, so that its node can learn the outcome of
//     its last batch (docs/adr/0003) before it starts another life.
package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Options configure a node. Only DB is required.
type Options struct {
	DB *store.DB
	// Lease is the time without a heartbeat after which a node is dead. Zero means 15 s.
	Lease time.Duration
	// Now is this process's clock for measuring the silence of other nodes. If nil, it is time.Now.
	Now func() time.Time
	// Settings are compared with those of the other nodes. If empty, or on SQLite, nothing is compared.
	Settings Digests
	Log      *slog.Logger // if nil, nothing is logged
}

// Node is this process among the nodes on its database. It is safe for concurrent use. The
// ledger calls Beat, DeclareDead, Rejoin and Leave, because its commits depend on the epoch.
type Node struct {
	opts  Options
	epoch atomic.Pointer[string] // changes after the node was declared dead
	watch watch                  // watches the other nodes; only DeclareDead uses it

	compared  []string // epochs whose settings DeclareDead has compared
	differing string   // settings in its last log line
}

// Begin registers a node whose first life has the given epoch, beside the other nodes.
func Begin(ctx context.Context, o Options, epoch string) (*Node, error) {
	if o.Lease <= 0 {
		o.Lease = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.DB.OneProcess() {
		o.Settings = nil
	}
	n := &Node{opts: o}
	return n, n.begin(ctx, epoch)
}

// begin starts the life with the given epoch.
func (n *Node) begin(ctx context.Context, epoch string) error {
	if err := register(ctx, n.opts.DB, epoch, n.opts.Settings); err != nil {
		return err
	}
	n.epoch.Store(&epoch)
	return nil
}

// Join registers this process as a node. On SQLite the caller holds store.LockFile, so every
// other registered process has ended; Join declares them dead.
func Join(ctx context.Context, o Options) (*Node, error) {
	n, err := Begin(ctx, o, newEpoch())
	if err != nil || !o.DB.OneProcess() {
		return n, err
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

// Epoch returns the name of this life. It changes if the node was declared dead and rejoined.
func (n *Node) Epoch() string { return *n.epoch.Load() }

// Lease returns the time without a heartbeat after which a node is dead.
func (n *Node) Lease() time.Duration { return n.opts.Lease }

// Rejoin starts a new life. The next sweep takes over the work of the previous one.
func (n *Node) Rejoin(ctx context.Context) error { return n.begin(ctx, newEpoch()) }

func newEpoch() string { return id.New("node_") }

// Beat writes a heartbeat. It returns ErrFenced if this node was declared dead.
func (n *Node) Beat(ctx context.Context) error { return Heartbeat(ctx, n.opts.DB, n.Epoch()) }

// DeclareDead declares the nodes without a heartbeat for a lease dead, and logs differences between the
// settings of the living ones. It must be called four times per lease from one goroutine; several nodes may
// call it at the same time.
func (n *Node) DeclareDead(ctx context.Context) error {
	rows, err := List(ctx, n.opts.DB)
	if err != nil {
		n.watch = watch{} // the other nodes could not reach the database either
		return err
	}
	members := membersOf(rows)
	for _, row := range n.watch.stale(rows, n.Epoch(), n.opts.Lease, n.opts.Now()) {
		dead, err := Fence(ctx, n.opts.DB, row.Epoch, row.Beat)
		if err != nil {
			return err
		}
		if dead {
			members[row.Epoch] = false
			n.opts.Log.Warn("node: another one has not renewed its lease and was declared dead", "epoch", row.Epoch)
		}
	}
	if len(n.opts.Settings) == 0 {
		return nil
	}
	return n.logDifferences(ctx, members.Living())
}

// Leave ends this life, so that nothing can be committed under its epoch any more. It deletes the
// row unless busy reports work in progress; then another node or the next start sweeps the epoch.
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
