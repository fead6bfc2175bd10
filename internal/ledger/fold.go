package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	foldRows    = 1000 // the default of Ledger.foldRows
	foldChunk   = 500  // refusals of unknown callers
	limitsChunk = 20   // accounts
	onceLife    = 24 * time.Hour
	hitsChunk   = 5000
	hitsLife    = 10 * time.Minute
	// anonymousLife is how long refusals of unknown callers are kept.
	anonymousLife = 24 * time.Hour
)

// Fold deletes receipts older than the retention. It keeps a compact row of each charge
// (movement.Charge), and checksums, so that the audit can still prove the balance and the days. Fold
// also deletes old refusals of unknown callers, saved answers and hits of rate windows. It is one
// step of Run.
//
// On PostgreSQL, Fold folds whole partitions of receipts, without deleting rows, and drops them.
// Receipts outside of the partitions, and all receipts on SQLite, are deleted in chunks.
func (l *Ledger) Fold(ctx context.Context) error {
	cleared := clearedLimits{}
	if err := l.foldPartitions(ctx, cleared); err != nil {
		return fmt.Errorf("fold receipts: %w", err)
	}
	for {
		more, err := l.foldSome(ctx, cleared)
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
func (l *Ledger) foldPartitions(ctx context.Context, cleared clearedLimits) error {
	if err := requestlog.Extend(ctx, l.db, l.opts.Retention); err != nil {
		l.log.Error("ledger: no partition of the request log; trying again", "error", err)
	}
	for {
		for {
			more, err := l.foldOld(ctx, cleared)
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

// nextOld is the text after FROM in the statement of foldOld.
const nextOld = audit.Unfolded + ` ORDER BY account, seq, id LIMIT $1`

// foldOld folds the next receipts of the partition in ledger_receipt_old. It returns false if none is
// left. The partition's rows stay; ledger_folding records the last folded receipt.
func (l *Ledger) foldOld(ctx context.Context, cleared clearedLimits) (more bool, err error) {
	var chunk *foldedRows
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
		chunk, err = readFoldTx(tx, books.DayOf(now), nextOld, l.foldRows)
		if err != nil || chunk.lastID == "" {
			return err
		}
		more = true
		// The partition is dropped soon, so its receipts of today move back. Their ids are too old for any
		// other partition.
		if _, err := tx.Exec(`INSERT INTO ledger_receipt (`+requestlog.Columns()+`) SELECT `+requestlog.Columns()+`
			FROM ledger_receipt_old WHERE `+tx.In("id", 1), store.List(chunk.young)); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE ledger_folding SET after_account = $1, after_seq = $2, after_id = $3`,
			chunk.lastAccount, chunk.lastSeq, chunk.lastID); err != nil {
			return err
		}
		return chunk.foldTx(tx)
	})
	if err != nil {
		return false, err
	}
	return more, l.clearLimits(ctx, chunk, cleared)
}

// foldSome deletes the oldest receipts, up to foldRows of them. It returns false if no receipt is
// old enough. Receipts of many accounts are deleted together: neighbours in the table and in the
// index of ids, so that few pages change.
func (l *Ledger) foldSome(ctx context.Context, cleared clearedLimits) (more bool, err error) {
	table := requestlog.RowsTable(l.db.Dialect())
	var chunk *foldedRows
	err = l.db.Update(ctx, func(tx *store.Tx) error {
		more = false
		if err := tx.Lock("ledger_folding", "name", "current"); err != nil {
			return err
		}
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		// If the clock was ahead, receipts may have a future day. Such receipts stay.
		below, today := books.FoldBelow(now, l.opts.Retention), books.DayOf(now)
		chunk, err = readFoldTx(tx, today, table+` WHERE id < $1 AND day < $2 ORDER BY id LIMIT $3`, below, today, l.foldRows)
		if err != nil || chunk.lastID == "" {
			return err
		}
		more = len(chunk.ids) == l.foldRows
		if _, err := tx.Exec(`DELETE FROM `+table+` WHERE `+tx.In("id", 1), store.List(chunk.ids)); err != nil {
			return err
		}
		return chunk.foldTx(tx)
	})
	if err != nil {
		return false, err
	}
	return more, l.clearLimits(ctx, chunk, cleared)
}

// foldedRows are the receipts of one transaction of Fold.
type foldedRows struct {
	ids, young          []string // young: receipts of today, not folded
	lastAccount, lastID string   // of the last receipt, also if it is of today
	lastSeq             int64
	accounts            map[string]*foldedAccount
	marks               map[int64]uint64 // by series
}

// foldedAccount are the receipts of an account in a transaction of Fold.
type foldedAccount struct {
	audit.Folded
	requestlog.Deleted
	newestDay int64 // of admitted requests
}

// readFoldTx reads receipts. from is the rest of the statement after FROM.
func readFoldTx(tx *store.Tx, today int64, from string, args ...any) (*foldedRows, error) {
	chunk := &foldedRows{accounts: map[string]*foldedAccount{}, marks: map[int64]uint64{}}
	err := tx.Each(func(row store.Row) error {
		var r receiptFigures
		var seq, endedMS int64
		var balance money.Amount
		var job string
		if err := row.Scan(append(r.dest(), &r.series.Account, &seq, &balance, &endedMS, &job)...); err != nil {
			return err
		}
		chunk.lastAccount, chunk.lastSeq, chunk.lastID = r.series.Account, seq, r.id
		if r.day.Day >= today {
			chunk.young = append(chunk.young, r.id)
			return nil
		}
		chunk.ids = append(chunk.ids, r.id)
		a := chunk.accounts[r.series.Account]
		if a == nil {
			a = &foldedAccount{Deleted: requestlog.Deleted{First: seq}}
			chunk.accounts[r.series.Account] = a
		}
		a.Keys, a.First, a.Last = append(a.Keys, r.series.Key), min(a.First, seq), max(a.Last, seq)
		if r.outcome == Refused { // counts in no sum
			return nil
		}
		a.newestDay = max(a.newestDay, r.day.Day)
		chunk.marks[books.SeriesID(r.series)] += r.mark()
		a.Move(seq, balance, -r.cost)
		if r.cost > 0 {
			a.Charges = append(a.Charges, movement.NewCharge(r.id, job, audit.Charge{
				Seq: seq, Model: r.series.Model, Amount: r.cost, Balance: balance, EndedMS: endedMS}))
		}
		return nil
	}, `SELECT `+figureColumns+`, account, seq, balance_nano, ended_ms, job FROM `+from, args...)
	return chunk, err
}

// foldTx keeps the charges and checksums of deleted receipts, and deletes their segments.
func (c *foldedRows) foldTx(tx *store.Tx) error {
	folded := map[string]*audit.Folded{}
	for account, a := range c.accounts {
		if a.Moved() {
			folded[account] = &a.Folded
		}
	}
	if err := movement.ArchiveTx(tx, folded); err != nil {
		return err
	}
	if err := foldSeriesTx(tx, c.marks); err != nil {
		return err
	}
	for _, account := range slices.Sorted(maps.Keys(c.accounts)) {
		if err := requestlog.TrimIndexTx(tx, account, c.accounts[account].Deleted); err != nil {
			return err
		}
	}
	return nil
}

// clearedLimits has, by account, the newest day whose sums of limits were deleted by this Fold. The
// receipts of a day are in many chunks, but its sums are deleted only once.
type clearedLimits map[string]int64

// clearLimits deletes the sums of limits up to the newest days of the accounts' deleted receipts. It
// locks few accounts at a time, because their requests wait.
func (l *Ledger) clearLimits(ctx context.Context, chunk *foldedRows, cleared clearedLimits) error {
	var left []string
	for account, a := range chunk.accounts {
		if cleared[account] < a.newestDay {
			left = append(left, account)
		}
	}
	slices.Sort(left)
	for accounts := range slices.Chunk(left, limitsChunk) {
		if err := l.db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.Lock("ledger_account", "id", accounts...); err != nil {
				return err
			}
			for _, account := range accounts {
				if err := deleteLimitsTx(tx, account, chunk.accounts[account].newestDay); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		for _, account := range accounts {
			cleared[account] = chunk.accounts[account].newestDay
		}
	}
	return nil
}

// deleteLimitsTx deletes the sums of an account's keys and free quotas up to a day, except for days
// with open holds. The first receipts of the last day are deleted already; others may still exist. The
// account must be locked.
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

const figureColumns = `id, key, model, line, endpoint, day, unit, outcome, cost_nano, line_cost_nano, prompt_tokens, cached_tokens,
	completion_tokens, quantity`

// receiptFigures are the columns of a receipt that count in its day.
type receiptFigures struct {
	id       string
	series   books.UsageSeries
	day      books.Day
	outcome  Outcome
	cost     money.Amount
	lineCost money.Amount
	tokens   Tokens
	quantity int64
}

// dest returns the destinations of figureColumns.
func (r *receiptFigures) dest() []any {
	return []any{&r.id, &r.series.Key, &r.series.Model, &r.series.Line, &r.series.Endpoint, &r.day.Day, (*string)(&r.day.Unit),
		(*int64)(&r.outcome), (*int64)(&r.cost), (*int64)(&r.lineCost), &r.tokens.Prompt, &r.tokens.Cached, &r.tokens.Completion,
		&r.quantity}
}

func (r *receiptFigures) figures() books.DayFigures {
	return books.FiguresOf(r.outcome, r.cost, r.lineCost, r.tokens, r.quantity)
}

var updateFolded = store.Update("ledger_series", "folded bigint, id bigint")

// foldSeriesTx records the marks of deleted receipts with their series, so that the days can be
// proved without these receipts.
func foldSeriesTx(tx *store.Tx, marks map[int64]uint64) error {
	ids := make([]string, 0, len(marks))
	for id := range marks {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	rows := updateFolded.Make(len(marks))
	if err := tx.Each(func(row store.Row) error {
		var id, folded int64
		err := row.Scan(&id, &folded)
		rows = append(rows, int64(uint64(folded)+marks[id]), id)
		return err
	}, `SELECT id, folded FROM ledger_series WHERE `+tx.InNumbers("id", 1), store.List(ids)); err != nil {
		return fmt.Errorf("read series: %w", err)
	}
	if len(rows) != 2*len(marks) {
		return fmt.Errorf("%d series of deleted receipts are missing", len(marks)-len(rows)/2)
	}
	b := tx.Batch()
	b.Rows(updateFolded, rows)
	return tx.Run(b)
}

func (r *receiptFigures) mark() uint64 { return audit.DayMark(r.day, r.figures()) }
