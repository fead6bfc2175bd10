package node

import "tollgate/internal/store"

// Advance adds the fence of a batch: it increases the epoch's batch number from n-1 to n and stores
// in moved whether the number changed. The change also counts as a heartbeat. If the number did not
// change, batch n was committed before or the epoch is dead; Prove tells which.
func Advance(b *store.Batch, moved *int64, epoch string, n int64) {
	b.Exec(moved, `UPDATE node SET batch = $1, beat = beat + 1 WHERE epoch = $2 AND batch = $3 AND dead = 0`, n, epoch, n-1)
}

// Fate is the state of an epoch's row after its last batch.
type Fate struct {
	Found bool // false if the row is gone, so that the outcome is unknown
	Dead  bool
	Batch int64 // the last committed batch
}

// Prove adds a read of an epoch's row to b. It also writes the row, because a read alone may return
// a commit that no standby has yet; once the later write is committed, the result is certain.
func Prove(b *store.Batch, fate *Fate, epoch string) {
	b.Exec(nil, `UPDATE node SET batch = batch WHERE epoch = $1`, epoch)
	b.Query(func(row store.Row) error {
		var dead int64
		fate.Found = true
		err := row.Scan(&fate.Batch, &dead)
		fate.Dead = dead != 0
		return err
	}, `SELECT batch, dead FROM node WHERE epoch = $1`, epoch)
	b.Commit()
}
