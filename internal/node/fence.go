package node

import "tollgate/internal/store"

// Advance adds the fence of a batch: it moves the epoch's batch number
// from n-1 to n, which is a heartbeat too, and stores in moved whether it did.
// Not moved means that batch n has been committed before, or that the epoch is
// dead: Prove tells.
func Advance(b *store.Batch, moved *int64, epoch string, n int64) {
	b.Exec(moved, `UPDATE node SET batch = $1, beat = beat + 1 WHERE epoch = $2 AND batch = $3 AND dead = 0`, n, epoch, n-1)
}

// Fate is what an epoch's row tells of its last batch.
type Fate struct {
	Found bool // false: the row is gone, and nobody can tell
	Dead  bool
	Batch int64 // the last batch that was committed
}

// Prove adds the reading of an epoch's row and the commit of the transaction
// that b has begun. It writes the row before: what is read is only certain once
// the commit of a write behind it was answered, since a read may see a commit
// that no standby has yet.
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
