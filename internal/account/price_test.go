package account

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestFactorOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prices Prices
		want   money.Factor // of model m; 0 means no factor
	}{
		{Prices{}, 0},
		{Prices{Factor: money.One}, 0},
		{Prices{Factor: 900_000}, 900_000},
		{Prices{Factor: 900_000, Models: map[string]money.Factor{"n": 2 * money.One}}, 900_000},
		{Prices{Factor: 900_000, Models: map[string]money.Factor{"m": 2 * money.One}}, 2 * money.One},
		{Prices{Factor: 900_000, Models: map[string]money.Factor{"m": money.One}}, 0},
	} {
		if got := tt.prices.FactorOf("m"); got != tt.want {
			t.Errorf("%v.FactorOf(m) = %s, want %s", tt.prices, got, tt.want)
		}
	}
}

// TestPricesOfAnAccount checks that a change of an account's prices raises the version of its keys,
// and only of these, and that all readers return the new prices.
func TestPricesOfAnAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a, b := createAccount(t, db, "a"), createAccount(t, db, "b")
		if a.Prices.Factor != money.One || len(a.Prices.Models) != 0 {
			t.Errorf("a new account has the prices %v, want the factor 1", a.Prices)
		}
		key, otherKey := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, b.ID, KeySettings{})
		w := newCountingKeys(t, db)
		factor, models := money.Factor(900_000), map[string]money.Factor{"m": 1, `odd"id`: money.MaxFactor}
		for i, p := range []Patch{{Factor: &factor}, {Prices: &models}} {
			update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, p) })
			if got := w.wantAccepted(t, key, true); got.Version != int64(2+i) {
				t.Errorf("after change %d the key has version %d, want %d", i+1, got.Version, 2+i)
			}
		}
		floor := money.Amount(0)
		update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, Patch{Floor: &floor}) })
		got := w.wantAccepted(t, key, true)
		if got.Version != 3 || got.Prices.Factor != factor || !maps.Equal(got.Prices.Models, models) {
			t.Errorf("the key has the prices %v and version %d, want %s, %v and 3", got.Prices, got.Version, factor, models)
		}
		if byID, err := w.ByID(t.Context(), a.ID, key.ID); err != nil || byID.Prices.FactorOf("m") != 1 {
			t.Errorf("ByID returned the prices %v, %v, want 0.000001 for m", byID.Prices, err)
		}
		if otherPrincipal := w.wantAccepted(t, otherKey, true); otherPrincipal.Version != 1 || otherPrincipal.Prices.FactorOf("m") != 0 {
			t.Errorf("the key of another account is %+v, want version 1 without factors", otherPrincipal)
		}
		read := update(t, db, func(tx *store.Tx) (Prices, error) { return PricesTx(tx, a.ID) })
		list := update(t, db, func(tx *store.Tx) ([]Account, error) { list, _, err := ListTx(tx, "", 10); return list, err })
		factors := map[string]money.Factor{}
		for _, account := range list {
			factors[account.ID] = account.Prices.FactorOf("n")
		}
		if read.FactorOf("m") != 1 || !maps.Equal(factors, map[string]money.Factor{a.ID: factor, b.ID: 0}) {
			t.Errorf("PricesTx returned %v and ListTx %v, want the changed prices", read, list)
		}
		empty := map[string]money.Factor{}
		changed := update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, Patch{Prices: &empty}) })
		if len(changed.Prices.Models) != 0 || changed.Prices.Factor != factor {
			t.Errorf("after removing the factors of models the prices are %v, want only the factor %s", changed.Prices, factor)
		}
		_, err := try(t, db, func(tx *store.Tx) (Prices, error) { return PricesTx(tx, "acct_none") })
		wantFault(t, err, fault.NotFound, "")
	})
}

func TestInvalidPrices(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		wantRefused := func(p Patch, param string) {
			t.Helper()
			_, err := try(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, p) })
			wantFault(t, err, fault.InvalidRequest, param)
			o := NewAccount{Name: "n", Factor: p.Factor}
			if p.Prices != nil {
				o.Prices = *p.Prices
			}
			wantFault(t, o.Check(), fault.InvalidRequest, param)
		}
		for _, factor := range []money.Factor{0, -1, money.MaxFactor + 1} {
			wantRefused(Patch{Factor: &factor}, "price_factor")
			wantRefused(Patch{Prices: &map[string]money.Factor{"m": factor}}, "prices")
		}
		for _, id := range []string{"", "a b", strings.Repeat("x", 201), "\xff"} {
			wantRefused(Patch{Prices: &map[string]money.Factor{id: money.One}}, "prices")
		}
		insertRows := map[string]money.Factor{}
		for i := range maxPrices + 1 {
			insertRows[fmt.Sprint(i)] = money.One
		}
		wantRefused(Patch{Prices: &insertRows}, "prices")
		for _, damage := range []string{`price_factor = 0`, `prices = 'x'`, `price_factor = 5, prices = '{"m":0}'`} {
			_, err := try(t, db, func(tx *store.Tx) (Prices, error) {
				if _, err := tx.Exec(`UPDATE account SET `+damage+` WHERE id = $1`, a.ID); err != nil {
					return Prices{}, err
				}
				return PricesTx(tx, a.ID)
			})
			if err == nil || fault.Of(err).Code != fault.ServiceUnavailable {
				t.Errorf("PricesTx after %s returned %v, want a 503", damage, err)
			}
		}
	})
}
