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

// TestUnreadablePrices checks that an account with unreadable prices is listed with an error and its
// keys get a 503, without effect on other accounts. Setting new prices repairs the account.
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
					t.Errorf("%v: ListTx returned %d accounts, %v, want 2", c, len(list), err)
				}
				for _, a := range list {
					if (a.Prices.Unreadable != "") != (a.ID == bad.ID) {
						t.Errorf("%v: account %s is listed with the prices %+v", c, a.Name, a.Prices)
					}
				}
				if result, _, err := SearchTx(tx, "bad", "", 10); err != nil || len(result) != 1 {
					t.Errorf("%v: SearchTx returned %d accounts, %v, want 1", c, len(result), err)
				}
				_, err = GetTx(tx, bad.ID)
				return err
			})
			if err != nil {
				t.Errorf("%v: GetTx returned the error %v", c, err)
			}
			keys := newCountingKeys(t, db)
			keys.wantAccepted(t, goodKey, true)
			_, err = keys.Authenticate(context.Background(), badKey.secret, customer, true)
			wantFault(t, err, fault.ServiceUnavailable, "")
			if err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("%v: Authenticate returned %v, want an error that says cannot be read", c, err)
			}
			if _, err = keys.ByID(context.Background(), bad.ID, badKey.ID); err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("%v: ByID returned %v, want an error that says cannot be read", c, err)
			}
			factor, none := money.One, map[string]money.Factor{}
			repaired := update(t, db, func(tx *store.Tx) (Account, error) {
				return ChangeTx(tx, bad.ID, Patch{Factor: &factor, Prices: &none})
			})
			if repaired.Prices.Unreadable != "" {
				t.Errorf("%v: the repaired account has the prices %+v, want readable prices", c, repaired.Prices)
			}
			newCountingKeys(t, db).wantAccepted(t, badKey, true)
		}
	})
}
