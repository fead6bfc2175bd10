package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"tollgate/internal/store"
)

// ErrFenced means that another node has declared this node dead: its work belongs to other nodes
// now, and it must not write under its epoch any more.
var ErrFenced = errors.New("this node was declared dead by another one")

// Register inserts the row of a new epoch, with the host name if known. It returns
// store.ErrNewerSchema if the database needs a newer binary.
func Register(ctx context.Context, db *store.DB, epoch string) error {
	return register(ctx, db, epoch, nil)
}

// register is Register with digests of the node's settings.
func register(ctx context.Context, db *store.DB, epoch string, settings Digests) error {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	newest, err := db.NewestMigration()
	if err != nil {
		return err
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.CheckCompatible(); err != nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO node (epoch, beat, dead, started_ms, host, schema) VALUES ($1, 0, 0, $2, $3, $4)`,
			epoch, now, host, newest)
		if err != nil {
			return err
		}
		return registerSettingsTx(tx, epoch, settings)
	})
}

// OldestTx returns the lowest store.DB.NewestMigration of the living nodes, or math.MaxInt64 if
// no node lives.
func OldestTx(tx *store.Tx) (oldest int64, err error) {
	err = tx.QueryRow(`SELECT COALESCE(MIN(schema), $1) FROM node WHERE dead = 0`, int64(math.MaxInt64)).Scan(&oldest)
	return oldest, err
}

// Heartbeat writes a heartbeat of an epoch. It returns ErrFenced if the epoch is dead.
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
	Beat  int64 // increases with each heartbeat and batch
	Dead  bool
}

// List returns the rows of all epochs in order: the living and the recently dead.
func List(ctx context.Context, db *store.DB) ([]Record, error) {
	rows, err := store.Read(ctx, db, listTx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return rows, nil
}

func listTx(tx *store.Tx) ([]Record, error) {
	return store.Collect(tx, func(row store.Row) (r Record, err error) {
		err = row.Scan(&r.Epoch, &r.Beat, &r.Dead)
		return r, err
	}, `SELECT epoch, `+allBeats+`, dead FROM node ORDER BY epoch`)
}

// Fence declares an epoch dead unless its heartbeat has changed from beat, and reports whether the
// epoch is dead now. It waits for running batches of the epoch; no later one succeeds.
func Fence(ctx context.Context, db *store.DB, epoch string, beat int64) (bool, error) {
	var changed int64
	err := db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		// The lock waits for running batches, so that the next statement sees their rows.
		if err = tx.Lock("node", "epoch", epoch); err != nil {
			return err
		}
		changed, err = tx.Exec(`UPDATE node SET dead = 1, dead_ms = CASE WHEN dead = 1 THEN dead_ms ELSE $1 END
			WHERE epoch = $2 AND `+allBeats+` = $3`, now, epoch, beat)
		return err
	})
	return changed > 0, err
}

// deadRetention is the retention of a dead epoch's row on PostgreSQL: longer than any node waits to
// learn the outcome of its last batch. On SQLite no such node can exist.
const deadRetention = 24 * time.Hour

// Forget deletes the rows of epochs that have been dead for deadRetention. The epochs must have no work
// left to take over. Forget runs one transaction for all epochs, because a slow sweep delays
// DeclareDead.
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
			now -= deadRetention.Milliseconds()
		}
		if _, err = tx.Exec(`DELETE FROM node WHERE `+tx.In("epoch", 1)+` AND dead = 1 AND dead_ms <= $2`, store.List(epochs), now); err != nil {
			return err
		}
		for _, table := range []string{"node_batch", "node_settings"} {
			_, err = tx.Exec(`DELETE FROM `+table+` WHERE `+tx.In("epoch", 1)+` AND epoch NOT IN (SELECT epoch FROM node)`, store.List(epochs))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Remove deletes the row of an epoch that ended normally, with every batch confirmed.
func Remove(ctx context.Context, db *store.DB, epoch string) error {
	return db.Update(ctx, func(tx *store.Tx) error {
		if n, err := tx.Exec(`DELETE FROM node WHERE epoch = $1 AND dead = 1`, epoch); err != nil || n == 0 {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM node_batch WHERE epoch = $1`, epoch); err != nil {
			return err
		}
		_, err := tx.Exec(`DELETE FROM node_settings WHERE epoch = $1`, epoch)
		return err
	})
}
