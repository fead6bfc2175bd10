package ledger

import (
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// writeOver adds what usage exceeded holds by to its sums. It is rare: a hold is
// the highest possible cost, so usage above it is a line that does not obey its
// limit or a catalog that is wrong. Nobody is charged for it. A sum ends at
// money.Max: a provider may tell any counts, and no settlement may fail for them.
func (b *batch) writeOver(q *store.Batch) {
	for _, r := range b.Receipts {
		if r.Over > 0 {
			q.Exec(nil, `INSERT INTO ledger_over (account, key, line, over_nano) VALUES ($1, $2, $3, $4)
				ON CONFLICT (account, key, line) DO UPDATE SET over_nano =
				CASE WHEN ledger_over.over_nano > $5 - excluded.over_nano THEN $5 ELSE ledger_over.over_nano + excluded.over_nano END`,
				r.Hold.Account, r.Hold.Key, word(r.End.Line), int64(min(r.Over, money.Max)), int64(money.Max))
		}
	}
}

// OverOfAccountsTx returns what the usage of accounts has exceeded its holds by,
// over all time; those whose has not are missing.
func OverOfAccountsTx(tx *store.Tx, accounts []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfAccounts(tx), store.List(accounts))
}

// OverOfKeysTx is OverOfAccountsTx of keys, which belong to the accounts.
func OverOfKeysTx(tx *store.Tx, accounts, keys []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfKeys(tx), store.List(accounts), store.List(keys))
}

// OverOfLinesTx is OverOfAccountsTx of lines.
func OverOfLinesTx(tx *store.Tx, lines []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfLines(tx), store.List(lines))
}

// OverOfRequestsTx is OverOfAccountsTx of single requests, for as long as their
// receipts are kept.
func OverOfRequestsTx(tx *store.Tx, requests []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfRequests(tx), store.List(requests))
}

func overOfAccounts(tx *store.Tx) string {
	return `SELECT account, CAST(SUM(over_nano) AS BIGINT) FROM ledger_over WHERE ` + tx.In("account", 1) + ` GROUP BY account`
}

func overOfKeys(tx *store.Tx) string {
	return `SELECT key, CAST(SUM(over_nano) AS BIGINT) FROM ledger_over
		WHERE ` + tx.In("account", 1) + ` AND ` + tx.In("key", 2) + ` GROUP BY key`
}

func overOfLines(tx *store.Tx) string {
	return `SELECT line, CAST(SUM(over_nano) AS BIGINT) FROM ledger_over WHERE ` + tx.In("line", 1) + ` GROUP BY line`
}

func overOfRequests(tx *store.Tx) string {
	return `SELECT id, over_nano FROM ledger_receipt WHERE ` + tx.In("id", 1) + ` AND over_nano > 0`
}

func overTx(tx *store.Tx, text string, args ...any) (map[string]money.Amount, error) {
	rows, err := tx.Query(text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sums := map[string]money.Amount{}
	for rows.Next() {
		var name string
		var over money.Amount
		if err := rows.Scan(&name, &over); err != nil {
			return nil, err
		}
		sums[name] = over
	}
	return sums, rows.Err()
}
