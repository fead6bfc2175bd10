package account

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"tollgate/internal/store"
)

// accountsHolding selects accounts from $1 on that contain the pattern $2 or have the id $3.
const accountsHolding = `SELECT ` + accountColumns + ` FROM account a WHERE a.id > $1
	AND (lower(a.name) LIKE $2 ESCAPE '\' OR a.email LIKE $2 ESCAPE '\'
		OR EXISTS (SELECT 1 FROM account_user u WHERE u.account = a.id AND u.email LIKE $2 ESCAPE '\') OR a.id || '' = $3)
	ORDER BY a.id LIMIT $4`

// SearchTx returns up to limit accounts with text in their name, contact address or sign-in,
// ignoring case, or with text as their id, in order of creation, after the id after, and reports
// whether there are more. It reads accounts one by one until it has enough. The text must not be
// empty.
func SearchTx(tx *store.Tx, text, after string, limit int) ([]Account, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	holds := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(text)) + "%"
	rows, err := tx.Query(accountsHolding, after, holds, text, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("search accounts: %w", err)
	}
	list, err := collect(rows, scanAccount)
	if err != nil {
		return nil, false, fmt.Errorf("search accounts: %w", err)
	}
	list, more := page(list, limit)
	return list, more, addMoney(tx, list)
}

const keysByHint = `SELECT id FROM api_key WHERE hint = $1 AND id > $2 AND deleted = 0 ORDER BY id LIMIT $3`

const keyByHash = `SELECT id FROM api_key WHERE hash = $1 AND deleted = 0`

// bySecretTx returns the key of a secret, or an empty list.
func bySecretTx(tx *store.Tx, secret string) ([]Key, error) {
	var key string
	err := tx.QueryRow(keyByHash, digestOf(secret).String()).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("search keys: %w", err)
	}
	k, err := GetKeyTx(tx, key)
	return []Key{k}, err
}

// KeysByHintTx returns the key of a whole secret, or up to limit keys with the given hint or with
// the hint of the given secret, without deleted keys, in order of creation, after the id after, and
// reports whether there are more.
func KeysByHintTx(tx *store.Tx, hint, after string, limit int) ([]Key, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	if wellFormed(hint) {
		if found, err := bySecretTx(tx, hint); err != nil || len(found) > 0 {
			return found, false, err
		}
	}
	if strings.HasPrefix(hint, secretPrefix) && len(hint) > 2*len(HintOf(secretPrefix+"12345678")) {
		hint = HintOf(hint)
	}
	rows, err := tx.Query(keysByHint, strings.ReplaceAll(hint, "…", "..."), after, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("search keys: %w", err)
	}
	found, err := collect(rows, func(scan func(...any) error) (key string, err error) {
		err = scan(&key)
		return key, err
	})
	if err != nil {
		return nil, false, fmt.Errorf("search keys: %w", err)
	}
	found, more := page(found, limit)
	keys := make([]Key, len(found))
	for i, key := range found {
		if keys[i], err = GetKeyTx(tx, key); err != nil {
			return nil, false, err
		}
	}
	return keys, more, nil
}
