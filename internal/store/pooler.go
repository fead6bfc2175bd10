package store

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// explainPooler adds advice to an error about a missing or unknown prepared statement. Poolers
// cause such errors if they give each transaction another server connection and do not track
// prepared statements. Other errors are returned unchanged.
func explainPooler(err error) error {
	if !isStatementLost(err) {
		return err
	}
	return fmt.Errorf("%w; is there a pooler in transaction mode between that does not keep prepared statements (PgBouncer before 1.21)? "+
		"Then add default_query_exec_mode=cache_describe to the database's address", err)
}

// isStatementLost reports whether err is about an unknown or duplicate prepared statement.
func isStatementLost(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P05" || pg.Code == "26000") // duplicate and unknown prepared statement
}
