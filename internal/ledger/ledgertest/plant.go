package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// Fault is a change of the tables that nothing in the product makes. It is opaque to tests.
type Fault struct{ statements []string }

// Plant audits within a transaction that has made the fault, and undoes it. It fails the
// test if the fault changes no row.
func Plant(t testing.TB, db *store.DB, f Fault, checks ...audit.Check) []audit.Difference {
	t.Helper()
	undo := errors.New("undo")
	var found []audit.Difference
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		for _, statement := range f.statements {
			if n, err := tx.Exec(statement); err != nil || n == 0 {
				return fmt.Errorf("%s: %d rows changed: %w", statement, n, err)
			}
		}
		report, err := audit.RunTx(tx, checks...)
		if err != nil {
			return err
		}
		found = report.Differences
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	return found
}

// Says reports whether one of the differences says what.
func Says(found []audit.Difference, what string) bool {
	for _, d := range found {
		if strings.Contains(d.What, what) {
			return true
		}
	}
	return false
}

// DayCountsLess takes a request from the days of an account's series.
func DayCountsLess(account string) Fault {
	return Fault{[]string{`UPDATE ledger_day SET requests = requests - 1 WHERE series IN (SELECT id FROM ledger_series WHERE account = '` +
		account + `')`}}
}

// StorePrices writes an account's prices as the tables hold them, unchecked. An empty factor
// leaves the column as it is.
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
