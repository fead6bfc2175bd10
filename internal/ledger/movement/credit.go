package movement

import (
	"fmt"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// CreditEntry is a credit or a take-back.
type CreditEntry struct {
	Day    int64        // days since 1970, UTC
	Amount money.Amount // negative for a take-back
}

const creditsSince = `SELECT created_ms, amount_nano FROM ledger_entry WHERE account = $1 AND created_ms >= $2`

// CreditEntriesTx returns an account's credits and take-backs since a day, in no order. An account
// has few of them.
func CreditEntriesTx(tx *store.Tx, account string, sinceDay int64) ([]CreditEntry, error) {
	rows, err := tx.Query(creditsSince, account, sinceDay*24*60*60*1000)
	if err != nil {
		return nil, fmt.Errorf("read credits: %w", err)
	}
	defer rows.Close()
	var list []CreditEntry
	for rows.Next() {
		var entry CreditEntry
		var at int64
		if err := rows.Scan(&at, &entry.Amount); err != nil {
			return nil, fmt.Errorf("read credits: %w", err)
		}
		entry.Day = books.DayOf(at)
		list = append(list, entry)
	}
	return list, rows.Err()
}
