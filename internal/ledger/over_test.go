package ledger

import (
	"context"
	"slices"
	"testing"
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// TestUsageAboveHoldsIsKept exceeds two holds and folds the receipt of the first one. The sums by
// account, key and line stay, but the usage of the single request is deleted with its receipt.
func TestUsageAboveHoldsIsKept(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		ctx := context.Background()
		f := start(t, db, func(o *Options) { o.Retention = time.Hour })
		f.open("a", 10*money.USD, 0, KeyLimits{})
		f.open("b", 10*money.USD, 0, KeyLimits{})
		exceed := func(account string) string {
			a := admission(account, money.USD)
			a.Request, a.Received = id.At("req_", c.now()), c.now()
			h, err := f.Admit(ctx, a)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Settle(ctx, billed(3*money.USD)); err != nil {
				t.Fatal(err)
			}
			return h.open.Row.ID
		}
		checkSums := func(want money.Amount, request string, wantRequest money.Amount) {
			t.Helper()
			err := db.View(ctx, func(tx *store.Tx) error {
				accounts, err := OverOfAccountsTx(tx, []string{"a", "b", "none"})
				if err != nil {
					return err
				}
				keys, err := OverOfKeysTx(tx, []string{"a", "a"}, []string{"a_key", "none"})
				if err != nil {
					return err
				}
				lines, err := OverOfLinesTx(tx, []string{"line", "none"})
				if err != nil {
					return err
				}
				requests, err := OverOfRequestsTx(tx, []string{request, "none"})
				if accounts["a"] != want || accounts["b"] != 2*money.USD || len(accounts) != 2 || keys["a_key"] != want || len(keys) != 1 ||
					lines["line"] != want+2*money.USD || len(lines) != 1 || requests[request] != wantRequest {
					t.Errorf("accounts %v, keys %v, lines %v, requests %v; want %s and %s", accounts, keys, lines, requests, want, wantRequest)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		first := exceed("a")
		exceed("b")
		checkSums(2*money.USD, first, 2*money.USD)
		c.add(72 * time.Hour)
		if err := f.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		checkSums(2*money.USD, first, 0)
		checkSums(4*money.USD, exceed("a"), 2*money.USD)
	})
}

// TestUsageAboveHoldsWithoutEnd checks that every request is charged even if the provider always
// reports the largest counts.
func TestUsageAboveHoldsWithoutEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 100*money.USD, 0, KeyLimits{})
		for range 12 {
			if err := f.mustAdmit("a", money.USD).Settle(context.Background(), billed(money.Max)); err != nil {
				t.Fatal(err)
			}
		}
		if st := f.state("a"); st.Held != 0 || st.Balance != 88*money.USD {
			t.Errorf("%+v; want twelve charges", st)
		}
		err := db.View(context.Background(), func(tx *store.Tx) error {
			sums, err := OverOfAccountsTx(tx, []string{"a"})
			if sums["a"] < money.Max {
				t.Errorf("usage above holds: got %v, want at least %s", sums, money.Max)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestSumsOfOverUseAnIndex checks the query plan of each sum on both databases: no query reads a
// whole table.
func TestSumsOfOverUseAnIndex(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const rows = 6_000
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec(`INSERT INTO ledger_over (account, key, line, over_nano)
				WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1)
				SELECT 'a' || CAST(i % 500 AS TEXT), 'k' || CAST(i / 500 AS TEXT), 'l' || CAST(i % 40 AS TEXT), 1 FROM n`, rows)
			return err
		})
		update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
		view(t, db, func(tx *store.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			some := store.List([]string{"a1", "a2"})
			storetest.WalksIndex(t, tx, "over of requests", overOfRequests(tx), store.List([]string{"req_103000"}))
			for name, plan := range map[string][]string{
				"accounts": storetest.Plan(t, tx, overOfAccounts(tx), some),
				"keys":     storetest.Plan(t, tx, overOfKeys(tx), some, some),
				"lines":    storetest.Plan(t, tx, overOfLines(tx), store.List([]string{"l1"})),
			} {
				if slices.ContainsFunc(plan, storetest.ReadsAll) {
					t.Errorf("usage above the holds of %s: got the plan %q, want no read of a whole table", name, plan)
				}
			}
			return nil
		})
	})
}
