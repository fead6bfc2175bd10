package ledger

import (
	"database/sql"
	"errors"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Entry is one movement of an account's money.
type Entry struct {
	ID      string
	Kind    string       // credit, take_back, charge; charges: a month's, whose receipts are gone
	Amount  money.Amount // negative for what left the account
	Balance money.Amount // after it
	Request string       // of a charge
	Job     string       // of a job's charge
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
	rows, err := tx.Query(entriesText, account, before, limit+1)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		var e Entry
		if err := rows.Scan(&e.ID, &e.Kind, &e.Amount, &e.Balance, &e.Request, &e.Job, &e.Note, &e.CreatedMS); err != nil {
			return nil, false, err
		}
		entries = append(entries, e)
	}
	if len(entries) > limit {
		return entries[:limit], true, rows.Err()
	}
	return entries, false, rows.Err()
}

// What each of two indexes brings, at most a page, is merged.
const (
	movesPage = `SELECT seq, id, kind, amount_nano, balance_nano, note, created_ms FROM ledger_entry
		WHERE account = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`
	chargesPage = `SELECT seq, id, cost_nano, balance_nano, job, ended_ms FROM ledger_receipt
		WHERE account = $1 AND seq < $2 AND cost_nano > 0 ORDER BY seq DESC LIMIT $3`
	entriesText = `SELECT id, kind, amount_nano, balance_nano, request, job, note, created_ms FROM (
			SELECT seq, id, kind, amount_nano, balance_nano, '' AS request, '' AS job, note, created_ms FROM (` + movesPage + `) AS e
			UNION ALL
			SELECT seq, id, 'charge', -cost_nano, balance_nano, id, job, '', ended_ms FROM (` + chargesPage + `) AS r
		) AS moves ORDER BY seq DESC LIMIT $3`
	entrySeq = `SELECT seq FROM ledger_entry WHERE account || '' = $1 AND id = $2
		UNION ALL SELECT seq FROM ledger_receipt WHERE account || '' = $1 AND id = $2`
)

// seqTx returns the number that a listing continues below.
func seqTx(tx *store.Tx, account, after string) (int64, error) {
	if after == "" {
		return 1 << 62, nil
	}
	var seq int64
	err := tx.QueryRow(entrySeq, account, after).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}
