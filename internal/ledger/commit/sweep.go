package commit

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
func (c *Committer) Beat(ctx context.Context) error {
	epoch := c.opts.Node.Epoch()
	err := c.opts.Node.Beat(ctx)
	c.writes.recordBeat(err, c.opts.Now())
	if errors.Is(err, node.ErrFenced) && epoch == c.opts.Node.Epoch() {
		c.queue.push(&Op{kind: opConfirm}) // the batch finds the fence and rejoins
	}
	return err
}

// Confirm waits for a commit after the call. It returns nil once everything that this node could read
// before is durable: committed, and on a synchronous standby if there is one.
func (c *Committer) Confirm(ctx context.Context) error {
	return c.wait(ctx, &Op{kind: opConfirm, Done: make(chan struct{})}, "wait for a commit that confirms what was read")
}

// sweepChunk is the number of holds ended at a time.
const sweepChunk = 200

// Sweep ends the open holds of all dead or unknown epochs and deletes the rows of dead nodes: it
// charges the progress of streams and releases every other hold. If an ending fails, a damaged hold
// is quarantined and any other hold is left for the next sweep. Several nodes may sweep at once; each
// hold ends once.
func (c *Committer) Sweep(ctx context.Context) error {
	nodes, err := node.List(ctx, c.opts.DB)
	if err != nil {
		return err
	}
	failed, left, err := c.sweepHolds(ctx)
	if err != nil {
		return err
	}
	leftEnds, err := c.quarantineFailedEnds(ctx)
	if c.opts.Observer.Unswept != nil {
		c.opts.Observer.Unswept(left + leftEnds)
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
	if err := node.Forget(ctx, c.opts.DB, ended); err != nil {
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
func (c *Committer) sweepHolds(ctx context.Context) (failed map[string]error, left int, err error) {
	failed = map[string]error{}
	for after := ""; ; {
		ops, err := c.deadHolds(ctx, after)
		if err != nil || len(ops) == 0 {
			return failed, left, err
		}
		after = ops[len(ops)-1].holdID
		for _, o := range ops {
			c.queue.push(o)
		}
		ended := 0
		for _, o := range ops {
			select {
			case <-o.Done:
			case <-ctx.Done():
				return failed, left, ctx.Err()
			}
			if o.Err == nil {
				ended++
				continue
			}
			if found, err := c.quarantine(ctx, o.holdID, o.Err); err != nil || found == holdSound {
				left++
				failed[o.epoch] = errors.Join(fmt.Errorf("%s: %w", o.holdID, o.Err), err)
			}
		}
		if ended > 0 {
			c.opts.Log.Info("ledger: ended requests of dead nodes", "requests", ended)
		}
	}
}

// deadHolds reads a chunk of the holds whose epoch is dead or has no row. Such an epoch commits
// nothing any more.
func (c *Committer) deadHolds(ctx context.Context, after string) ([]*Op, error) {
	var ops []*Op
	err := c.opts.DB.View(ctx, func(tx *store.Tx) error {
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
			o := &Op{kind: opSweep, Done: make(chan struct{})}
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
func (c *Committer) holdsUnder(ctx context.Context, epoch string) (bool, error) {
	var open int64
	err := c.opts.DB.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM ledger_hold WHERE epoch = $1`, epoch).Scan(&open)
	})
	return open > 0, err
}
