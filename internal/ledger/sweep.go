package ledger

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/ledger/books"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// Beat renews this node's lease. If the node was declared dead, Beat lets the next batch start a
// new epoch.
func (l *Ledger) Beat(ctx context.Context) error {
	epoch := l.node.Epoch()
	err := l.node.Beat(ctx)
	l.writes.recordBeat(err, l.now())
	if errors.Is(err, node.ErrFenced) && epoch == l.node.Epoch() {
		l.queue.push(&op{kind: opConfirm}) // the batch finds the fence and rejoins
	}
	return err
}

// Confirm returns nil once everything that this node could read before the call is durable:
// committed, and on a synchronous standby if there is one. A row that was read may otherwise still
// be lost (node.Prove). Answers about money or about a key that depend on a read alone wait for
// Confirm.
func (l *Ledger) Confirm(ctx context.Context) error {
	if l.db.ReadsAreDurable() {
		return nil
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

// Sweep declares nodes dead that have not renewed their lease in time, and ends the open holds of
// dead nodes: it charges the progress of streams and releases every other hold. It is one step of
// Run. Several nodes may sweep at once; each hold ends once.
func (l *Ledger) Sweep(ctx context.Context) error {
	if err := l.node.Judge(ctx); err != nil {
		return err
	}
	return l.sweepDead(ctx)
}

// sweepChunk is the number of holds ended at a time.
const sweepChunk = 200

// sweepDead ends the open holds of all dead or unknown epochs and deletes the rows of dead nodes.
// If an ending fails, a damaged hold is quarantined and any other hold is left for the next sweep.
func (l *Ledger) sweepDead(ctx context.Context) error {
	nodes, err := node.List(ctx, l.db)
	if err != nil {
		return err
	}
	failed, left, err := l.sweepHolds(ctx)
	if err != nil {
		return err
	}
	unseen, err := l.quarantineFailedEnds(ctx)
	if l.opts.Observer.Unswept != nil {
		l.opts.Observer.Unswept(left + unseen)
	}
	if err != nil {
		return err
	}
	var ended []string
	for _, n := range nodes {
		if n.Dead && failed[n.Epoch] == nil {
			ended = append(ended, n.Epoch)
		}
	}
	if err := node.Forget(ctx, l.db, ended); err != nil {
		return err
	}
	errs := make([]error, 0, len(failed))
	for epoch, err := range failed {
		errs = append(errs, fmt.Errorf("requests of the dead node %s cannot be ended: %w", epoch, err))
	}
	return errors.Join(errs...)
}

// sweepHolds returns the errors of holds that could not be ended, by epoch, and the number of these
// holds.
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

// deadHolds reads a chunk of the holds whose epoch is dead or has no row. Such an epoch commits
// nothing any more.
func (l *Ledger) deadHolds(ctx context.Context, after string) ([]*op, error) {
	var ops []*op
	err := l.db.View(ctx, func(tx *store.Tx) error {
		ops = nil
		members, err := node.MembersTx(tx)
		if err != nil {
			return err
		}
		others := append(members.Living(), books.JobEpoch)
		rows, err := tx.Query(`SELECT id, epoch, account, key FROM ledger_hold
			WHERE id > $1 AND NOT (`+tx.In("epoch", 2)+`) ORDER BY id LIMIT $3`, after, store.List(others), sweepChunk)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			o := &op{kind: opSweep, done: make(chan struct{})}
			if err := rows.Scan(&o.holdID, &o.epoch, &o.account, &o.key); err != nil {
				return err
			}
			ops = append(ops, o)
		}
		return rows.Err()
	})
	return ops, err
}

// holdsUnder reports whether requests still run under an epoch.
func (l *Ledger) holdsUnder(ctx context.Context, epoch string) (bool, error) {
	var open int64
	err := l.db.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM ledger_hold WHERE epoch = $1`, epoch).Scan(&open)
	})
	return open > 0, err
}
