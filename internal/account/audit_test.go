package account

import (
	"testing"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAuditFindsEveryFault adds and removes one fault at a time in a database with two accounts.
// One account has a key, a deleted key and a sign-in.
func TestAuditFindsEveryFault(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		acme, otherAccount := createAccount(t, db, "acme"), createAccount(t, db, "other")
		var key, deletedKey, redeemedCode, unusedCode string
		update(t, db, func(tx *store.Tx) (struct{}, error) {
			for _, id := range []*string{&key, &deletedKey} {
				k, _, err := CreateKeyTx(tx, acme.ID, KeySettings{})
				if err != nil {
					return struct{}{}, err
				}
				*id = k.ID
			}
			if err := DeleteKeyTx(tx, deletedKey); err != nil {
				return struct{}{}, err
			}
			if _, err := CreateUserTx(tx, acme.ID, SignIn{Email: "a@acme.example", PasswordHash: "x"}); err != nil {
				return struct{}{}, err
			}
			codes, texts, err := CreateCodesTx(tx, NewCodes{Value: 5 * money.USD, Count: 3})
			if err != nil {
				return struct{}{}, err
			}
			redeemedCode, unusedCode = codes[0].ID, codes[1].ID
			if _, _, err := RedeemTx(tx, acme.ID, texts[0]); err != nil {
				return struct{}{}, err
			}
			// An operator voids a code and credits its value by hand.
			if _, err := VoidCodeTx(tx, codes[2].ID); err != nil {
				return struct{}{}, err
			}
			_, err = ledger.CreditTx(tx, otherAccount.ID, 5*money.USD, "code "+codes[2].ID)
			return struct{}{}, err
		})
		if report, err := audit.Run(t.Context(), db, AuditTx); err != nil || !report.OK {
			t.Fatalf("the audit of correct rows returned %v, %+v, want no differences", err, report.Differences)
		}
		ids := ledgertest.AccountIDs{Account: acme.ID, Other: otherAccount.ID, Key: key, DeletedKey: deletedKey, Redeemed: redeemedCode,
			Unused: unusedCode}
		for _, fault := range ledgertest.AccountFaults(ids) {
			fault.Check(t, db, AuditTx)
		}
	})
}
