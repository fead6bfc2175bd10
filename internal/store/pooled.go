package store

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// pooled adds advice to an error about a missing or mixed-up prepared statement. Poolers cause such
// errors if they give each transaction another server connection and do not track prepared
// statements. Other errors are returned unchanged.
func pooled(err error) error {
	if !mixedUp(err) {
		return err
	}
	return fmt.Errorf("%w; is there a pooler in transaction mode between that does not keep prepared statements (PgBouncer before 1.21)? "+
		"Then add default_query_exec_mode=cache_describe to the database's address", err)
}

// mixedUp reports whether err is about a missing or mixed-up prepared statement.
func mixedUp(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P05" || pg.Code == "26000") // duplicate and unknown prepared statement
}
