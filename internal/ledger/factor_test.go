package ledger

import (
	"errors"
	"testing"

	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestReceiptsKeepTheFactor ends requests admitted with a factor, one of them by the sweep, and
// checks the factor in their receipts.
func TestReceiptsKeepTheFactor(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		want := map[string]money.Factor{}
		admit := func(factor money.Factor) *Hold {
			t.Helper()
			a := admission("a", money.USD)
			a.Factor = factor
			want[a.Request] = factor
			h, err := f.Admit(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		for _, factor := range []money.Factor{0, 900_000} {
			if err := admit(factor).Settle(t.Context(), billed(money.USD/2)); err != nil {
				t.Fatal(err)
			}
		}
		admit(money.MaxFactor)
		f.fence()
		f.mustAdmit("a", 0).Release(failed()) // lets the node rejoin
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, r := range f.requests(requestlog.Selection{Account: "a", Limit: 10}) {
			if factor, ours := want[r.ID]; ours {
				if found++; r.Factor != factor {
					t.Errorf("the receipt %s has the factor %s, want %s", r.ID, r.Factor, factor)
				}
			}
		}
		if found != len(want) {
			t.Errorf("%d receipts, want %d", found, len(want))
		}
		f.checkAudit()
	})
}

func TestRecheckKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		f.open("b", money.USD, 0, KeyLimits{})
		if err := db.Update(t.Context(), func(tx *store.Tx) error { return RecheckKeysTx(tx, "a") }); err != nil {
			t.Fatal(err)
		}
		if _, err := f.admit("a", 0); !errors.Is(err, ErrKeyChanged) {
			t.Errorf("an old version of the key: got %v, want ErrKeyChanged", err)
		}
		f.mustAdmit("b", 0).Release(failed())
		again := admission("a", 0)
		again.KeyVersion = f.keyState("a").Version
		h, err := f.Admit(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		h.Release(failed())
	})
}
