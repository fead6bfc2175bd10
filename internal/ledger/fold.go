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

// Fold deletes receipts older than the retention, account by account. It keeps a compact row of each
// charge (movement.Charge), and checksums, so that the audit can still prove the balance and the
// days. Fold also deletes old refusals of unknown callers, saved answers and hits of rate windows.
// It is one step of Run.
func (l *Ledger) Fold(ctx context.Context) error {
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

// foldSome deletes a chunk of receipts of the account with the oldest receipt. It returns false if
// no receipt is old enough.
func (l *Ledger) foldSome(ctx context.Context) (bool, error) {
	more := false
	err := l.db.Update(ctx, func(tx *store.Tx) error {
		more = false
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		// If the clock was ahead, receipts may have a future day. Such receipts stay.
		below, today := books.FoldBelow(now, l.opts.Retention), books.DayOf(now)
		var account string
		err = tx.QueryRow(`SELECT COALESCE((SELECT account FROM ledger_receipt WHERE id < $1 AND day < $2 ORDER BY id LIMIT 1), '-')`,
			below, today).Scan(&account)
		if err != nil || account == "-" {
			return err
		}
		more = true
		if account != "" {
			if _, _, err := lockAccountTx(tx, account); err != nil && !errors.Is(err, ErrNoAccount) {
				return err
			}
		}
		chunk, err := readFoldTx(tx, account, below, today)
		if err != nil {
			return err
		}
		return chunk.foldTx(tx, account)
	})
	return more, err
}

// foldedRows are the receipts of one transaction of Fold.
type foldedRows struct {
	ids       []string
	keys      []string
	newestDay int64
	newestSeq int64            // the newest number in the account's log
	chain     audit.Chain      // proves the running balance without the rows
	charges   []audit.Charge   // the compact rows
	marks     map[int64]uint64 // by series
}

func readFoldTx(tx *store.Tx, account, below string, today int64) (*foldedRows, error) {
	chunk := &foldedRows{marks: map[int64]uint64{}}
	err := tx.Each(func(row store.Row) error {
		r := receiptFigures{series: books.UsageSeries{Account: account}}
		var seq, endedMS int64
		var balance money.Amount
		var job string
		if err := row.Scan(append(r.dest(), &seq, &balance, &endedMS, &job)...); err != nil {
			return err
		}
		chunk.ids, chunk.newestDay, chunk.newestSeq = append(chunk.ids, r.id), max(chunk.newestDay, r.day), seq
		chunk.keys = append(chunk.keys, r.series.Key)
		if r.outcome == Refused {
			return nil
		}
		chunk.marks[books.SeriesID(r.series)] += r.mark()
		chunk.chain.Move(seq, balance, -r.cost)
		if r.cost > 0 {
			chunk.charges = append(chunk.charges, movement.NewCharge(r.id, job, audit.Charge{
				Seq: seq, Model: r.series.Model, Amount: r.cost, Balance: balance, EndedMS: endedMS}))
		}
		return nil
	}, `SELECT `+figureColumns+`, seq, balance_nano, ended_ms, job FROM ledger_receipt
		WHERE account = $1 AND id < $2 AND day < $3 ORDER BY seq LIMIT $4`, account, below, today, foldChunk)
	return chunk, err
}

func (c *foldedRows) foldTx(tx *store.Tx, account string) error {
	if err := c.chain.RecordTx(tx, account); err != nil {
		return err
	}
	if err := movement.ArchiveTx(tx, account, c.charges); err != nil {
		return err
	}
	if err := foldSeriesTx(tx, c.marks); err != nil {
		return err
	}
	if err := deleteLimitsTx(tx, account, c.newestDay); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM ledger_receipt WHERE `+tx.In("id", 1), store.List(c.ids)); err != nil {
		return err
	}
	return requestlog.TrimIndexTx(tx, account, c.keys, c.newestSeq)
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
