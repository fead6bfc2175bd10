// Package ledgertest owns the tests' knowledge of the tables: it sets counters to their limits and
// plants faults into the books. Tests of the books use its names, so a change of the tables changes only
// this package.
//
// Invariant: planted faults are undone before the call returns, except those of SetCounters and
// RestoreFunds.
package ledgertest

import (
	"strings"
	"testing"

	"tollgate/internal/store"
)

// Counter is a column with a sum or a figure reported by clients and providers.
type Counter struct{ Table, Column string }

// fixed names the integer columns that are not counters. Every other integer column is a counter.
var fixed = map[string]string{
	"seq": "numbers movements", "revision": "numbers catalogs", "secrets": "numbers changes of secrets", "version": "numbers changes of a key",
	"number": "numbers submissions", "n": "numbers hits", "part": "numbers parts of a log", "id": "a name",
	"schema": "numbers migrations", "compatible_since": "numbers migrations", "done": "a flag",
	"decimals": "of a currency", "live": "a flag", "saves_card": "a flag", "switched_on": "a flag",
	"level_nano": "set by people", "monthly_minor": "set by people",
	"year": "a date", "paid": "a flag",
	"series": "a name", "account": "a name", "model": "a name", "day": "a date", "batch": "numbers batches",
	"beat": "numbers heartbeats", "worker": "a name",
	"turn": "a place in a queue", "fence": "numbers take-overs", "generation": "numbers changes",
	"tries": "our own calls, which have an end", "failing": "our own calls, which have an end", "totp_step": "a time",
	"begun": "a mark modulo 2^64", "ended": "a mark modulo 2^64", "folded": "a mark modulo 2^64", "kept_mark": "a mark modulo 2^64",
	"receipts": "the length of a chain", "kept": "the length of a chain", "stands_for": "refusals of one client",
	"outcome": "a state", "status": "a state", "source": "a state", "state": "a state",
	"disabled": "a flag", "closed": "a flag", "free": "a flag", "deleted": "a flag", "barred": "a flag",
	"low_set": "a flag", "low_armed": "a flag", "dead": "a flag", "drained": "a flag", "fresh": "a flag",
	"explicit": "a flag", "wanted": "slots of a line", "granted": "slots of a line", "size": "of a file that we have",
	"rpm": "set by people", "daily_budget_nano": "set by people", "total_limit_nano": "set by people", "floor_nano": "set by people",
	"low_nano":   "set by people",
	"limit_nano": "set by people", "daily": "a flag", "stage": "a state", "price_factor": "set by people", "usd_nano": "set by people",
}

// isCounter reports whether an integer column is a counter. Times are not counters.
func isCounter(column string) bool {
	if _, ok := fixed[column]; ok {
		return false
	}
	return !strings.HasSuffix(column, "_ms")
}

// CountersTx returns the counters of the schema.
func CountersTx(t testing.TB, tx *store.Tx, dialect store.Dialect) []Counter {
	t.Helper()
	text := `SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'sqlite%' AND upper(c.type) IN ('BIGINT', 'INTEGER')
		ORDER BY m.name, c.cid`
	if dialect == store.PostgreSQL {
		text = `SELECT table_name, column_name FROM information_schema.columns
			WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%' AND data_type IN ('bigint', 'integer')
			ORDER BY table_name, ordinal_position`
	}
	rows, err := tx.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []Counter
	for rows.Next() {
		var c Counter
		if err := rows.Scan(&c.Table, &c.Column); err != nil {
			t.Fatal(err)
		}
		if isCounter(c.Column) {
			all = append(all, c)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// SetCounters sets every counter of every row to limit.
func SetCounters(t testing.TB, db *store.DB, limit int64) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		for _, c := range CountersTx(t, tx, db.Dialect()) {
			if _, err := tx.Exec(`UPDATE `+c.Table+` SET `+c.Column+` = $1`, limit); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// RestoreFunds lets every account pay again after SetCounters.
func RestoreFunds(t testing.TB, db *store.DB) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(`UPDATE ledger_account SET balance_nano = 1000000000000`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Sums are the largest daily figures of an account, and its largest usage above holds. Money is in
// nano-dollars.
type Sums struct{ Requests, Prompt, LineCost, Over int64 }

// SumsOf reads the Sums of an account.
func SumsOf(t testing.TB, db *store.DB, account string) (s Sums) {
	t.Helper()
	err := db.View(t.Context(), func(tx *store.Tx) error {
		if err := tx.QueryRow(`SELECT COALESCE(MAX(d.requests), 0), COALESCE(MAX(d.prompt_tokens), 0) FROM ledger_day d
			JOIN ledger_series s ON s.id = d.series WHERE s.account = $1`, account).Scan(&s.Requests, &s.Prompt); err != nil {
			return err
		}
		if err := tx.QueryRow(`SELECT COALESCE(MAX(d.line_cost_nano), 0) FROM ledger_day d JOIN ledger_series s ON s.id = d.series
			WHERE s.account = $1`, account).Scan(&s.LineCost); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT COALESCE(MAX(over_nano), 0) FROM ledger_over WHERE account = $1`, account).Scan(&s.Over)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
