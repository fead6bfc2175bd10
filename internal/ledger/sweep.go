package ledger

import (
	"context"
	"time"

	"tollgate/internal/store"
)

// Beat renews this node's lease.
func (l *Ledger) Beat(ctx context.Context) error {
	return l.db.Heartbeat(ctx, *l.epoch.Load())
}

// watcher remembers when the heartbeat of each other node last changed, on
// this node's own monotonic clock: no clock is compared across machines.
type watcher struct {
	seen map[string]seenBeat
	last time.Time // of the last look that reached the database
}

type seenBeat struct {
	beat int64
	at   time.Time
}

// stale returns the nodes whose heartbeat has not changed for a lease. A look
// that comes more than half a lease after the one before begins afresh: while
// the database was away, nobody could renew.
func (w *watcher) stale(nodes []store.Node, self string, lease time.Duration, now time.Time) []store.Node {
	if w.last.IsZero() || now.Sub(w.last) > lease/2 {
		w.seen = map[string]seenBeat{}
	}
	w.last = now
	seen := make(map[string]seenBeat, len(nodes))
	var stale []store.Node
	for _, node := range nodes {
		if node.Epoch == self || node.Dead {
			continue
		}
		before, known := w.seen[node.Epoch]
		if !known || before.beat != node.Beat {
			before = seenBeat{beat: node.Beat, at: now}
		}
		seen[node.Epoch] = before
		if now.Sub(before.at) >= lease {
			stale = append(stale, node)
		}
	}
	w.seen = seen
	return stale
}

// Sweep declares dead the nodes that have not renewed for a lease, and ends
// what dead nodes left running: what a stream had produced is charged, all
// else is given back. It is one step of Run; doing it twice, or on several
// nodes at once, ends each hold once.
func (l *Ledger) Sweep(ctx context.Context) error {
	nodes, err := l.db.Nodes(ctx)
	if err != nil {
		l.watch = watcher{} // not reachable: nobody is judged by this silence
		return err
	}
	for _, node := range l.watch.stale(nodes, *l.epoch.Load(), l.opts.Lease, time.Now()) {
		dead, err := l.db.Fence(ctx, node.Epoch, node.Beat)
		if err != nil {
			return err
		}
		if dead {
			l.log.Warn("ledger: a node has not renewed its lease and was declared dead", "epoch", node.Epoch)
		}
	}
	return l.sweepDead(ctx)
}

// sweepChunk bounds how many holds are ended at a time.
const sweepChunk = 200

// sweepDead ends the holds of all dead nodes and forgets the nodes.
func (l *Ledger) sweepDead(ctx context.Context) error {
	nodes, err := l.db.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if !node.Dead {
			continue
		}
		for {
			n, err := l.sweepSome(ctx, node.Epoch)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			l.log.Info("ledger: ended requests of a dead node", "epoch", node.Epoch, "requests", n)
		}
		if err := l.db.ForgetNode(ctx, node.Epoch); err != nil {
			return err
		}
	}
	return nil
}

// sweepSome ends some holds of a dead epoch through the committer and returns
// how many it found.
func (l *Ledger) sweepSome(ctx context.Context, epoch string) (int, error) {
	var ops []*op
	err := l.db.View(ctx, func(tx *store.Tx) error {
		ops = nil
		rows, err := tx.Query(`SELECT id, account, key, free FROM ledger_hold WHERE epoch = $1 ORDER BY id LIMIT $2`, epoch, sweepChunk)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			o := &op{kind: opSweep, done: make(chan struct{})}
			var free int64
			if err := rows.Scan(&o.holdID, &o.account, &o.key, &free); err != nil {
				return err
			}
			o.free = free != 0
			ops = append(ops, o)
		}
		return rows.Err()
	})
	if err != nil {
		return 0, err
	}
	for _, o := range ops {
		l.queue.push(o)
	}
	for _, o := range ops {
		select {
		case <-o.done:
			if o.err != nil {
				return 0, o.err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return len(ops), nil
}

// leave ends this node's life: nothing can be committed under it any more. Its
// row stays while requests run under it, for the sweep.
func (l *Ledger) leave(ctx context.Context) error {
	epoch := *l.epoch.Load()
	nodes, err := l.db.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if node.Epoch != epoch {
			continue
		}
		if _, err := l.db.Fence(ctx, epoch, node.Beat); err != nil {
			return err
		}
	}
	var open int64
	err = l.db.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM ledger_hold WHERE epoch = $1`, epoch).Scan(&open)
	})
	if err != nil || open > 0 {
		return err
	}
	return l.db.ForgetNode(ctx, epoch)
}
