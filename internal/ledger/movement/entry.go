// Package movement owns the list of an account's money movements: credits, take-backs and every
// single charge. Charges with deleted receipts are kept for good in a compact form.
//
// Invariants: the transaction that deletes a receipt writes the kept charge and records it for the
// audit. No row is ever changed, except for the mark of a credit as paid.
package movement

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Entry is one movement of an account's money.
type Entry struct {
	ID      string
	Kind    string       // credit, take_back, trial, or charge
	Amount  money.Amount // negative if money left the account
	Balance money.Amount // after the movement
	Request string       // of a charge
	Job     string       // of a job's charge
	Model   string       // of a charge
	Note    string
	// Reference is the payment's id of a credit or a take-back. Empty means none.
	Reference string
	// Paid is true if the customer has paid for a credit, or got the money of a take-back back.
	Paid bool
	// CreatedMS is the time of the movement in Unix milliseconds.
	CreatedMS int64
}

// KindFilter selects movements by kind. The empty filter selects all.
type KindFilter string

// The filters.
const (
	Credits KindFilter = "credit" // credits, take-backs and trial credits
	Charges KindFilter = "charge"
)

// Selection selects movements of an account. Empty fields select all.
type Selection struct {
	Account string
	Kind    KindFilter
	// In Unix milliseconds, SinceMS inclusive, UntilMS exclusive; 0 means no bound.
	SinceMS, UntilMS int64
	After            string // the id of an entry; the list continues with older ones
	Limit            int
}

// ListTx lists up to f.Limit movements of an account, newest first, and reports whether there are
// more. If f.After is unknown, the list is empty. Bounds of time are found by bisection over the
// numbers of the movements, which have the order of time unless a clock was set back.
func ListTx(tx *store.Tx, f Selection) ([]Entry, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	from, before, err := f.boundsTx(tx)
	if err != nil {
		return nil, false, err
	}
	var found []numberedEntry
	for _, page := range f.pages() {
		rows, err := tx.Query(page.text, f.Account, before, from, f.Limit+1)
		if err != nil {
			return nil, false, err
		}
		defer rows.Close()
		for rows.Next() {
			var e numberedEntry
			if err := page.scan(&e, rows.Scan); err != nil {
				return nil, false, err
			}
			found = append(found, e)
		}
		if err := rows.Err(); err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(found, func(a, b numberedEntry) int { return cmp.Compare(b.seq, a.seq) })
	entries := make([]Entry, min(f.Limit, len(found)))
	for i := range entries {
		entries[i] = found[i].Entry
	}
	return entries, len(found) > f.Limit, nil
}

// boundsTx returns the bounds of a list as numbers, from inclusive and before exclusive.
func (f Selection) boundsTx(tx *store.Tx) (from, before int64, err error) {
	if before, err = seqTx(tx, f.Account, f.After); err != nil {
		return 0, 0, err
	}
	if f.SinceMS > 0 {
		if from, err = SeqAtTx(tx, f.Account, f.SinceMS); err != nil {
			return 0, 0, err
		}
	}
	if f.UntilMS > 0 {
		end, err := SeqAtTx(tx, f.Account, f.UntilMS)
		return from, min(before, end), err
	}
	return from, before, nil
}

// SeqAtTx returns the number of an account's first movement at or after a time in Unix milliseconds,
// or a number above all movements. It uses bisection, so it reads a few dozen rows for any number of
// movements.
func SeqAtTx(tx *store.Tx, account string, ms int64) (int64, error) {
	var low, high int64
	if err := tx.QueryRow(newestSeq, account).Scan(&high); err != nil {
		return 0, err
	}
	for high++; low < high; {
		middle := low + (high-low)/2
		var seq, at int64
		err := tx.QueryRow(nextMove, account, middle).Scan(&seq, &at)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return 0, err
		case err != nil || at >= ms:
			high = middle
		default:
			low = seq + 1
		}
	}
	return low, nil
}

// page is a query for a page of a list, over one index.
type page struct {
	text string
	scan func(e *numberedEntry, scan func(dest ...any) error) error
}

func (f Selection) pages() []page {
	switch f.Kind {
	case Credits:
		return []page{{movesPage, scanMove}}
	case Charges:
		return []page{{chargesPage, scanCharge}, {oldPage, scanCharge}, {keptPage, scanKept}}
	}
	return []page{{movesPage, scanMove}, {chargesPage, scanCharge}, {oldPage, scanCharge}, {keptPage, scanKept}}
}

// numberedEntry is an entry with its number in the account's running balance.
type numberedEntry struct {
	Entry
	seq int64
}

// A list merges pages of up to four indexes: entries, charges with a receipt, charges that will be
// kept soon (audit.Unfolded), and kept charges.
const (
	newestFirst = ` ORDER BY seq DESC LIMIT $4`
	movesPage   = `SELECT seq, id, kind, amount_nano, balance_nano, note, reference, created_ms, paid FROM ledger_entry
		WHERE account = $1 AND seq < $2 AND seq >= $3` + newestFirst
	chargesPage = `SELECT seq, id, cost_nano, balance_nano, job, model, ended_ms FROM ledger_receipt
		WHERE account = $1 AND seq < $2 AND seq >= $3 AND cost_nano > 0` + newestFirst
	oldPage = `SELECT seq, id, cost_nano, balance_nano, job, model, ended_ms FROM ` + audit.Unfolded + `
		AND account = $1 AND seq < $2 AND seq >= $3 AND cost_nano > 0` + newestFirst
	keptPage = `SELECT c.seq, c.request, c.amount_nano, c.balance_nano, c.job, m.word, c.ended_ms
		FROM ledger_charge c JOIN ledger_word m ON m.id = c.model
		WHERE c.account = (SELECT w.id FROM ledger_word w WHERE w.word = $1) AND c.seq < $2 AND c.seq >= $3 ORDER BY c.seq DESC LIMIT $4`
	// newestSeq and nextMove serve SeqAtTx.
	newestSeq = `SELECT COALESCE(MAX(seq), 0) FROM (SELECT MAX(seq) AS seq FROM ledger_entry WHERE account = $1
		UNION ALL SELECT MAX(seq) AS seq FROM ledger_receipt WHERE account = $1
		UNION ALL SELECT MAX(seq) AS seq FROM ledger_receipt_old WHERE account = $1
		UNION ALL SELECT MAX(c.seq) AS seq FROM ledger_charge c WHERE c.account = (SELECT w.id FROM ledger_word w WHERE w.word = $1)) s`
	nextEntry   = `SELECT seq, created_ms AS at FROM ledger_entry WHERE account = $1 AND seq >= $2 ORDER BY seq LIMIT 1`
	nextReceipt = `SELECT seq, ended_ms AS at FROM ledger_receipt WHERE account = $1 AND seq >= $2 ORDER BY seq LIMIT 1`
	nextOld     = `SELECT seq, ended_ms AS at FROM ledger_receipt_old WHERE account = $1 AND seq >= $2 ORDER BY seq LIMIT 1`
	nextKept    = `SELECT c.seq, c.ended_ms AS at FROM ledger_charge c
		WHERE c.account = (SELECT w.id FROM ledger_word w WHERE w.word = $1) AND c.seq >= $2 ORDER BY c.seq LIMIT 1`
	nextMove = `SELECT seq, at FROM (` + nextEntry + `) e UNION ALL SELECT seq, at FROM (` + nextReceipt + `) r
		UNION ALL SELECT seq, at FROM (` + nextOld + `) o UNION ALL SELECT seq, at FROM (` + nextKept + `) k ORDER BY seq LIMIT 1`
	entrySeq = `SELECT seq FROM ledger_entry WHERE account || '' = $1 AND id = $2
		UNION ALL SELECT seq FROM ledger_receipt WHERE account || '' = $1 AND id = $2
		UNION ALL SELECT seq FROM ledger_receipt_old WHERE account || '' = $1 AND id = $2
		UNION ALL SELECT c.seq FROM ledger_charge c JOIN ledger_word w ON w.id = c.account WHERE w.word || '' = $1 AND c.request = $3`
)

func scanMove(e *numberedEntry, scan func(dest ...any) error) error {
	return scan(&e.seq, &e.ID, &e.Kind, &e.Amount, &e.Balance, &e.Note, &e.Reference, &e.CreatedMS, &e.Paid)
}

func scanCharge(e *numberedEntry, scan func(dest ...any) error) error {
	e.Kind = kindCharge
	err := scan(&e.seq, &e.ID, &e.Amount, &e.Balance, &e.Job, &e.Model, &e.CreatedMS)
	e.Amount, e.Request = -e.Amount, e.ID
	return err
}

func scanKept(e *numberedEntry, scan func(dest ...any) error) error {
	var request, job []byte
	e.Kind = kindCharge
	err := scan(&e.seq, &request, &e.Amount, &e.Balance, &job, &e.Model, &e.CreatedMS)
	e.Amount, e.ID, e.Job = -e.Amount, id.Unpack(RequestPrefix, request), id.Unpack(jobPrefix, job)
	e.Request = e.ID
	return err
}

// kindCharge is the kind of a single charge in a list.
const kindCharge = "charge"

// seqTx returns the number of the entry after, or 0 if the entry is unknown. A list continues below
// this number. If after is empty, the number is above all entries.
func seqTx(tx *store.Tx, account, after string) (int64, error) {
	if after == "" {
		return 1 << 62, nil
	}
	var seq int64
	err := tx.QueryRow(entrySeq, account, after, id.Pack(RequestPrefix, after)).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}
