package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// Fault is a change of the tables that the product never makes.
type Fault struct{ statements []string }

// Plant runs the audit in a transaction that contains the fault, and rolls the transaction back. It
// fails the test if a statement changes no row.
func Plant(t testing.TB, db *store.DB, f Fault, checks ...audit.Check) []audit.Difference {
	t.Helper()
	return PlantFindings(t, db, f, checks...).Differences
}

// PlantFindings is like Plant and returns all findings of the audit.
func PlantFindings(t testing.TB, db *store.DB, f Fault, checks ...audit.Check) (report audit.Findings) {
	t.Helper()
	undo := errors.New("undo")
	err := db.Update(t.Context(), func(tx *store.Tx) (err error) {
		for _, statement := range f.statements {
			if n, err := tx.Exec(statement); err != nil || n == 0 {
				return fmt.Errorf("%s: %d rows changed: %w", statement, n, err)
			}
		}
		if report, err = audit.RunTx(tx, checks...); err != nil {
			return err
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	return report
}

// Reports reports whether one of the differences contains what.
func Reports(found []audit.Difference, what string) bool {
	for _, d := range found {
		if strings.Contains(d.What, what) {
			return true
		}
	}
	return false
}

// DayCountsLess subtracts a request from the days of an account's series.
func DayCountsLess(account string) Fault {
	return Fault{[]string{`UPDATE ledger_day SET requests = requests - 1 WHERE series IN (SELECT id FROM ledger_series WHERE account = '` +
		account + `')`}}
}

// StorePrices writes an account's prices without checks. An empty factor does not change the
// column.
func StorePrices(t testing.TB, db *store.DB, account, factor, prices string) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		if factor != "" {
			if _, err := tx.Exec(`UPDATE account SET price_factor = `+factor+` WHERE id = $1`, account); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`UPDATE account SET prices = $1 WHERE id = $2`, prices, account)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Faults of today's figures. Without the figures, the day's limits would begin again.

// KeyDayReset resets a key's spent and held sums of today.
func KeyDayReset(key string) Fault {
	return Fault{[]string{`UPDATE ledger_key SET day = 0, day_spent_nano = 0, day_held_nano = 0 WHERE id = '` + key + `'`}}
}

// KeyDayYesterday records that a key has not been used since yesterday.
func KeyDayYesterday(key string) Fault {
	return Fault{[]string{`UPDATE ledger_key SET day = day - 1, day_spent_nano = 0, day_held_nano = 0 WHERE id = '` + key + `'`}}
}

// UsageDayReset resets an account's usage of today.
func UsageDayReset(account string) Fault {
	return Fault{[]string{`UPDATE ledger_usage SET day = 0, day_cost_nano = 0, day_requests = 0, day_billed = 0, day_failed = 0
		WHERE account = '` + account + `'`}}
}

// FreeDayReset resets today's used places of an account's free quotas.
func FreeDayReset(account string) Fault {
	return Fault{[]string{`UPDATE ledger_free SET day = 0, used = 0 WHERE account = '` + account + `'`}}
}

// FreeDayGone deletes the rows of an account's free quotas.
func FreeDayGone(account string) Fault {
	return Fault{[]string{`DELETE FROM ledger_free WHERE account = '` + account + `'`}}
}

// Faults of the figures of past days.

// KeyPastDaysGone deletes a key's spent and held sums of earlier days.
func KeyPastDaysGone(key string) Fault {
	return Fault{[]string{`DELETE FROM ledger_key_day WHERE key = '` + key + `'`}}
}

// UsagePastDaysGone deletes an account's usage of earlier days.
func UsagePastDaysGone(account string) Fault {
	return Fault{[]string{`DELETE FROM ledger_usage_day WHERE account = '` + account + `'`}}
}

// FreePastDaysGone deletes the used places of an account's free quotas on earlier days.
func FreePastDaysGone(account string) Fault {
	return Fault{[]string{`DELETE FROM ledger_free_day WHERE account = '` + account + `'`}}
}

// OverMore adds to the usage above an account's holds.
func OverMore(account string) Fault {
	return Fault{[]string{`UPDATE ledger_over SET over_nano = over_nano + 1 WHERE account = '` + account + `'`}}
}

// OverLess takes from the usage above an account's holds.
func OverLess(account string) Fault {
	return Fault{[]string{`UPDATE ledger_over SET over_nano = over_nano - 1 WHERE account = '` + account + `'`}}
}

// OverGone deletes the usage above an account's holds.
func OverGone(account string) Fault {
	return Fault{[]string{`DELETE FROM ledger_over WHERE account = '` + account + `'`}}
}

// OverMoved records another line for usage above an account's holds.
func OverMoved(account string) Fault {
	return Fault{[]string{`UPDATE ledger_over SET line = 'another' WHERE account = '` + account + `'`}}
}

// OverForged adds a sum of usage above holds for a line without any.
func OverForged(account, key string) Fault {
	return Fault{[]string{`INSERT INTO ledger_over (account, key, line, over_nano) VALUES ('` + account + `', '` + key + `', 'another', 1)`}}
}

// KeyLogGone deletes the recorded segments of a key.
func KeyLogGone(key string) Fault {
	return Fault{[]string{`DELETE FROM ledger_key_part WHERE key = '` + key + `'`}}
}

// KeyLogMoved records other segments for a key.
func KeyLogMoved(key string) Fault {
	return Fault{[]string{`UPDATE ledger_key_part SET part = part + 1000 WHERE key = '` + key + `'`}}
}

// CreditMore raises an account's newest credit and its balance together.
func CreditMore(account string) Fault {
	newest := `(SELECT MAX(seq) FROM ledger_entry WHERE account = '` + account + `')`
	return Fault{[]string{
		`UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = '` + account + `'`,
		`UPDATE ledger_entry SET amount_nano = amount_nano + 5, balance_nano = balance_nano + 5 WHERE account = '` + account +
			`' AND seq = ` + newest,
	}}
}

// CreditInvented adds a false credit to an account, with its movement and number.
func CreditInvented(account string) Fault {
	return Fault{[]string{
		`UPDATE ledger_account SET balance_nano = balance_nano + 5, seq = seq + 1, parted_seq = parted_seq + 1 WHERE id = '` + account + `'`,
		`INSERT INTO ledger_entry (id, account, seq, kind, month, amount_nano, balance_nano, note, created_ms)
			SELECT 'ent_x', id, seq, 'credit', 0, 5, balance_nano, '', (SELECT MAX(at_ms) FROM operator_log) FROM ledger_account
			WHERE id = '` + account + `'`,
	}}
}

// CreditAsCode records an account's raised newest credit as a redeemed code.
func CreditAsCode(account string) Fault {
	f := CreditMore(account)
	return Fault{append(f.statements, `UPDATE ledger_entry SET note = 'code code_x' WHERE account = '`+account+`'`)}
}

// ReceiptFactor records another factor for a billed request.
func ReceiptFactor(request string) Fault { return receipt(request, "price_factor = 500000") }

// ReceiptRevision records another catalog revision for a billed request.
func ReceiptRevision(request string, revision int64) Fault {
	return receipt(request, fmt.Sprintf("revision = %d", revision))
}

// ReceiptTokens changes the prompt of a receipt, and the totals and days that contain it.
func ReceiptTokens(request string) Fault {
	f := receipt(request, "prompt_tokens = prompt_tokens + 1000")
	of := `(SELECT account FROM ledger_receipt WHERE id = '` + request + `')`
	f.statements = append(f.statements, `UPDATE ledger_usage SET prompt_tokens = prompt_tokens + 1000 WHERE account = `+of,
		`UPDATE ledger_day SET prompt_tokens = prompt_tokens + 1000 WHERE series IN (SELECT id FROM ledger_series WHERE account = `+of+`)`)
	return f
}

// ReceiptCharge lowers the charge of an account's newest movement, and all figures that contain it.
func ReceiptCharge(request string) Fault {
	f := receipt(request, "cost_nano = cost_nano - 5, balance_nano = balance_nano + 5")
	of := `(SELECT account FROM ledger_receipt WHERE id = '` + request + `')`
	f.statements = append(f.statements,
		`UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = `+of,
		`UPDATE ledger_key SET spent_nano = spent_nano - 5, day_spent_nano = day_spent_nano - 5 WHERE account = `+of,
		`UPDATE ledger_usage SET cost_nano = cost_nano - 5, day_cost_nano = day_cost_nano - 5 WHERE account = `+of,
		`UPDATE ledger_day SET cost_nano = cost_nano - 5 WHERE series IN (SELECT id FROM ledger_series WHERE account = `+of+`)`)
	return f
}

func receipt(request, set string) Fault {
	return Fault{[]string{`UPDATE ledger_receipt SET ` + set + ` WHERE id = '` + request + `'`}}
}

// JobKey changes the key of a job's record.
func JobKey(job string) Fault { return jobSet(job, "key = 'key_x'") }

// JobHeld changes the hold in a job's record.
func JobHeld(job string) Fault { return jobSet(job, "held_nano = held_nano + 1") }

// JobFactor changes the factor of a job's record.
func JobFactor(job string) Fault {
	return jobSet(job, `plan = substr(plan, 1, length(plan) - 1) || ',"factor":0.5}'`)
}

func jobSet(job, set string) Fault {
	return Fault{[]string{`UPDATE job SET ` + set + ` WHERE id = '` + job + `'`}}
}

// JobReceiptFactor changes the factor of a job's receipt.
func JobReceiptFactor(job string) Fault {
	return Fault{[]string{`UPDATE ledger_receipt SET price_factor = 500000 WHERE job = '` + job + `'`}}
}

// JobReceiptHeld changes the hold of a job's receipt.
func JobReceiptHeld(job string) Fault {
	return Fault{[]string{`UPDATE ledger_receipt SET held_nano = held_nano + 1 WHERE job = '` + job + `'`}}
}

// HoldFactor changes the factor of a running job's hold.
func HoldFactor(job string) Fault {
	return Fault{[]string{`UPDATE ledger_hold SET price_factor = 500000 WHERE job = '` + job + `'`}}
}
