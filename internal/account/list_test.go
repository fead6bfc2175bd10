package account

import (
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestListsUseIndexes checks that each list walks an index on both databases, even if one account
// has half of the rows.
func TestListsUseIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const numbers = ` WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 3000) `
		const owner = `'a' || CAST(CASE WHEN i % 2 = 0 THEN 0 ELSE i END AS TEXT)`
		for _, text := range []string{
			`INSERT INTO account (id, name, email, created_ms)` + numbers + `SELECT 'a' || CAST(i AS TEXT), '', '', 0 FROM n`,
			`INSERT INTO api_key (id, account, hash, name, hint, allowed_models, allowed_ips, created_ms, deleted)` + numbers +
				`SELECT 'k' || CAST(i AS TEXT), ` + owner + `, CAST(i AS TEXT), '', '', '', '', 0, 0 FROM n`,
			`INSERT INTO account_user (id, account, email, password, disabled, role, created_ms)` + numbers +
				`SELECT 'u' || CAST(i AS TEXT), ` + owner + `, CAST(i AS TEXT), '', 0, '', 0 FROM n`,
			`INSERT INTO account_code (hash, id, batch, hint, usd_nano, created_ms, expires_ms, account, redeemed_ms, voided_ms)` + numbers +
				`SELECT CAST(i AS TEXT), 'c' || CAST(i AS TEXT), '', '', 1, 0, 0, '', 0, 0 FROM n`,
			`INSERT INTO account_session (hash, id, kind, member, token, address, agent, created_ms, seen_ms)` + numbers +
				`SELECT CAST(i AS TEXT), 's' || CAST(i AS TEXT), 'user', ` + owner + `, '', '', '', i, i FROM n`,
			`ANALYZE`,
		} {
			update(t, db, func(tx *store.Tx) (int64, error) { return tx.Exec(text) })
		}
		storetest.Update(t, db, func(tx *store.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			storetest.WalksIndex(t, tx, "accounts", accountsPage, "a5", 51)
			storetest.WalksIndex(t, tx, "keys", keysPage, "a0", "", 51)
			storetest.WalksIndex(t, tx, "newest keys", newestKeys, "a0", 51)
			storetest.WalksIndex(t, tx, "users", usersPage, "a0", "", 51)
			storetest.WalksIndex(t, tx, "operators", operatorsPage, "", 51)
			storetest.WalksIndex(t, tx, "newest codes", newestCodes, 51)
			storetest.WalksIndex(t, tx, "codes", codesPage, "c5", 51)
			storetest.WalksIndex(t, tx, "accounts that contain a text", accountsMatching, "a5", "%x%", "x", 51)
			storetest.WalksIndex(t, tx, "keys by their hint", keysByHint, "h", "k5", 51)
			for name, member := range map[string]string{"sessions": "a0", "sessions by the operator's token": ""} {
				storetest.WalksIndex(t, tx, name, sessionsPage, member, "s5", "user", 0, 0, "operator", 0, 0, 51)
			}
			return nil
		})
	})
}

// TestAccountAndKeyNames checks that unknown ids have no names, and that a key without a name has
// its hint.
func TestAccountAndKeyNames(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "Acme")
		update(t, db, func(tx *store.Tx) (int, error) {
			named, _, err := CreateKeyTx(tx, a.ID, KeySettings{Name: "backend"})
			if err != nil {
				return 0, err
			}
			unnamed, _, err := CreateKeyTx(tx, a.ID, KeySettings{})
			if err != nil {
				return 0, err
			}
			accounts, err := AccountNamesTx(tx, []string{a.ID, "acct_none"})
			if err != nil || len(accounts) != 1 || accounts[a.ID] != "Acme" {
				t.Errorf("AccountNamesTx = %v, %v, want only Acme", accounts, err)
			}
			keys, err := KeyNamesTx(tx, []string{named.ID, unnamed.ID, "key_none"})
			if err != nil || len(keys) != 2 || keys[named.ID] != "backend" || keys[unnamed.ID] != unnamed.Hint {
				t.Errorf("KeyNamesTx = %v, %v, want backend and the hint %s", keys, err, unnamed.Hint)
			}
			return 0, nil
		})
	})
}
