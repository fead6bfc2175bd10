package account

import (
	"fmt"

	"tollgate/internal/store"
)

// NamesTx returns the names of accounts by their ids. What is unknown is not in it.
func NamesTx(tx *store.Tx, accounts []string) (map[string]string, error) {
	return namesTx(tx, `SELECT id, name FROM account WHERE `, accounts)
}

// KeyNamesTx returns what keys are called by their ids: their name, else their hint.
// Deleted ones keep theirs.
func KeyNamesTx(tx *store.Tx, keys []string) (map[string]string, error) {
	return namesTx(tx, `SELECT id, CASE WHEN name = '' THEN hint ELSE name END FROM api_key WHERE `, keys)
}

func namesTx(tx *store.Tx, text string, ids []string) (map[string]string, error) {
	rows, err := tx.Query(text+tx.In("id", 1), store.List(ids))
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	defer rows.Close()
	names := make(map[string]string, len(ids))
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, fmt.Errorf("read names: %w", err)
		}
		names[id] = name
	}
	return names, rows.Err()
}
