// Package movement owns the list of what moved an account's money: credits,
// take-backs and every single charge, those whose receipts are deleted included,
// which it keeps for good in a compact form.
//
// Invariants: what is kept is written by the transaction that deletes its receipt,
// and the audit is told of it there; no row is ever changed.
package movement

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"

	"tollgate/internal/id"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Entry is one movement of an account's money.
type Entry struct {
	ID      string
	Kind    string       // credit, take_back, charge; charges: a month's that a former version has summed
	Amount  money.Amount // negative for what left the account
	Balance money.Amount // after it
	Request string       // of a charge
	Job     string       // of a job's charge
	Model   string       // of a charge
	Note    string
	// CreatedMS is when it happened, in Unix milliseconds.
	CreatedMS int64
}

// EntriesTx lists an account's movements, newest first: at most limit of them,
// those older than the entry with the id after, if that is given. The bool
// tells whether there are more. An unknown after lists nothing.
func EntriesTx(tx *store.Tx, account, after string, limit int) ([]Entry, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	before, err := seqTx(tx, account, after)
	if err != nil {
		return nil, false, err
	}
	var found []numberedEntry
	for _, page := range []struct {
		text string
		scan func(e *numberedEntry, scan func(dest ...any) error) error
	}{{movesPage, scanMove}, {chargesPage, scanCharge}, {keptPage, scanKept}} {
		rows, err := tx.Query(page.text, account, before, limit+1)
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
	entries := make([]Entry, min(limit, len(found)))
	for i := range entries {
		entries[i] = found[i].Entry
	}
	return entries, len(found) > limit, nil
}

// numberedEntry is an entry with its place in the account's running balance.
type numberedEntry struct {
	Entry
	seq int64
}

// Each of three indexes brings a page at most: movements (of a month's charges
// those that are not kept one by one), charges with a receipt, and charges that
// are kept without.
const (
	movesPage = `SELECT seq, id, kind, amount_nano + kept_nano, balance_nano, note, created_ms FROM ledger_entry
		WHERE account = $1 AND seq < $2 AND amount_nano + kept_nano <> 0 ORDER BY seq DESC LIMIT $3`
	chargesPage = `SELECT seq, id, cost_nano, balance_nano, job, model, ended_ms FROM ledger_receipt
		WHERE account = $1 AND seq < $2 AND cost_nano > 0 ORDER BY seq DESC LIMIT $3`
	keptPage = `SELECT c.seq, c.request, c.amount_nano, c.balance_nano, c.job, m.word, c.ended_ms
		FROM ledger_charge c JOIN ledger_word m ON m.id = c.model
		WHERE c.account = (SELECT w.id FROM ledger_word w WHERE w.word = $1) AND c.seq < $2 ORDER BY c.seq DESC LIMIT $3`
	entrySeq = `SELECT seq FROM ledger_entry WHERE account || '' = $1 AND id = $2
		UNION ALL SELECT seq FROM ledger_receipt WHERE account || '' = $1 AND id = $2
		UNION ALL SELECT c.seq FROM ledger_charge c JOIN ledger_word w ON w.id = c.account WHERE w.word || '' = $1 AND c.request = $3`
)

func scanMove(e *numberedEntry, scan func(dest ...any) error) error {
	return scan(&e.seq, &e.ID, &e.Kind, &e.Amount, &e.Balance, &e.Note, &e.CreatedMS)
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

// kindCharge is the kind of a single charge in a list of entries.
const kindCharge = "charge"

// seqTx returns the number that a listing continues below.
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
