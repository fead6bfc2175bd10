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

// item is the record of an imported entry. Its mark detects another entry with the same id: an
// account's Mark, or the hash of a key. Its object is the id of the account or key created from the
// entry, or empty if the entry has not been imported.
type item struct{ mark, object string }

// itemTx reads the record of an entry.
func itemTx(tx *store.Tx, source, kind, id string) (i item, err error) {
	err = tx.QueryRow(`SELECT mark, object FROM importer_item WHERE source = $1 AND kind = $2 AND source_id = $3`,
		source, kind, id).Scan(&i.mark, &i.object)
	if errors.Is(err, sql.ErrNoRows) {
		return item{}, nil
	}
	if err != nil {
		return item{}, fmt.Errorf("read the record of an imported %s: %w", kind, err)
	}
	return i, nil
}

// addItemTx adds the record of an entry. Call addItemTx in the transaction that creates the account
// or key.
func addItemTx(tx *store.Tx, source, kind, id string, i item) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO importer_item (source, kind, source_id, mark, object, created_ms) VALUES ($1, $2, $3, $4, $5, $6)`,
		source, kind, id, i.mark, i.object, now)
	if err != nil {
		return fmt.Errorf("write the record of an imported %s: %w", kind, err)
	}
	return nil
}
