package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Bounds of one transaction of Fold, and how long it keeps saved answers and hits of rate windows.
const (
	foldChunk = 500
	onceLife  = 24 * time.Hour
	hitsChunk = 5000
	hitsLife  = 10 * time.Minute
	// anonymousLife is how long refusals of unknown callers are kept.
	anonymousLife = 24 * time.Hour
)

// Fold deletes receipts older than the retention. It keeps a compact row of each charge
// (movement.Charge), and checksums, so that the audit can still prove the balance and the days. Fold
// also deletes old refusals of unknown callers, saved answers and hits of rate windows. It is one
// step of Run.
//
// On PostgreSQL, Fold folds whole partitions of receipts, without deleting rows, and drops them. Only
// receipts outside of the partitions are deleted, as all receipts on SQLite are: in chunks, account by
// account.
func (l *Ledger) Fold(ctx context.Context) error {
	if err := l.foldPartitions(ctx); err != nil {
		return fmt.Errorf("fold receipts: %w", err)
	}
	for {
		more, err := l.foldSome(ctx)
		if err != nil {
			return fmt.Errorf("fold receipts: %w", err)
		}
		if !more {
			break
		}
	}
	for {
		more, err := l.deleteAnonymous(ctx)
		if err != nil {
			return fmt.Errorf("delete refusals of unknown callers: %w", err)
		}
		if !more {
			break
		}
	}
	err := l.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM ledger_once WHERE created_ms < $1`, now-onceLife.Milliseconds())
		return err
	})
	if err != nil {
		return err
	}
	var after hitID
	for {
		next, more, err := l.deleteHits(ctx, after)
		if err != nil {
			return fmt.Errorf("delete old hits of rate windows: %w", err)
		}
		if !more {
			return nil
		}
		after = next
	}
}

// hitID identifies a row of ledger_hit.
type hitID struct {
	key string
	n   int64
}

// deleteHits deletes the old rows among the next hitsChunk rows of ledger_hit, and returns the last of
// these rows. more is false at the end of the table. deleteHits follows the primary key, because an
// index on the time would slow down every admission.
func (l *Ledger) deleteHits(ctx context.Context, after hitID) (last hitID, more bool, err error) {
	err = l.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		err = tx.QueryRow(`SELECT key, n FROM ledger_hit WHERE (key, n) > ($1, $2) ORDER BY key, n LIMIT 1 OFFSET $3`,
			after.key, after.n, hitsChunk-1).Scan(&last.key, &last.n)
		more = err == nil
		before := now - hitsLife.Milliseconds()
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.Exec(`DELETE FROM ledger_hit WHERE (key, n) > ($1, $2) AND at_ms < $3`, after.key, after.n, before)
		case err == nil:
			_, err = tx.Exec(`DELETE FROM ledger_hit WHERE (key, n) > ($1, $2) AND (key, n) <= ($3, $4) AND at_ms < $5`,
				after.key, after.n, last.key, last.n, before)
		}
		return err
	})
	return last, more, err
}

// oldAnonymous uses the index of the accounts' requests: refusals without an account come before
// all others. The index of ids would read the requests of all accounts.
const oldAnonymous = `SELECT id FROM ledger_receipt WHERE (account, seq, id) < ('', 0, $1) AND outcome = $2
	ORDER BY account, seq, id LIMIT $3`

// deleteAnonymous deletes a chunk of old refusals of unknown callers. It returns false if none is
// left. These refusals belong to no account and are in no sum.
func (l *Ledger) deleteAnonymous(ctx context.Context) (more bool, err error) {
	err = l.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		if err := tx.ByIndex(); err != nil {
			return err
		}
		n, err := tx.Exec(`DELETE FROM ledger_receipt WHERE id IN (`+oldAnonymous+`)`,
			id.At("req_", time.UnixMilli(now-anonymousLife.Milliseconds())), int64(Refused), foldChunk)
		more = n == foldChunk
		return err
	})
	return more, err
}

// foldPartitions creates the next partitions of receipts, and folds and drops the expired ones.
func (l *Ledger) foldPartitions(ctx context.Context) error {
	if err := requestlog.Extend(ctx, l.db, l.opts.Retention); err != nil {
		l.log.Error("ledger: no partition of the request log; trying again", "error", err)
	}
	for {
		for {
			more, err := l.foldOld(ctx)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
		if err := requestlog.DropOld(ctx, l.db); err != nil {
			return err
		}
		if moved, err := requestlog.Retire(ctx, l.db, l.opts.Retention); err != nil || !moved {
			return err
		}
	}
}

// foldOld folds the next receipts of the partition in ledger_receipt_old. It returns false if none is
// left. The partition's rows stay; ledger_folding has the last one folded.
func (l *Ledger) foldOld(ctx context.Context) (more bool, err error) {
	err = l.db.Update(ctx, func(tx *store.Tx) error {
		more = false
		if err := tx.Lock("ledger_folding", "name", "current"); err != nil {
			return err
		}
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		if err := tx.ByIndex(); err != nil {
			return err
		}
		var account string
		err = tx.QueryRow(`SELECT account FROM ` + audit.Unfolded + ` ORDER BY account, seq, id LIMIT 1`).Scan(&account)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		more = true
		if err := lockForFoldTx(tx, account); err != nil {
			return err
		}
		chunk, err := readFoldTx(tx, books.DayOf(now), audit.Unfolded+` AND account = $1 ORDER BY seq, id LIMIT $2`, account, foldChunk)
		if err != nil {
			return err
		}
		if err := chunk.foldTx(tx, account); err != nil {
			return err
		}
		// The partition is dropped soon, so its receipts of today move back. Their ids are too old for any
		// other partition.
		if _, err := tx.Exec(`INSERT INTO ledger_receipt (`+requestlog.Columns()+`) SELECT `+requestlog.Columns()+`
			FROM ledger_receipt_old WHERE `+tx.In("id", 1), store.List(chunk.young)); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE ledger_folding SET after_account = $1, after_seq = $2, after_id = $3`,
			account, chunk.lastSeq, chunk.lastID); err != nil {
			return err
		}
		return requestlog.TrimIndexTx(tx, account, chunk.keys, chunk.newestSeq)
	})
	return more, err
}

// lockForFoldTx locks an account. The account of refusals of unknown callers, and an account whose row
// is gone, has no lock.
func lockForFoldTx(tx *store.Tx, account string) error {
	if account == "" {
		return nil
	}
	_, _, err := lockAccountTx(tx, account)
	if errors.Is(err, ErrNoAccount) {
		return nil
	}
	return err
}

// foldSome deletes a chunk of receipts of the account with the oldest receipt. It returns false if
// no receipt is old enough.
func (l *Ledger) foldSome(ctx context.Context) (bool, error) {
	more := false
	table := requestlog.RowsTable(l.db.Dialect())
	err := l.db.Update(ctx, func(tx *store.Tx) error {
		more = false
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		// If the clock was ahead, receipts may have a future day. Such receipts stay.
		below, today := books.FoldBelow(now, l.opts.Retention), books.DayOf(now)
		var account string
		err = tx.QueryRow(`SELECT COALESCE((SELECT account FROM `+table+` WHERE id < $1 AND day < $2 ORDER BY id LIMIT 1), '-')`,
			below, today).Scan(&account)
		if err != nil || account == "-" {
			return err
		}
		more = true
		if err := lockForFoldTx(tx, account); err != nil {
			return err
		}
		chunk, err := readFoldTx(tx, today, table+` WHERE account = $1 AND id < $2 AND day < $3 ORDER BY seq LIMIT $4`,
			account, below, today, foldChunk)
		if err != nil {
			return err
		}
		if err := chunk.foldTx(tx, account); err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM `+table+` WHERE `+tx.In("id", 1), store.List(chunk.ids))
		if err != nil {
			return err
		}
		return requestlog.TrimIndexTx(tx, account, chunk.keys, chunk.newestSeq)
	})
	return more, err
}

// foldedRows are the receipts of one transaction of Fold.
type foldedRows struct {
	ids       []string
	young     []string // receipts of today, which are not folded
	lastSeq   int64    // of the last receipt, also if it is of today
	lastID    string
	keys      []string
	newestDay int64            // of requests that were not refused
	newestSeq int64            // the newest number in the account's log
	chain     audit.Chain      // proves the running balance without the rows
	charges   []audit.Charge   // the compact rows
	marks     map[int64]uint64 // by series
}

// readFoldTx reads the receipts that from selects, which is what follows FROM. The first argument is
// the account.
func readFoldTx(tx *store.Tx, today int64, from, account string, args ...any) (*foldedRows, error) {
	chunk := &foldedRows{marks: map[int64]uint64{}}
	err := tx.Each(func(row store.Row) error {
		r := receiptFigures{series: books.UsageSeries{Account: account}}
		var seq, endedMS int64
		var balance money.Amount
		var job string
		if err := row.Scan(append(r.dest(), &seq, &balance, &endedMS, &job)...); err != nil {
			return err
		}
		chunk.lastSeq, chunk.lastID = seq, r.id
		if r.day.Day >= today {
			chunk.young = append(chunk.young, r.id)
			return nil
		}
		chunk.ids, chunk.newestSeq = append(chunk.ids, r.id), seq
		chunk.keys = append(chunk.keys, r.series.Key)
		if r.outcome == Refused { // counts in no sum
			return nil
		}
		chunk.newestDay = max(chunk.newestDay, r.day.Day)
		chunk.marks[books.SeriesID(r.series)] += r.mark()
		chunk.chain.Move(seq, balance, -r.cost)
		if r.cost > 0 {
			chunk.charges = append(chunk.charges, movement.NewCharge(r.id, job, audit.Charge{
				Seq: seq, Model: r.series.Model, Amount: r.cost, Balance: balance, EndedMS: endedMS}))
		}
		return nil
	}, `SELECT `+figureColumns+`, seq, balance_nano, ended_ms, job FROM `+from, append([]any{account}, args...)...)
	return chunk, err
}

// foldTx keeps the charges and checksums of the receipts.
func (c *foldedRows) foldTx(tx *store.Tx, account string) error {
	if len(c.ids) == 0 {
		return nil
	}
	if err := c.chain.RecordTx(tx, account); err != nil {
		return err
	}
	if err := movement.ArchiveTx(tx, account, c.charges); err != nil {
		return err
	}
	if err := foldSeriesTx(tx, c.marks); err != nil {
		return err
	}
	return deleteLimitsTx(tx, account, c.newestDay)
}

// deleteLimitsTx deletes the sums of an account's keys and free quotas up to a day, except for days
// with open holds. The receipts of these days are being deleted.
func deleteLimitsTx(tx *store.Tx, account string, last int64) error {
	for _, subjects := range []string{
		`subject IN (SELECT id FROM ledger_key WHERE account = $1)`,
		`subject > $1 || '/' AND subject < $1 || '0'`, // FreeSubject; 0 is the character after the slash
	} {
		if _, err := tx.Exec(`DELETE FROM ledger_limit WHERE `+subjects+` AND day <= $2
			AND NOT EXISTS (SELECT 1 FROM ledger_hold h WHERE h.account = $1 AND h.day = ledger_limit.day)`, account, last); err != nil {
			return err
		}
	}
	return nil
}
