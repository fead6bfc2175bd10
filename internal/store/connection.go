package store

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsStarting reports whether err comes from a running PostgreSQL server that will accept
// connections later: it is starting or stopping, or has reached its limit of connections. A wrong
// password and an unknown database do not count.
func IsStarting(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	return strings.HasPrefix(pg.Code, "08") || // of the connection
		slices.Contains([]string{"53300", "57P01", "57P02", "57P03"}, pg.Code) // too many connections; two shutdowns; starting
}

// ConnectionLost reports whether err means that a connection to PostgreSQL broke. The server may
// still have run the statement.
func ConnectionLost(err error) bool {
	var op *net.OpError
	return IsStarting(err) || pgconn.SafeToRetry(err) || errors.As(err, &op) ||
		slices.ContainsFunc([]error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed},
			func(lost error) bool { return errors.Is(err, lost) })
}
