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
	err := eachText(tx, `SELECT id, '', 0 FROM account`, func(id, _ string, _ bool) { accounts[id] = true })
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
	type state struct {
		account string
		closed  bool
	}
	keys := map[string]state{}
	books.Keys(func(id, account string, closed bool) { keys[id] = state{account, closed} })
	err = eachText(tx, `SELECT id, account, deleted FROM api_key`, func(id, account string, deleted bool) {
		booked, ok := keys[id]
		delete(keys, id)
		switch {
		case !ok:
			differ(account, id, "a key's row is gone from the ledger, but its record still exists")
		case booked.account != account:
			books.Report(audit.Difference{Account: account, Key: id, What: "a key is of another account in the ledger",
				Recorded: booked.account, Computed: account})
		case booked.closed != deleted:
			differ(account, id, "a key is deleted in its record or in the ledger, but not in both")
		}
		if !accounts[account] {
			differ(account, id, "a key's account has no record")
		}
	})
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	for id, k := range keys {
		differ(k.account, id, "a key that the ledger has has no record")
	}
	err = eachText(tx, `SELECT id, account, 0 FROM account_user`, func(_, account string, _ bool) {
		if !accounts[account] {
			differ(account, "", "a sign-in's account has no record")
		}
	})
	if err != nil {
		return fmt.Errorf("read sign-ins: %w", err)
	}
	return auditCodesTx(tx, books)
}

// eachText calls fn with each row of a query for two texts and a flag.
func eachText(tx *store.Tx, text string, fn func(one, two string, flag bool)) error {
	return tx.Each(func(row store.Row) error {
		var one, two string
		var flag bool
		if err := row.Scan(&one, &two, &flag); err != nil {
			return err
		}
		fn(one, two, flag)
		return nil
	}, text)
}
