package account

import (
	"database/sql"
	"errors"
)

// collect reads all rows with scan and closes them.
func collect[T any](rows *sql.Rows, scan func(func(...any) error) (T, error)) (list []T, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

// page cuts a list read with one extra row to limit, and reports whether it had the extra row.
func page[T any](list []T, limit int) ([]T, bool) {
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}

// ids returns the identifier of each element.
func ids[T any](list []T, of func(T) string) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = of(e)
	}
	return out
}
