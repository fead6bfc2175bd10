package account

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"tollgate/internal/store"
)

// accountsMatching selects accounts after the id $1 that match the pattern $2 or have the id $3.
const accountsMatching = `SELECT ` + accountColumns + ` FROM account a WHERE a.id > $1
	AND (lower(a.name) LIKE $2 ESCAPE '\' OR a.email LIKE $2 ESCAPE '\'
		OR EXISTS (SELECT 1 FROM account_user u WHERE u.account = a.id AND u.email LIKE $2 ESCAPE '\') OR a.id || '' = $3)
	ORDER BY a.id LIMIT $4`

// SearchTx finds text, which must not be empty, in the names, contact addresses and sign-ins of
// accounts, ignoring case. It also finds the account with the id text. SearchTx returns up to limit
// accounts after the id after, in order of creation, and reports whether there are more. It scans
// accounts until it has found enough.
func SearchTx(tx *store.Tx, text, after string, limit int) ([]Account, bool, error) {
	pattern := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(text)) + "%"
	list, more, err := listTx(tx, limit, scanAccount, accountsMatching, after, pattern, text, limit+1)
	if err != nil {
		return nil, false, err
	}
	return list, more, addMoney(tx, list)
}

const keysByHint = `SELECT id FROM api_key WHERE hint = $1 AND id > $2 AND deleted = 0 ORDER BY id LIMIT $3`

const keyByHash = `SELECT id FROM api_key WHERE hash = $1 AND deleted = 0`

// keyBySecretTx returns the key with a secret as a list, or an empty list.
func keyBySecretTx(tx *store.Tx, secret string) ([]Key, error) {
	var id string
	err := tx.QueryRow(keyByHash, digestOf(secret).String()).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("search keys: %w", err)
	}
	k, err := GetKeyTx(tx, id)
	return []Key{k}, err
}

// KeysByHintTx finds undeleted keys by a hint or a secret. If hint is the complete secret of a key,
// it returns that key. Otherwise it returns up to limit keys with the hint, after the id after and in
// order of creation, and reports whether there are more. If hint is about as long as a secret, for
// example an unknown secret, KeysByHintTx searches for HintOf(hint).
func KeysByHintTx(tx *store.Tx, hint, after string, limit int) ([]Key, bool, error) {
	if wellFormed(hint) {
		if matches, err := keyBySecretTx(tx, hint); err != nil || len(matches) > 0 {
			return matches, false, err
		}
	}
	if strings.HasPrefix(hint, secretPrefix) && len(hint) > 2*len(HintOf(secretPrefix+"12345678")) {
		hint = HintOf(hint)
	}
	scan := func(row store.Row) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}
	ids, more, err := listTx(tx, limit, scan, keysByHint, strings.ReplaceAll(hint, "…", "..."), after, limit+1)
	if err != nil {
		return nil, false, err
	}
	keys := make([]Key, len(ids))
	for i, id := range ids {
		if keys[i], err = GetKeyTx(tx, id); err != nil {
			return nil, false, err
		}
	}
	return keys, more, nil
}
