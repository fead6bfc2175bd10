package account

import (
	"fmt"
	"strings"

	"tollgate/internal/store"
)

// SearchTx returns up to limit accounts whose name, contact address or sign-in
// holds a text, whatever its case, in the order of their creation, beginning
// behind the identifier after, and whether more follow. It reads accounts one
// after the other until it has enough.
func SearchTx(tx *store.Tx, text, after string, limit int) ([]Account, bool, error) {
	holds := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(text)) + "%"
	rows, err := tx.Query(`SELECT a.id, a.name, a.email, a.created_ms FROM account a WHERE a.id > $1
		AND (lower(a.name) LIKE $2 ESCAPE '\' OR a.email LIKE $2 ESCAPE '\'
			OR EXISTS (SELECT 1 FROM account_user u WHERE u.account = a.id AND u.email LIKE $2 ESCAPE '\'))
		ORDER BY a.id LIMIT $3`, after, holds, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("search accounts: %w", err)
	}
	list, err := collect(rows, func(scan func(...any) error) (a Account, err error) {
		err = scan(&a.ID, &a.Name, &a.Email, &a.CreatedMS)
		return a, err
	})
	if err != nil {
		return nil, false, fmt.Errorf("search accounts: %w", err)
	}
	list, more := page(list, limit)
	return list, more, addMoney(tx, list)
}

// KeysByHintTx returns up to limit keys that show a hint, or that a secret would
// show it of, deleted ones excepted.
func KeysByHintTx(tx *store.Tx, hint string, limit int) ([]Key, error) {
	if strings.HasPrefix(hint, secretPrefix) && len(hint) > 2*len(hintOf(secretPrefix+"12345678")) {
		hint = hintOf(hint)
	}
	rows, err := tx.Query(`SELECT id FROM api_key WHERE hint = $1 AND deleted = 0 ORDER BY id LIMIT $2`,
		strings.ReplaceAll(hint, "…", "..."), limit)
	if err != nil {
		return nil, fmt.Errorf("search keys: %w", err)
	}
	found, err := collect(rows, func(scan func(...any) error) (key string, err error) {
		err = scan(&key)
		return key, err
	})
	if err != nil {
		return nil, fmt.Errorf("search keys: %w", err)
	}
	keys := make([]Key, len(found))
	for i, key := range found {
		if keys[i], err = GetKeyTx(tx, key); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
