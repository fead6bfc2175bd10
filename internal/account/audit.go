package account

import (
	"errors"
	"fmt"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// AuditTx checks that keys and sign-ins have an account, that accounts and keys match their rows in
// the ledger, that redeemed codes match their credits, and trial credits their movements. It is an audit.Check.
func AuditTx(tx *store.Tx, books *audit.Books) error {
	accounts := map[string]bool{}
	where, args := books.Where("id")
	err := eachRecord(tx, func(id, _ string, _ bool) { accounts[id] = true }, `SELECT id, '', 0 FROM account WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read accounts: %w", err)
	}
	report := func(account, key, what string) {
		books.Report(audit.Difference{Account: account, Key: key, What: what})
	}
	inLedger := map[string]bool{}
	books.Accounts(func(id string) {
		inLedger[id] = true
		if !accounts[id] {
			report(id, "", "an account that has money has no record")
		}
	})
	for id := range accounts {
		if !inLedger[id] {
			report(id, "", "an account's row is gone from the ledger, but its record still exists")
		}
	}
	keys := map[string]string{} // the account of each key in the ledger without a record
	books.Keys(func(id, account string) { keys[id] = account })
	type record struct {
		id, account string
		deleted     bool
	}
	var records []record
	where, args = books.Where("account")
	err = eachRecord(tx, func(id, account string, deleted bool) {
		records = append(records, record{id, account, deleted})
	}, `SELECT id, account, deleted FROM api_key WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	for _, r := range records {
		delete(keys, r.id)
		ledgerAccount, isClosed, err := books.Key(r.id)
		switch {
		case err != nil:
			return fmt.Errorf("read keys: %w", err)
		case ledgerAccount == "":
			report(r.account, r.id, "a key's row is gone from the ledger, but its record still exists")
		case ledgerAccount != r.account:
			books.Report(audit.Difference{Account: r.account, Key: r.id, What: "a key is of another account in the ledger",
				Recorded: ledgerAccount, Computed: r.account})
		case isClosed != r.deleted:
			report(r.account, r.id, "a key is deleted in its record or in the ledger, but not in both")
		}
		if !accounts[r.account] {
			report(r.account, r.id, "a key's account has no record")
		}
	}
	for id, account := range keys {
		// The record may name an account of another range. Then the audit of that range reports the key.
		var n int
		if err := tx.QueryRow(`SELECT COUNT(*) FROM api_key WHERE id = $1`, id).Scan(&n); err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		if n == 0 {
			report(account, id, "a key that the ledger has has no record")
		}
	}
	err = eachRecord(tx, func(_, account string, _ bool) {
		if !accounts[account] {
			report(account, "", "a sign-in's account has no record")
		}
	}, `SELECT id, account, 0 FROM account_user WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read sign-ins: %w", err)
	}
	return errors.Join(auditCodesTx(tx, books), auditTrialsTx(tx, books))
}

// eachRecord calls fn with each row of a query for ids, accounts and deleted flags.
func eachRecord(tx *store.Tx, fn func(id, account string, deleted bool), text string, args ...any) error {
	return tx.Each(func(row store.Row) error {
		var id, account string
		var deleted bool
		if err := row.Scan(&id, &account, &deleted); err != nil {
			return err
		}
		fn(id, account, deleted)
		return nil
	}, text, args...)
}
