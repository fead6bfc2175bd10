package requestlog

import (
	"fmt"

	"tollgate/internal/store"
)

// KeysWithCodeTx returns the keys of the requests since a time that ended with an error code.
func KeysWithCodeTx(tx *store.Tx, code string, sinceMS int64) ([]string, error) {
	keys, err := store.Collect(tx, func(row store.Row) (key string, err error) {
		return key, row.Scan(&key)
	}, `SELECT DISTINCT key FROM ledger_receipt WHERE code = $1 AND code <> '' AND id >= $2`, code, firstRequest(sinceMS))
	if err != nil {
		return nil, fmt.Errorf("read the keys of refused requests: %w", err)
	}
	return keys, nil
}
