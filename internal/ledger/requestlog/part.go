package requestlog

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/store"
)

// partRows is how many numbers of an account's log are a part. A row of ledger_key_part
// says that a key has receipts in one, so that the log is not looked through for a key
// that was hardly used: an index by key would take a row a receipt, and four hundredths
// of the time of a hold and its settlement.
const partRows = 128

// PartOf is the part of its account's log that a receipt is in, by its number there.
func PartOf(seq int64) int64 { return seq / partRows }

var insertParts = store.Insert("ledger_key_part", "key text, part bigint", "ON CONFLICT DO NOTHING")

// Parts is the statement that notes parts: a key and a part each. What is noted already
// may be noted again.
func Parts() *store.Rows { return insertParts }

const (
	// partsRead is how many parts of a key are read at a time, and partsJoined how many
	// that follow each other are looked through at once.
	partsRead   = 64
	partsJoined = 8

	partsBelow = `SELECT part FROM ledger_key_part WHERE key = $1 AND part <= $2 AND part >= $3 ORDER BY part DESC LIMIT $4`
	partedTo   = `SELECT parted_seq FROM ledger_account WHERE id = $1`
	lastBelow  = `SELECT id FROM ledger_receipt WHERE account = $1 AND (seq, id) >= ($2, $3) ORDER BY seq, id LIMIT 1`
)

// byPartsTx looks for a key's receipts in those parts of its account's log that have
// some, and before them through what is newer than what is noted.
func (w *walk) byPartsTx() error {
	var parted int64
	if err := w.tx.QueryRow(partedTo, w.Account).Scan(&parted); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if unnoted := (place{seq: parted + 1}); unnoted.below(w.at) {
		if ended, err := w.stepsTx(higher(w.low, unnoted)); err != nil || !ended {
			return err
		}
		w.at = unnoted
	}
	for w.low.below(w.at) {
		parts, err := w.partsTx()
		if err != nil || len(parts) == 0 {
			return err
		}
		for len(parts) > 0 {
			n := 1
			for n < min(len(parts), partsJoined) && parts[n] == parts[n-1]-1 {
				n++
			}
			if err := w.partTx(parts[n-1], parts[0]); err != nil || w.page.More {
				return err
			}
			parts = parts[n:]
		}
	}
	return nil
}

// partTx looks through parts that follow each other.
func (w *walk) partTx(first, last int64) error {
	if end := (place{seq: (last + 1) * partRows}); end.below(w.at) {
		w.at = end
	}
	low := higher(w.low, place{seq: first * partRows})
	if err := w.readTx(low); err != nil || w.page.More {
		return err
	}
	w.at = low
	if w.left -= int(last-first+1) * partRows; w.left > 0 {
		return nil
	}
	var oldest string
	err := w.tx.QueryRow(lastBelow, w.Account, low.seq, low.id).Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) { // deleted since it was noted, and all that is older
		return nil
	}
	if err != nil {
		return err
	}
	return w.stopTx(oldest)
}

// partsTx returns the next parts of the walk that the key has receipts in, newest first.
func (w *walk) partsTx() (parts []int64, err error) {
	newest := w.at.seq
	if w.at.id == "" {
		newest-- // which is where the walk begins
	}
	rows, err := w.tx.Query(partsBelow, w.Key, PartOf(newest), PartOf(w.low.seq), partsRead)
	if err != nil {
		return nil, fmt.Errorf("read the parts of a key: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var part int64
		if err := rows.Scan(&part); err != nil {
			return nil, fmt.Errorf("read the parts of a key: %w", err)
		}
		parts = append(parts, part)
	}
	return parts, rows.Err()
}

// higher is the one of two places that is further up an account's log.
func higher(p, q place) place {
	if p.below(q) {
		return q
	}
	return p
}

// noteChunk bounds how much of a log one transaction of NoteTx looks through.
const noteChunk = 2_000

const (
	// unnotedAfter is the next account whose parts are not all noted: by versions of
	// before there were parts, and by none else.
	unnotedAfter = `SELECT id FROM ledger_account WHERE id > $1 AND parted_seq < seq ORDER BY id LIMIT 1`
	notedState   = `SELECT seq, parted_seq FROM ledger_account WHERE id = $1`
	oldestAfter  = `SELECT seq FROM ledger_receipt WHERE account = $1 AND seq > $2 ORDER BY seq LIMIT 1`
	notePart     = `INSERT INTO ledger_key_part (key, part) SELECT DISTINCT key, seq / 128 FROM ledger_receipt
		WHERE account = $1 AND seq > $2 AND seq <= $3 AND key <> '' ON CONFLICT DO NOTHING`
)

// UnnotedTx returns the next account, in the order of their ids, whose parts are not all
// noted; empty: there is none.
func UnnotedTx(tx *store.Tx, after string) (account string, err error) {
	err = tx.QueryRow(unnotedAfter, after).Scan(&account)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return account, err
}

// NoteTx notes the parts of a chunk of an account's log; false: all are noted.
func NoteTx(tx *store.Tx, account string) (more bool, err error) {
	if err := tx.Lock("ledger_account", "id", account); err != nil {
		return false, err
	}
	var seq, parted, next int64
	if err := tx.QueryRow(notedState, account).Scan(&seq, &parted); err != nil {
		return false, err
	}
	to := seq
	err = tx.QueryRow(oldestAfter, account, parted).Scan(&next)
	switch {
	case errors.Is(err, sql.ErrNoRows): // nothing is there to be noted
	case err != nil:
		return false, err
	default:
		to = min(seq, next+noteChunk)
		if _, err := tx.Exec(notePart, account, parted, to); err != nil {
			return false, err
		}
	}
	_, err = tx.Exec(`UPDATE ledger_account SET parted_seq = $1 WHERE id = $2`, to, account)
	return to < seq, err
}

// ForgetTx forgets the parts of keys of an account in which it has no receipts any more.
// last is the newest number that was deleted.
func ForgetTx(tx *store.Tx, account string, keys []string, last int64) error {
	var oldest int64
	err := tx.QueryRow(oldestAfter, account, -1).Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) {
		oldest, err = last, nil
	}
	if err != nil {
		return err
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if _, err := tx.Exec(`DELETE FROM ledger_key_part WHERE key = $1 AND part < $2`, key, PartOf(oldest)); err != nil {
			return err
		}
	}
	return nil
}
