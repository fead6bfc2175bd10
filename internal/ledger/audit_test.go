package ledger

import (
	"context"
	"errors"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestAuditFindsEveryDifference(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		if err := f.mustAdmit("a", 100).Settle(context.Background(), billed(10)); err != nil {
			t.Fatal(err)
		}
		f.mustAdmit("a", 100)
		f.audited()
		for _, spoil := range []string{
			`UPDATE ledger_account SET balance_nano = balance_nano + 1`,
			`UPDATE ledger_account SET held_nano = held_nano - 1`,
			`UPDATE ledger_key SET spent_nano = spent_nano + 1`,
			`UPDATE ledger_key SET held_nano = held_nano + 1`,
			`UPDATE ledger_key SET day_spent_nano = day_spent_nano + 1`,
			`UPDATE ledger_key SET day_held_nano = day_held_nano + 1`,
			`UPDATE ledger_usage SET requests = requests + 1`,
			`UPDATE ledger_usage SET cost_nano = cost_nano + 1`,
			`UPDATE ledger_usage SET day_billed = day_billed + 1`,
			`DELETE FROM ledger_usage`,
			`DELETE FROM ledger_receipt`,
			`DELETE FROM ledger_hold`,
			`DELETE FROM ledger_key`,
			`DELETE FROM ledger_entry`,
			`UPDATE ledger_hold SET amount_nano = amount_nano + 1`,
		} {
			undo := errors.New("undo")
			err := db.Update(context.Background(), func(tx *store.Tx) error {
				if _, err := tx.Exec(spoil); err != nil {
					return err
				}
				a := audit{tx: tx, checked: map[string]int64{}}
				after := ""
				if _, err := a.chunk(&after); err != nil {
					return err
				}
				if err := a.strays(); err != nil {
					return err
				}
				if len(a.differences) == 0 {
					t.Errorf("not found: %s", spoil)
				}
				return undo
			})
			if !errors.Is(err, undo) {
				t.Fatalf("%s: %v", spoil, err)
			}
		}
	})
}
