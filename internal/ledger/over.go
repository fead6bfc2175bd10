package ledger

import (
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// OverOfAccountsTx returns the accounts' usage above holds, over all time. Accounts without such
// usage are missing.
func OverOfAccountsTx(tx *store.Tx, accounts []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfAccounts(tx), store.List(accounts))
}

// OverOfKeysTx is like OverOfAccountsTx for keys of the accounts.
func OverOfKeysTx(tx *store.Tx, accounts, keys []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfKeys(tx), store.List(accounts), store.List(keys))
}

// OverOfLinesTx is like OverOfAccountsTx for lines.
func OverOfLinesTx(tx *store.Tx, lines []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfLines(tx), store.List(lines))
}

// OverOfRequestsTx is like OverOfAccountsTx for single requests, while their receipts are kept.
func OverOfRequestsTx(tx *store.Tx, requests []string) (map[string]money.Amount, error) {
	return overTx(tx, overOfRequests(tx), store.List(requests))
}

var sumOver = store.Sum("over_nano")

func overOfAccounts(tx *store.Tx) string {
	return `SELECT account, ` + sumOver + ` FROM ledger_over WHERE ` + tx.In("account", 1) + ` GROUP BY account`
}

func overOfKeys(tx *store.Tx) string {
	return `SELECT key, ` + sumOver + ` FROM ledger_over
		WHERE ` + tx.In("account", 1) + ` AND ` + tx.In("key", 2) + ` GROUP BY key`
}

func overOfLines(tx *store.Tx) string {
	return `SELECT line, ` + sumOver + ` FROM ledger_over WHERE ` + tx.In("line", 1) + ` GROUP BY line`
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
