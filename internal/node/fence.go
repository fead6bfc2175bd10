package node

import "tollgate/internal/store"

// BatchID names a batch of an epoch. The batches of a worker have the numbers 1, 2, 3, ...
type BatchID struct {
	Worker int
	Number int64
}

// Advance adds the fence of batch n to b: an insert of the batch's row, which also counts as a
// heartbeat. after is an earlier committed batch of any worker of the epoch; its Number is 0 if there
// was none. moved gets 1, or 0 if no row was inserted because batch n was committed before, the
// epoch is dead, or the database has lost after. ConfirmState finds out the cause.
//
// Each batch has a row of its own, because PostgreSQL keeps each version of a changed row while any
// snapshot is open, and each update reads all versions. ExecShared locks the node's row, so that Fence
// waits for the batch; a lock creates no version.
func Advance(b *store.Batch, moved *int64, epoch string, n, after BatchID) {
	b.ExecShared(moved, `INSERT INTO node_batch (epoch, worker, batch) SELECT epoch, CAST($1 AS BIGINT), CAST($2 AS BIGINT) FROM node
		WHERE epoch = $3 AND dead = 0
		AND ($5 = 0 OR EXISTS (SELECT 1 FROM node_batch b WHERE b.epoch = $3 AND b.worker = $4 AND b.batch >= $5))`,
		`ON CONFLICT (epoch, worker, batch) DO NOTHING`, n.Worker, n.Number, epoch, after.Worker, after.Number)
	if n.Number%forgetEvery == 0 {
		b.Exec(nil, `DELETE FROM node_batch WHERE epoch = $1 AND worker = $2 AND batch < $3`, epoch, n.Worker, n.Number-1)
	}
}

// forgetEvery is the number of batches after which all but the last two rows are deleted. A deletion
// with each batch would find the deleted rows again while a snapshot is open.
const forgetEvery = 1000

// allBeats is the SQL of Record.Beat: the heartbeats plus the last batch numbers of the workers.
const allBeats = `beat + CAST(COALESCE((SELECT SUM(w.last)
	FROM (SELECT MAX(b.batch) AS last FROM node_batch b WHERE b.epoch = node.epoch GROUP BY b.worker) w), 0) AS BIGINT)`

// EpochState is the state of an epoch's row.
type EpochState struct {
	Found bool // false if the row is gone, so that the outcome is unknown
	Dead  bool
	Batch int64 // the worker's last committed batch
}

// ConfirmState adds a read of an epoch's row to b, and the commit. It also writes the row, because a
// read alone may return a commit that no standby has yet. Once the write is committed, state is
// certain.
func ConfirmState(b *store.Batch, state *EpochState, epoch string, worker int) {
	b.Exec(nil, `UPDATE node SET beat = beat WHERE epoch = $1`, epoch)
	b.Query(func(row store.Row) error {
		var dead int64
		state.Found = true
		err := row.Scan(&state.Batch, &dead)
		state.Dead = dead != 0
		return err
	}, `SELECT COALESCE((SELECT MAX(b.batch) FROM node_batch b WHERE b.epoch = $1 AND b.worker = $2), 0), dead
		FROM node WHERE epoch = $1`, epoch, worker)
	b.Commit()
}
