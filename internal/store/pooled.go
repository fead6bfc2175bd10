package store

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// pooled adds to an error of prepared statements what to do about it. They come
// of poolers that give each transaction another of the server's connections and
// do not know which statements were prepared on which. Another error is returned
// as it is.
func pooled(err error) error {
	if !mixedUp(err) {
		return err
	}
	return fmt.Errorf("%w; is there a pooler in transaction mode between that does not keep prepared statements (PgBouncer before 1.21)? "+
		"Then add default_query_exec_mode=cache_describe to the database's address", err)
}

// mixedUp tells whether a prepared statement is not where it should be.
func mixedUp(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P05" || pg.Code == "26000") // duplicate and unknown prepared statement
}
