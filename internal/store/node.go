package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrFenced means that this node was declared dead: whatever it still runs
// belongs to others now, and it may write nothing more under its epoch.
var ErrFenced = errors.New("this node was declared dead by another one")

// RegisterNode writes the row of a new node epoch. An epoch is one life of one
// process; what it holds is taken over when it dies.
func (db *DB) RegisterNode(ctx context.Context, epoch string) error {
	return db.Update(ctx, func(tx *Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO node (epoch, batch, beat, dead, started_ms) VALUES ($1, 0, 0, 0, $2)`, epoch, now)
		return err
	})
}

// Heartbeat says that the epoch is alive. ErrFenced: it was declared dead.
func (db *DB) Heartbeat(ctx context.Context, epoch string) error {
	return db.Update(ctx, func(tx *Tx) error {
		n, err := tx.Exec(`UPDATE node SET beat = beat + 1 WHERE epoch = $1 AND dead = 0`, epoch)
		if err == nil && n == 0 {
			err = ErrFenced
		}
		return err
	})
}

// Node is the row of one epoch.
type Node struct {
	Epoch string
	Beat  int64 // grows with each heartbeat; no clock is compared across machines
	Dead  bool
}

// Nodes lists all epochs that are known: the living, and those that died within
// nodeLinger.
func (db *DB) Nodes(ctx context.Context) ([]Node, error) {
	var nodes []Node
	err := db.View(ctx, func(tx *Tx) (err error) {
		nodes, err = NodesTx(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return nodes, nil
}

// NodesTx is Nodes as of the caller's transaction.
func NodesTx(tx *Tx) ([]Node, error) {
	rows, err := tx.Query(`SELECT epoch, beat, dead FROM node ORDER BY epoch`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var nodes []Node
	for rows.Next() {
		var n Node
		var dead int64
		if err := rows.Scan(&n.Epoch, &n.Beat, &dead); err != nil {
			return nil, err
		}
		n.Dead = dead != 0
		nodes = append(nodes, n)
	}
	return nodes, rows.Err()
}

// Fence declares an epoch dead, unless its heartbeat has moved on from beat.
// It waits for a batch that the epoch is just committing, and after it none
// can commit any more. It reports whether the epoch is dead now.
func (db *DB) Fence(ctx context.Context, epoch string, beat int64) (bool, error) {
	var changed int64
	err := db.Update(ctx, func(tx *Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		changed, err = tx.Exec(`UPDATE node SET dead = 1, dead_ms = CASE WHEN dead = 1 THEN dead_ms ELSE $1 END WHERE epoch = $2 AND beat = $3`, now, epoch, beat)
		return err
	})
	return changed > 0, err
}

// nodeLinger is how long the row of a dead epoch stays on PostgreSQL: longer than
// any node waits to ask what became of its last batch. On SQLite whoever could
// ask is gone with its process.
const nodeLinger = 24 * time.Hour

// ForgetNodes removes the rows of dead epochs of which nothing is left to take
// over, once nobody can ask for their last batches any more. It is one statement,
// however many have died within nodeLinger: a sweep that takes too long judges
// nobody.
func (db *DB) ForgetNodes(ctx context.Context, epochs []string) error {
	if len(epochs) == 0 {
		return nil
	}
	return db.Update(ctx, func(tx *Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		if db.dialect == PostgreSQL {
			now -= nodeLinger.Milliseconds()
		}
		_, err = tx.Exec(`DELETE FROM node WHERE `+tx.In("epoch", 1)+` AND dead = 1 AND dead_ms <= $2`, List(epochs), now)
		return err
	})
}

// LeaveNode removes the row of an epoch that ends by itself: every batch of it
// was answered.
func (db *DB) LeaveNode(ctx context.Context, epoch string) error {
	return db.Update(ctx, func(tx *Tx) error {
		_, err := tx.Exec(`DELETE FROM node WHERE epoch = $1 AND dead = 1`, epoch)
		return err
	})
}

// AdvanceNode adds the fence of a batch: it moves the epoch's batch number
// from n-1 to n, which is a heartbeat too, and stores in moved whether it did.
// Not moved means that batch n has been committed before, or that the epoch is
// dead: ProveNode tells.
func (b *Batch) AdvanceNode(moved *int64, epoch string, n int64) {
	b.Exec(moved, `UPDATE node SET batch = $1, beat = beat + 1 WHERE epoch = $2 AND batch = $3 AND dead = 0`, n, epoch, n-1)
}

// NodeFate is what an epoch's row tells of its last batch.
type NodeFate struct {
	Found bool // false: the row is gone, and nobody can tell
	Dead  bool
	Batch int64 // the last batch that was committed
}

// ProveNode adds the reading of an epoch's row and the commit of the transaction
// that b has begun. It writes the row before: what is read is only certain once
// the commit of a write behind it was answered, since a read may see a commit
// that no standby has yet.
func (b *Batch) ProveNode(fate *NodeFate, epoch string) {
	b.Exec(nil, `UPDATE node SET batch = batch WHERE epoch = $1`, epoch)
	b.Query(func(row Row) error {
		var dead int64
		fate.Found = true
		err := row.Scan(&fate.Batch, &dead)
		fate.Dead = dead != 0
		return err
	}, `SELECT batch, dead FROM node WHERE epoch = $1`, epoch)
	b.Commit()
}
