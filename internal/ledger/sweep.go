package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// Beat renews this node's lease. A node that was declared dead begins a new life.
func (l *Ledger) Beat(ctx context.Context) error {
	epoch := *l.epoch.Load()
	err := l.db.Heartbeat(ctx, epoch)
	l.writing.beats(err, l.now())
	if errors.Is(err, store.ErrFenced) && epoch == *l.epoch.Load() {
		l.queue.push(&op{kind: opConfirm}) // its batch meets the fence
	}
	return err
}

// Confirm returns nil once all that was visible to this node before it was called
// is certain: committed, and on a synchronous standby where there is one. What
// was only read may still be lost (store.Batch.ProveNode); an answer that rests
// on a read alone, of money or of what a key has led to, waits for this.
func (l *Ledger) Confirm(ctx context.Context) error {
	if l.db.Dialect() == store.SQLite {
		return nil // shows nothing before it is durable
	}
	o := &op{kind: opConfirm, done: make(chan struct{})}
	l.queue.push(o)
	select {
	case <-o.done:
		return o.err
	case <-l.stopped:
		return errors.New("the ledger is closed")
	case <-ctx.Done():
		return fmt.Errorf("wait for a commit that confirms what was read: %w", ctx.Err())
	}
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
	for _, node := range l.watch.stale(nodes, *l.epoch.Load(), l.opts.Lease, l.now()) {
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

// sweepDead ends the open holds of all epochs that are dead or not known, and
// forgets dead nodes. What cannot be ended is quarantined if it is damaged, and
// passed over otherwise: the next sweep tries it again, and the rest goes on.
func (l *Ledger) sweepDead(ctx context.Context) error {
	nodes, err := l.db.Nodes(ctx)
	if err != nil {
		return err
	}
	failed, left, err := l.sweepHolds(ctx)
	if err != nil {
		return err
	}
	unseen, err := l.lookAtDamage(ctx)
	if l.opts.Observer.Unswept != nil {
		l.opts.Observer.Unswept(left + unseen)
	}
	if err != nil {
		return err
	}
	var ended []string
	for _, node := range nodes {
		if node.Dead && failed[node.Epoch] == nil {
			ended = append(ended, node.Epoch)
		}
	}
	if err := l.db.ForgetNodes(ctx, ended); err != nil {
		return err
	}
	errs := make([]error, 0, len(failed))
	for epoch, err := range failed {
		errs = append(errs, fmt.Errorf("requests of the dead node %s cannot be ended: %w", epoch, err))
	}
	return errors.Join(errs...)
}

// sweepHolds returns, by their epochs, why holds could not be ended, and how many.
func (l *Ledger) sweepHolds(ctx context.Context) (failed map[string]error, left int, err error) {
	failed = map[string]error{}
	for after := ""; ; {
		ops, err := l.deadHolds(ctx, after)
		if err != nil || len(ops) == 0 {
			return failed, left, err
		}
		after = ops[len(ops)-1].holdID
		for _, o := range ops {
			l.queue.push(o)
		}
		ended := 0
		for _, o := range ops {
			select {
			case <-o.done:
			case <-ctx.Done():
				return failed, left, ctx.Err()
			}
			if o.err == nil {
				ended++
				continue
			}
			if found, err := l.quarantine(ctx, o.holdID, o.err); err != nil || found == holdSound {
				left++
				failed[o.epoch] = errors.Join(fmt.Errorf("%s: %w", o.holdID, o.err), err)
			}
		}
		if ended > 0 {
			l.log.Info("ledger: ended requests of dead nodes", "requests", ended)
		}
	}
}

// deadHolds reads a chunk of the holds that nobody will end but a sweep: an epoch
// whose row is dead or gone commits nothing any more.
func (l *Ledger) deadHolds(ctx context.Context, after string) ([]*op, error) {
	var ops []*op
	err := l.db.View(ctx, func(tx *store.Tx) error {
		ops = nil
		nodes, err := store.NodesTx(tx)
		if err != nil {
			return err
		}
		others := []string{jobEpoch}
		for _, node := range nodes {
			if !node.Dead {
				others = append(others, node.Epoch)
			}
		}
		rows, err := tx.Query(`SELECT id, epoch, account, key, CASE WHEN free = 0 THEN 0 ELSE 1 END FROM ledger_hold
			WHERE id > $1 AND NOT (`+tx.In("epoch", 2)+`) ORDER BY id LIMIT $3`, after, store.List(others), sweepChunk)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			o := &op{kind: opSweep, done: make(chan struct{})}
			var free int64
			if err := rows.Scan(&o.holdID, &o.epoch, &o.account, &o.key, &free); err != nil {
				return err
			}
			o.free = free != 0
			ops = append(ops, o)
		}
		return rows.Err()
	})
	return ops, err
}

// retire ends this node's life: nothing can be committed under it any more. Its
// row stays while requests run under it, for the sweep.
func (l *Ledger) retire(ctx context.Context) error {
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
	return l.db.LeaveNode(ctx, epoch)
}
