package account

import (
	"fmt"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// AuditTx checks that accounts, keys and sign-ins refer to each other and to their rows in the
// ledger, of the same account and in the same state, and that redeemed codes match their credits.
// It is an audit.Check.
func AuditTx(tx *store.Tx, books *audit.Books) error {
	accounts := map[string]bool{}
	where, args := books.Where("id")
	err := eachText(tx, func(id, _ string, _ bool) { accounts[id] = true }, `SELECT id, '', 0 FROM account WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read accounts: %w", err)
	}
	differ := func(account, key, what string) {
		books.Report(audit.Difference{Account: account, Key: key, What: what})
	}
	booked := map[string]bool{}
	books.Accounts(func(id string) {
		booked[id] = true
		if !accounts[id] {
			differ(id, "", "an account that has money has no record")
		}
	})
	for id := range accounts {
		if !booked[id] {
			differ(id, "", "an account's row is gone from the ledger, but its record still exists")
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
	err = eachText(tx, func(id, account string, deleted bool) {
		records = append(records, record{id, account, deleted})
	}, `SELECT id, account, deleted FROM api_key WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	for _, r := range records {
		delete(keys, r.id)
		booked, closed, err := books.Key(r.id)
		switch {
		case err != nil:
			return fmt.Errorf("read keys: %w", err)
		case booked == "":
			differ(r.account, r.id, "a key's row is gone from the ledger, but its record still exists")
		case booked != r.account:
			books.Report(audit.Difference{Account: r.account, Key: r.id, What: "a key is of another account in the ledger",
				Recorded: booked, Computed: r.account})
		case closed != r.deleted:
			differ(r.account, r.id, "a key is deleted in its record or in the ledger, but not in both")
		}
		if !accounts[r.account] {
			differ(r.account, r.id, "a key's account has no record")
		}
	}
	for id, account := range keys {
		// The record may name another account, whose range reports the key.
		var n int
		if err := tx.QueryRow(`SELECT COUNT(*) FROM api_key WHERE id = $1`, id).Scan(&n); err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		if n == 0 {
			differ(account, id, "a key that the ledger has has no record")
		}
	}
	err = eachText(tx, func(_, account string, _ bool) {
		if !accounts[account] {
			differ(account, "", "a sign-in's account has no record")
		}
	}, `SELECT id, account, 0 FROM account_user WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read sign-ins: %w", err)
	}
	return auditCodesTx(tx, books)
}

// eachText calls fn with each row of a query for two texts and a flag.
func eachText(tx *store.Tx, fn func(one, two string, flag bool), text string, args ...any) error {
	return tx.Each(func(row store.Row) error {
		var one, two string
		var flag bool
		if err := row.Scan(&one, &two, &flag); err != nil {
			return err
		}
		fn(one, two, flag)
		return nil
	}, text, args...)
}
