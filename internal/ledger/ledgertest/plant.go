package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// Fault is a change of the tables that the product never makes: statements separated by semicolons.
type Fault string

// Plant runs the audit in a transaction that contains the fault, and rolls the transaction back. It
// fails the test if a statement changes no row.
func Plant(t testing.TB, db *store.DB, f Fault, checks ...audit.Check) []audit.Difference {
	t.Helper()
	return PlantFindings(t, db, f, checks...).Differences
}

// PlantFindings is like Plant and returns all findings of the audit. It fails the test if an audit in
// ranges of one account finds less.
func PlantFindings(t testing.TB, db *store.DB, f Fault, checks ...audit.Check) (report audit.Findings) {
	t.Helper()
	var single audit.Findings
	undo := errors.New("undo")
	err := db.Update(t.Context(), func(tx *store.Tx) (err error) {
		for statement := range strings.SplitSeq(string(f), ";") {
			if statement == "" {
				continue
			}
			if n, err := tx.Exec(statement); err != nil || n == 0 {
				return fmt.Errorf("%s: %d rows changed: %w", statement, n, err)
			}
		}
		if report, err = audit.RunTx(tx, audit.Options{Checks: checks}); err != nil {
			return err
		}
		if single, err = audit.RunTx(tx, audit.Options{Checks: checks, RangeRows: 1}); err != nil {
			return err
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	for _, d := range report.Differences {
		if what, _, _ := strings.Cut(d.What, " on 2"); !Reports(single.Differences, what) { // for one of the days
			t.Errorf("%s: in ranges of one account, the audit does not report %q, but %+v", f, d.What, single.Differences)
		}
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

// StorePrices writes an account's prices without checks. An empty factor does not change the column.
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

// FaultOf is a fault of one account, key, request or job, whose id replaces $ID.
type FaultOf string

// Of returns the fault with an id.
func (f FaultOf) Of(id string) Fault {
	return Fault(strings.ReplaceAll(string(f), "$ID", "'"+id+"'"))
}

// Faults of the sums by which limits are decided, and of days. Without the sums of today, the day's
// limits would begin again.
const (
	LimitGone      FaultOf = `DELETE FROM ledger_limit WHERE subject = $ID`
	LimitYesterday FaultOf = `UPDATE ledger_limit SET day = day - 1 WHERE subject = $ID`
	LimitZero      FaultOf = `UPDATE ledger_limit SET spent_nano = 0, used = 0 WHERE subject = $ID`
	DayCountsLess  FaultOf = `UPDATE ledger_day SET requests = requests - 1
		WHERE series IN (SELECT id FROM ledger_series WHERE account = $ID)`
)

// Faults of the usage above an account's holds.
const (
	OverMore   FaultOf = `UPDATE ledger_over SET over_nano = over_nano + 1 WHERE account = $ID`
	OverLess   FaultOf = `UPDATE ledger_over SET over_nano = over_nano - 1 WHERE account = $ID`
	OverGone   FaultOf = `DELETE FROM ledger_over WHERE account = $ID`
	OverMoved  FaultOf = `UPDATE ledger_over SET line = 'another' WHERE account = $ID`
	OverForged FaultOf = `INSERT INTO ledger_over (account, key, line, over_nano)
		SELECT account, id, 'another', 1 FROM ledger_key WHERE id = $ID`
)

// Faults of the recorded segments of a key.
const (
	KeyLogGone  FaultOf = `DELETE FROM ledger_key_part WHERE key = $ID`
	KeyLogMoved FaultOf = `UPDATE ledger_key_part SET part = part + 1000 WHERE key = $ID`
)

// Faults of an account's credits, with the figures that depend on them. CreditAsCode raises the
// newest credit and records it as a redeemed code.
const (
	CreditMore FaultOf = `UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = $ID;
		UPDATE ledger_entry SET amount_nano = amount_nano + 5, balance_nano = balance_nano + 5
		WHERE account = $ID AND seq = (SELECT MAX(seq) FROM ledger_entry WHERE account = $ID)`
	CreditInvented FaultOf = `UPDATE ledger_account SET balance_nano = balance_nano + 5, seq = seq + 1 WHERE id = $ID;
		INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)
		SELECT 'ent_x', id, seq, 'credit', 5, balance_nano, '', (SELECT MAX(at_ms) FROM operator_log) FROM ledger_account WHERE id = $ID`
	CreditAsCode = CreditMore + `; UPDATE ledger_entry SET note = 'code code_x' WHERE account = $ID`
)

// Faults of a request's receipt. ReceiptTokens and ReceiptCharge also change the figures that
// contain the receipt, which must be the account's newest movement.
const (
	ReceiptFactor FaultOf = `UPDATE ledger_receipt SET price_factor = 500000 WHERE id = $ID`
	ReceiptTokens FaultOf = `UPDATE ledger_receipt SET prompt_tokens = prompt_tokens + 1000 WHERE id = $ID;
		UPDATE ledger_day SET prompt_tokens = prompt_tokens + 1000 ` + daysOfReceipt
	ReceiptCharge FaultOf = `UPDATE ledger_receipt SET cost_nano = cost_nano - 5, balance_nano = balance_nano + 5 WHERE id = $ID;
		UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = (SELECT account FROM ledger_receipt WHERE id = $ID);
		UPDATE ledger_key SET spent_nano = spent_nano - 5
		WHERE account = (SELECT account FROM ledger_receipt WHERE id = $ID);
		UPDATE ledger_day SET cost_nano = cost_nano - 5 ` + daysOfReceipt

	daysOfReceipt = `WHERE series IN (SELECT id FROM ledger_series WHERE account = (SELECT account FROM ledger_receipt WHERE id = $ID))`
)

// ReceiptRevision records another catalog revision for a billed request.
func ReceiptRevision(request string, revision int64) Fault {
	return FaultOf(fmt.Sprintf(`UPDATE ledger_receipt SET revision = %d WHERE id = $ID`, revision)).Of(request)
}

// Faults of a job's record, receipt and hold.
const (
	JobKey           FaultOf = `UPDATE job SET key = 'key_x' WHERE id = $ID`
	JobHeld          FaultOf = `UPDATE job SET held_nano = held_nano + 1 WHERE id = $ID`
	JobFactor        FaultOf = `UPDATE job SET plan = substr(plan, 1, length(plan) - 1) || ',"factor":0.5}' WHERE id = $ID`
	JobReceiptFactor FaultOf = `UPDATE ledger_receipt SET price_factor = 500000 WHERE job = $ID`
	JobReceiptHeld   FaultOf = `UPDATE ledger_receipt SET held_nano = held_nano + 1 WHERE job = $ID`
	HoldFactor       FaultOf = `UPDATE ledger_hold SET price_factor = 500000 WHERE job = $ID`
)
