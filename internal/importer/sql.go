package importer

import (
	"database/sql"
	"errors"
	"fmt"

	"tollgate/internal/store"
)

// Kinds of imported entries.
const (
	kindAccount = "account"
	kindKey     = "key"
)

// item is the account or key of an entry. An empty object means not imported yet.
type item struct{ mark, object string }

// itemTx reads the item of an entry.
func itemTx(tx *store.Tx, source, kind, id string) (i item, err error) {
	err = tx.QueryRow(`SELECT mark, object FROM importer_item WHERE source = $1 AND kind = $2 AND source_id = $3`,
		source, kind, id).Scan(&i.mark, &i.object)
	if errors.Is(err, sql.ErrNoRows) {
		return item{}, nil
	}
	if err != nil {
		return item{}, fmt.Errorf("read what was imported: %w", err)
	}
	return i, nil
}

// addItemTx records the item of an entry in the transaction that creates it.
func addItemTx(tx *store.Tx, source, kind, id string, i item) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO importer_item (source, kind, source_id, mark, object, created_ms) VALUES ($1, $2, $3, $4, $5, $6)`,
		source, kind, id, i.mark, i.object, now)
	if err != nil {
		return fmt.Errorf("note what was imported: %w", err)
	}
	return nil
}
