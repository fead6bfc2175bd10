package account

import (
	"slices"

	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// NamesTx returns the names of accounts by id, without unknown ids.
func NamesTx(tx *store.Tx, accounts []string) (map[string]string, error) {
	return namesTx(tx, `SELECT id, name FROM account WHERE `, accounts)
}

// NameTx fills in the names of a report's accounts and keys, if the report is by them.
func NameTx(tx *store.Tx, r *spending.Breakdown) error {
	for part, read := range map[spending.By]func(*store.Tx, []string) (map[string]string, error){
		spending.ByAccount: NamesTx, spending.ByKey: KeyNamesTx,
	} {
		if !slices.Contains(r.By, part) {
			continue
		}
		names, err := read(tx, r.IDs(part))
		if err != nil {
			return err
		}
		if r.Names == nil {
			r.Names = map[spending.By]map[string]string{}
		}
		r.Names[part] = names
	}
	return nil
}

// KeyNamesTx returns the name of each key by id, or its hint if it has no name. Deleted keys have
// names too.
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
