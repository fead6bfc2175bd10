package account

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAuditFindsEveryFault plants one fault after the other beside two accounts,
// one of which has a key, a deleted key and a sign-in, and undoes it again.
func TestAuditFindsEveryFault(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		acme, other := createAccount(t, db, "acme"), createAccount(t, db, "other")
		var key, gone, code, unused string
		update(t, db, func(tx *store.Tx) (struct{}, error) {
			for _, id := range []*string{&key, &gone} {
				k, _, err := CreateKeyTx(tx, acme.ID, KeySettings{})
				if err != nil {
					return struct{}{}, err
				}
				*id = k.ID
			}
			if err := DeleteKeyTx(tx, gone); err != nil {
				return struct{}{}, err
			}
			if _, err := CreateUserTx(tx, acme.ID, SignIn{Email: "a@acme.example", PasswordHash: "x"}); err != nil {
				return struct{}{}, err
			}
			codes, texts, err := CreateCodesTx(tx, NewCodes{Value: 5 * money.USD, Count: 3})
			if err != nil {
				return struct{}{}, err
			}
			code, unused = codes[0].ID, codes[1].ID
			if _, _, err := RedeemTx(tx, acme.ID, texts[0]); err != nil {
				return struct{}{}, err
			}
			// An operator gives by hand what a code was worth that he voids.
			if _, err := VoidCodeTx(tx, codes[2].ID); err != nil {
				return struct{}{}, err
			}
			_, err = ledger.CreditTx(tx, other.ID, 5*money.USD, "code "+codes[2].ID)
			return struct{}{}, err
		})
		at := func(text string) string {
			return strings.NewReplacer("ACME", "'"+acme.ID+"'", "OTHER", "'"+other.ID+"'", "KEY", "'"+key+"'", "GONE", "'"+gone+"'",
				"UNUSED", "'"+unused+"'", "NOTE", "'code "+unused+"'", "CODE", "'"+code+"'").Replace(text)
		}
		planted := func(breaks string) (found []audit.Difference) {
			undo := errors.New("undo")
			err := db.Update(t.Context(), func(tx *store.Tx) error {
				if breaks != "" {
					if n, err := tx.Exec(breaks); err != nil || n == 0 {
						return fmt.Errorf("%d rows changed: %w", n, err)
					}
				}
				report, err := audit.RunTx(tx, AuditTx)
				if err != nil {
					return err
				}
				found = report.Differences
				return undo
			})
			if !errors.Is(err, undo) {
				t.Fatalf("%s: %v", breaks, err)
			}
			return found
		}
		if found := planted(""); len(found) != 0 {
			t.Fatalf("good books: %+v", found)
		}
		for _, c := range []struct{ breaks, finds string }{
			{`DELETE FROM ledger_account WHERE id = ACME`, "an account's row is gone from the ledger"},
			{`DELETE FROM ledger_account WHERE id = OTHER`, "an account's row is gone from the ledger"},
			{`DELETE FROM account WHERE id = OTHER`, "an account that has money has no record"},
			{`DELETE FROM account WHERE id = ACME`, "a key's account has no record"},
			{`DELETE FROM account WHERE id = ACME`, "a sign-in's account has no record"},
			{`DELETE FROM ledger_key WHERE id = KEY`, "a key's row is gone from the ledger"},
			{`DELETE FROM api_key WHERE id = KEY`, "a key that the ledger has has no record"},
			{`UPDATE ledger_key SET account = OTHER WHERE id = KEY`, "a key is of another account in the ledger"},
			{`UPDATE api_key SET account = OTHER WHERE id = KEY`, "a key is of another account in the ledger"},
			{`UPDATE api_key SET deleted = 0 WHERE id = GONE`, "a key is deleted in its record or in the ledger"},
			{`UPDATE ledger_key SET closed = 0, disabled = 0 WHERE id = GONE`, "a key is deleted in its record or in the ledger"},
			{`UPDATE account_code SET usd_nano = usd_nano + 1 WHERE id = CODE`, "a redeemed code is not the credit of its value"},
			{`UPDATE account_code SET redeemed_ms = 5, account = ACME WHERE id = UNUSED`, "a redeemed code is not the credit of its value"},
			{`UPDATE ledger_entry SET note = '' WHERE account = ACME`, "a redeemed code is not the credit of its value"},
			{`UPDATE account_code SET redeemed_ms = 0, account = '' WHERE id = CODE`, "a code was credited that was not redeemed"},
			{`UPDATE ledger_entry SET note = NOTE WHERE account = ACME`, "a code was credited that was not redeemed"},
			{`UPDATE account_code SET account = OTHER WHERE id = CODE`, "a code was credited to another account"},
			{`DELETE FROM account_code WHERE id = CODE`, "a credit is of a code that is not there"},
			{`UPDATE account_user SET account = 'acct_x'`, "a sign-in's account has no record"},
		} {
			found := planted(at(c.breaks))
			if !slices.ContainsFunc(found, func(d audit.Difference) bool { return strings.Contains(d.What, c.finds) }) {
				t.Errorf("%s: %q was not reported, but %+v", c.breaks, c.finds, found)
			}
		}
	})
}
