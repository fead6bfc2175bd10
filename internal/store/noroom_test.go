package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tollgate/internal/store"
)

func TestNoRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Code: "53100"}, true},
		{fmt.Errorf("write the books: %w", &pgconn.PgError{Code: "53100"}), true},
		{&pgconn.PgError{Code: "53200"}, false}, // memory
		{&pgconn.PgError{Code: "53300"}, false}, // connections
		{&pgconn.PgError{Code: "57P01"}, false},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, true},
		{errors.Join(errors.New("x"), syscall.EDQUOT), true},
		{syscall.EACCES, false},
		{nil, false},
	} {
		if got := store.NoRoom(c.err); got != c.want {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}
