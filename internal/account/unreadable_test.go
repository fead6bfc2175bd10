package account

import (
	"context"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestUnreadablePrices checks that an account with unreadable prices is listed with its error and
// rejected; the others are listed and served. A change of both prices repairs the account.
func TestUnreadablePrices(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		bad, good := createAccount(t, db, "bad"), createAccount(t, db, "good")
		badKey, goodKey := createKey(t, db, bad.ID, KeySettings{}), createKey(t, db, good.ID, KeySettings{})
		cases := []struct{ factor, prices string }{
			{"0", ""}, {"-1", ""}, {"9223372036854775807", ""}, {"", "no JSON"}, {"", `["m"]`}, {"", `{"m":0}`}, {"", `{"m":"x"}`},
			{"", `{"m":-1}`}, {"", `{"m":1e9}`},
		}
		if db.Dialect() == store.SQLite { // SQLite stores any value
			cases = append(cases, struct{ factor, prices string }{"'much'", ""}, struct{ factor, prices string }{"1.5", ""})
		}
		for _, c := range cases {
			ledgertest.StorePrices(t, db, bad.ID, c.factor, c.prices)
			err := db.View(t.Context(), func(tx *store.Tx) error {
				list, _, err := ListTx(tx, "", 10)
				if err != nil || len(list) != 2 {
					t.Errorf("%v: %d listed, %v", c, len(list), err)
				}
				for _, a := range list {
					if (a.Prices.Unreadable != "") != (a.ID == bad.ID) {
						t.Errorf("%v: %s has %+v", c, a.Name, a.Prices)
					}
				}
				if result, _, err := SearchTx(tx, "bad", "", 10); err != nil || len(result) != 1 {
					t.Errorf("%v: found %d, %v", c, len(result), err)
				}
				_, err = GetTx(tx, bad.ID)
				return err
			})
			if err != nil {
				t.Errorf("%v: %v", c, err)
			}
			keys := watch(t, db)
			keys.good(t, goodKey, true)
			_, err = keys.Authenticate(context.Background(), badKey.secret, customer, true)
			wantFault(t, err, fault.ServiceUnavailable, "")
			if err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("%v: %v", c, err)
			}
			if _, err = keys.ByID(context.Background(), bad.ID, badKey.ID); err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("%v: by name: %v", c, err)
			}
			factor, none := money.One, map[string]money.Factor{}
			repaired := update(t, db, func(tx *store.Tx) (Account, error) {
				return ChangeTx(tx, bad.ID, Patch{Factor: &factor, Prices: &none})
			})
			if repaired.Prices.Unreadable != "" {
				t.Errorf("%v: %+v", c, repaired.Prices)
			}
			watch(t, db).good(t, badKey, true)
		}
	})
}
