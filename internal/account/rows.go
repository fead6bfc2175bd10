package account

import (
	"fmt"

	"tollgate/internal/store"
)

// listTx returns up to limit rows of a query for limit+1 rows, and reports whether there are more.
func listTx[T any](tx *store.Tx, limit int, scan func(store.Row) (T, error), query string, args ...any) ([]T, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	list, err := store.Collect(tx, scan, query, args...)
	if err != nil {
		return nil, false, fmt.Errorf("read a list: %w", err)
	}
	if len(list) > limit {
		return list[:limit], true, nil
	}
	return list, false, nil
}

// ids returns the identifier of each element.
func ids[T any](list []T, idOf func(T) string) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = idOf(e)
	}
	return out
}
