package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tollgate/internal/store"
)

// ErrFenced means that this node was declared dead: whatever it still runs
// belongs to others now, and it may write nothing more under its epoch.
var ErrFenced = errors.New("this node was declared dead by another one")

// Register writes the row of a new epoch, with the name of this machine as far as it
// is known.
func Register(ctx context.Context, db *store.DB, epoch string) error {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO node (epoch, batch, beat, dead, started_ms, host) VALUES ($1, 0, 0, 0, $2, $3)`, epoch, now, host)
		return err
	})
}

// Heartbeat says that the epoch is alive. ErrFenced: it was declared dead.
func Heartbeat(ctx context.Context, db *store.DB, epoch string) error {
	return db.Update(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(`UPDATE node SET beat = beat + 1 WHERE epoch = $1 AND dead = 0`, epoch)
		if err == nil && n == 0 {
			err = ErrFenced
		}
		return err
	})
}

// Record is the row of one epoch.
type Record struct {
	Epoch string
	Beat  int64 // grows with each heartbeat; no clock is compared across machines
	Dead  bool
}

// List returns the rows of all epochs that are known, in their order: the living,
// and those that died within linger.
func List(ctx context.Context, db *store.DB) ([]Record, error) {
	var rows []Record
	err := db.View(ctx, func(tx *store.Tx) (err error) {
		rows, err = listTx(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return rows, nil
}

func listTx(tx *store.Tx) ([]Record, error) {
	rows, err := tx.Query(`SELECT epoch, beat, dead FROM node ORDER BY epoch`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Record
	for rows.Next() {
		var r Record
		var dead int64
		if err := rows.Scan(&r.Epoch, &r.Beat, &dead); err != nil {
			return nil, err
		}
		r.Dead = dead != 0
		all = append(all, r)
	}
	return all, rows.Err()
}

// Fence declares an epoch dead, unless its heartbeat has moved on from beat.
// It waits for a batch that the epoch is just committing, and after it none
// can commit any more. It reports whether the epoch is dead now.
func Fence(ctx context.Context, db *store.DB, epoch string, beat int64) (bool, error) {
	var changed int64
	err := db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		changed, err = tx.Exec(`UPDATE node SET dead = 1, dead_ms = CASE WHEN dead = 1 THEN dead_ms ELSE $1 END WHERE epoch = $2 AND beat = $3`,
			now, epoch, beat)
		return err
	})
	return changed > 0, err
}

// linger is how long the row of a dead epoch stays on PostgreSQL: longer than
// any node waits to ask what became of its last batch. On SQLite whoever could
// ask is gone with its process.
const linger = 24 * time.Hour

// Forget removes the rows of dead epochs of which nothing is left to take over,
// once nobody can ask for their last batches any more. It is one statement,
// however many have died within linger: a sweep that takes too long judges nobody.
func Forget(ctx context.Context, db *store.DB, epochs []string) error {
	if len(epochs) == 0 {
		return nil
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		if !db.OneProcess() {
			now -= linger.Milliseconds()
		}
		_, err = tx.Exec(`DELETE FROM node WHERE `+tx.In("epoch", 1)+` AND dead = 1 AND dead_ms <= $2`, store.List(epochs), now)
		return err
	})
}

// Remove removes the row of an epoch that ends by itself, and was declared dead:
// every batch of it was answered.
func Remove(ctx context.Context, db *store.DB, epoch string) error {
	return db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`DELETE FROM node WHERE epoch = $1 AND dead = 1`, epoch)
		return err
	})
}
