package account

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAuditFindsEveryFault plants one fault after the other beside two accounts,
// one of which has a key, a deleted key and a sign-in, and undoes it again.
func TestAuditFindsEveryFault(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		acme, other := createAccount(t, db, "acme"), createAccount(t, db, "other")
		var key, gone string
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
			_, err := CreateUserTx(tx, acme.ID, SignIn{Email: "a@acme.example", PasswordHash: "x"})
			return struct{}{}, err
		})
		at := func(text string) string {
			return strings.NewReplacer("ACME", "'"+acme.ID+"'", "OTHER", "'"+other.ID+"'", "KEY", "'"+key+"'", "GONE", "'"+gone+"'").Replace(text)
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
			{`UPDATE account_user SET account = 'acct_x'`, "a sign-in's account has no record"},
		} {
			found := planted(at(c.breaks))
			if !slices.ContainsFunc(found, func(d audit.Difference) bool { return strings.Contains(d.What, c.finds) }) {
				t.Errorf("%s: %q was not reported, but %+v", c.breaks, c.finds, found)
			}
		}
	})
}
