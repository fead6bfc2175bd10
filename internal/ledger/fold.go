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

// Fold deletes receipts older than the retention, account by account. It keeps their sums in
// ledger_folded, a compact row of each charge (movement.Charge), and a monthly entry with the sum
// of the charges, so that the audit can still prove the balance. Fold also deletes old refusals of
// unknown callers, saved answers and hits of rate windows. It is one step of Run.
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

type foldKey struct{ key, model string }

// foldMonth is the sum of a month's charges, with the number and balance of the newest.
type foldMonth struct {
	seq, createdMS int64
	cost, balance  money.Amount
}

// foldedRows are the receipts of one transaction of Fold and their sums.
type foldedRows struct {
	ids       []string
	totals    map[foldKey]*Totals
	months    map[int64]*foldMonth
	keys      []string
	newestDay int64
	newestSeq int64            // the newest number in the account's log
	chain     audit.Chain      // proves the running balance without the rows
	charges   []audit.Charge   // the compact rows
	days      days             // of receipts that a former version did not add to their days
	marks     map[int64]uint64 // by series
}

func readFoldTx(tx *store.Tx, account, below string, today int64) (*foldedRows, error) {
	rows, err := tx.Query(`SELECT `+figureColumns+`, dated, seq, balance_nano, ended_ms, job FROM ledger_receipt
		WHERE account = $1 AND id < $2 AND day < $3 ORDER BY seq LIMIT $4`, account, below, today, foldChunk)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	chunk := &foldedRows{totals: map[foldKey]*Totals{}, months: map[int64]*foldMonth{}, days: newDays(), marks: map[int64]uint64{}}
	for rows.Next() {
		var r receiptFigures
		var m foldMonth
		var dated int64
		var job string
		if err := rows.Scan(append(r.dest(), &dated, &m.seq, &m.balance, &m.createdMS, &job)...); err != nil {
			return nil, err
		}
		r.series.Account = account
		chunk.ids, chunk.newestDay, chunk.newestSeq = append(chunk.ids, r.id), max(chunk.newestDay, r.day), m.seq
		chunk.keys = append(chunk.keys, r.series.Key)
		if r.outcome == Refused {
			continue
		}
		chunk.count(&r, dated != 0)
		chunk.chain.Move(m.seq, m.balance, -r.cost)
		if r.cost > 0 {
			chunk.month(r.day, m, r.cost)
			chunk.charges = append(chunk.charges, movement.NewCharge(r.id, job, audit.Charge{
				Seq: m.seq, Model: r.series.Model, Amount: r.cost, Balance: m.balance, EndedMS: m.createdMS}))
		}
	}
	return chunk, rows.Err()
}

// count adds a receipt to the sums.
func (c *foldedRows) count(r *receiptFigures, dated bool) {
	k := foldKey{r.series.Key, r.series.Model}
	if c.totals[k] == nil {
		c.totals[k] = &Totals{}
	}
	c.totals[k].Count(r.outcome, r.cost, r.tokens)
	if !dated {
		c.days.add(r.series, r.day, r.figures())
	}
	c.marks[books.SeriesID(r.series)] += r.mark()
}

// month adds a charge to its month.
func (c *foldedRows) month(day int64, m foldMonth, cost money.Amount) {
	at := time.Unix(day*24*60*60, 0).UTC()
	month := int64(at.Year())*12 + int64(at.Month()) - 1
	if sum := c.months[month]; sum != nil {
		m.cost = sum.cost
	}
	m.cost = money.Plus(m.cost, cost)
	c.months[month] = &m
}

func (c *foldedRows) foldTx(tx *store.Tx, account string) error {
	for k, t := range c.totals {
		_, err := tx.Exec(`INSERT INTO ledger_folded (account, key, model, cost_nano, requests, billed, failed, prompt_tokens,
			completion_tokens, images)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			ON CONFLICT (account, key, model) DO UPDATE SET `+
			store.Add("ledger_folded", "cost_nano", "requests", "billed", "failed", "prompt_tokens", "completion_tokens", "images"),
			account, k.key, k.model, int64(t.Cost), t.Requests, t.Billed, t.Failed, t.Prompt, t.Completion, t.Images)
		if err != nil {
			return err
		}
	}
	if err := c.chain.RecordTx(tx, account); err != nil {
		return err
	}
	if err := movement.ArchiveTx(tx, account, c.charges); err != nil {
		return err
	}
	if err := c.days.writeTx(tx); err != nil {
		return err
	}
	if err := foldSeriesTx(tx, c.marks); err != nil {
		return err
	}
	for month, m := range c.months {
		entry := fmt.Sprintf("ent_%s_%04d%02d", account, month/12, month%12+1)
		// A month's entry of a former version covers charges without a kept row (amount_nano
		// differs from -kept_nano) and keeps its number, balance and time.
		_, err := tx.Exec(`INSERT INTO ledger_entry (id, account, seq, kind, month, amount_nano, balance_nano, note, created_ms, kept_nano)
			VALUES ($1, $2, $3, 'charges', $4, $5, $6, '', $7, $8)
			ON CONFLICT (id) DO UPDATE SET amount_nano = ledger_entry.amount_nano + excluded.amount_nano,
			`+store.Add("ledger_entry", "kept_nano")+`,
			seq = CASE WHEN ledger_entry.amount_nano = -ledger_entry.kept_nano THEN excluded.seq ELSE ledger_entry.seq END,
			balance_nano = CASE WHEN ledger_entry.amount_nano = -ledger_entry.kept_nano THEN excluded.balance_nano
				ELSE ledger_entry.balance_nano END,
			created_ms = CASE WHEN ledger_entry.amount_nano = -ledger_entry.kept_nano THEN excluded.created_ms
				ELSE ledger_entry.created_ms END`,
			entry, account, m.seq, month, -int64(m.cost), int64(m.balance), m.createdMS, int64(m.cost))
		if err != nil {
			return err
		}
	}
	if err := deleteDaysTx(tx, account, c.newestDay); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM ledger_receipt WHERE `+tx.In("id", 1), store.List(c.ids)); err != nil {
		return err
	}
	return requestlog.TrimIndexTx(tx, account, c.keys, c.newestSeq)
}
