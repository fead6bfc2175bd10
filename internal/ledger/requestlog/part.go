package requestlog

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/store"
)

// partRows is the size of a part of an account's log, in numbers. A row of ledger_key_part records
// a key's receipts in a part, so that a list of a rare key need not examine the whole log. An index
// by key would take a row for each receipt, and four hundredths of the time of a hold and its
// settlement.
const partRows = 128

// PartOf returns the part of a receipt in its account's log, by its number there.
func PartOf(seq int64) int64 { return seq / partRows }

var insertParts = store.Insert("ledger_key_part", "key text, part bigint", "ON CONFLICT DO NOTHING")

// Parts returns the statement that records parts: a key and a part for each row. Recording a part
// twice is a no-op.
func Parts() *store.Rows { return insertParts }

const (
	// partsRead is the number of a key's parts read at a time, and partsJoined the number of
	// adjacent parts examined at once.
	partsRead   = 64
	partsJoined = 8

	partsBelow = `SELECT part FROM ledger_key_part WHERE key = $1 AND part <= $2 AND part >= $3 ORDER BY part DESC LIMIT $4`
	partedTo   = `SELECT parted_seq FROM ledger_account WHERE id = $1`
	lastBelow  = `SELECT id FROM ledger_receipt WHERE account = $1 AND (seq, id) >= ($2, $3) ORDER BY seq, id LIMIT 1`
)

// byPartsTx examines the receipts newer than the recorded parts, and then the recorded parts of the
// key.
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

// partTx examines adjacent parts.
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
	if errors.Is(err, sql.ErrNoRows) { // deleted since it was recorded, with all older receipts
		return nil
	}
	if err != nil {
		return err
	}
	return w.stopTx(oldest)
}

// partsTx returns the next parts of the walk with receipts of the key, newest first.
func (w *walk) partsTx() (parts []int64, err error) {
	newest := w.at.seq
	if w.at.id == "" {
		newest-- // the start of the walk
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

// higher returns the place further up an account's log.
func higher(p, q place) place {
	if p.below(q) {
		return q
	}
	return p
}

// noteChunk bounds how much of a log one transaction of NoteTx looks through.
const noteChunk = 2_000

const (
	// unnotedAfter selects the next account with unrecorded parts; only versions without parts
	// leave them unrecorded.
	unnotedAfter = `SELECT id FROM ledger_account WHERE id > $1 AND parted_seq < seq ORDER BY id LIMIT 1`
	notedState   = `SELECT seq, parted_seq FROM ledger_account WHERE id = $1`
	oldestAfter  = `SELECT seq FROM ledger_receipt WHERE account = $1 AND seq > $2 ORDER BY seq LIMIT 1`
	notePart     = `INSERT INTO ledger_key_part (key, part) SELECT DISTINCT key, seq / 128 FROM ledger_receipt
		WHERE account = $1 AND seq > $2 AND seq <= $3 AND key <> '' ON CONFLICT DO NOTHING`
)

// UnnotedTx returns the next account with unrecorded parts, in the order of ids, or "" if all parts
// are recorded.
func UnnotedTx(tx *store.Tx, after string) (account string, err error) {
	err = tx.QueryRow(unnotedAfter, after).Scan(&account)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return account, err
}

// NoteTx records the parts of a chunk of an account's log. It returns false if all are recorded.
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

// ForgetTx deletes the parts of keys of an account without receipts; last is the newest deleted
// number.
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
