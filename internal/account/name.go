package account

import (
	"slices"

	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// AccountNamesTx returns the names of accounts by id, without unknown ids.
func AccountNamesTx(tx *store.Tx, accounts []string) (map[string]string, error) {
	return namesTx(tx, `SELECT id, name FROM account WHERE `, accounts)
}

// FillNamesTx sets r.Names for accounts and for keys, if the report is grouped by them.
func FillNamesTx(tx *store.Tx, r *spending.Breakdown) error {
	for dimension, read := range map[spending.By]func(*store.Tx, []string) (map[string]string, error){
		spending.ByAccount: AccountNamesTx, spending.ByKey: KeyNamesTx,
	} {
		if !slices.Contains(r.By, dimension) {
			continue
		}
		names, err := read(tx, r.IDs(dimension))
		if err != nil {
			return err
		}
		if r.Names == nil {
			r.Names = map[spending.By]map[string]string{}
		}
		r.Names[dimension] = names
	}
	return nil
}

// KeyNamesTx returns the names of keys by id, including deleted keys. The name of a key without a
// name is its hint.
func KeyNamesTx(tx *store.Tx, keys []string) (map[string]string, error) {
	return namesTx(tx, `SELECT id, CASE WHEN name = '' THEN hint ELSE name END FROM api_key WHERE `, keys)
}

func namesTx(tx *store.Tx, text string, ids []string) (map[string]string, error) {
	names := make(map[string]string, len(ids))
	return names, tx.Each(func(row store.Row) error {
		var id, name string
		err := row.Scan(&id, &name)
		names[id] = name
		return err
	}, text+tx.In("id", 1), store.List(ids))
}
