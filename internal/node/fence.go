package node

import "tollgate/internal/store"

// Advance adds the fence of a batch: it increases the epoch's batch number from n-1 to n and stores
// in moved whether the number changed. The change also counts as a heartbeat. If the number did not
// change, batch n was committed before or the epoch is dead; Prove tells which.
//
// The number is a row of its own, because PostgreSQL keeps each version of a changed row while any
// snapshot is open, and each change walks over them. The lock on the node's row makes Fence wait for
// the batch, and makes no version.
func Advance(b *store.Batch, moved *int64, epoch string, n int64) {
	b.ExecShared(moved, `INSERT INTO node_batch (epoch, batch) SELECT epoch, CAST($1 AS BIGINT) FROM node
		WHERE epoch = $2 AND dead = 0 AND ($3 = 0 OR EXISTS (SELECT 1 FROM node_batch b WHERE b.epoch = $2 AND b.batch = $3))`,
		`ON CONFLICT (epoch, batch) DO NOTHING`, n, epoch, n-1)
	if n%forgetEvery == 0 {
		b.Exec(nil, `DELETE FROM node_batch WHERE epoch = $1 AND batch < $2`, epoch, n-1)
	}
}

// forgetEvery is the number of batches after which all but the last two rows are deleted. A deletion
// with each batch would find the deleted rows again while a snapshot is open.
const forgetEvery = 1000

// lastBatch is the number of the epoch's last committed batch.
const lastBatch = `COALESCE((SELECT MAX(b.batch) FROM node_batch b WHERE b.epoch = node.epoch), 0)`

// allBeats grows with each heartbeat and batch.
const allBeats = `beat + ` + lastBatch

// Fate is the state of an epoch's row after its last batch.
type Fate struct {
	Found bool // false if the row is gone, so that the outcome is unknown
	Dead  bool
	Batch int64 // the last committed batch
}

// Prove adds a read of an epoch's row to b. It also writes the row, because a read alone may return
// a commit that no standby has yet; once the later write is committed, the result is certain.
func Prove(b *store.Batch, fate *Fate, epoch string) {
	b.Exec(nil, `UPDATE node SET beat = beat WHERE epoch = $1`, epoch)
	b.Query(func(row store.Row) error {
		var dead int64
		fate.Found = true
		err := row.Scan(&fate.Batch, &dead)
		fate.Dead = dead != 0
		return err
	}, `SELECT `+lastBatch+`, dead FROM node WHERE epoch = $1`, epoch)
	b.Commit()
}
