package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Served tells whether a process serves this SQLite file, be it this one. For a
// moment a subcommand that migrates counts as one. On PostgreSQL it is true: the
// rows of the nodes say who is alive.
func (db *DB) Served() (bool, error) {
	if db.dialect == PostgreSQL {
		return true, nil
	}
	file, err := os.Open(db.path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask who serves %s: %w", db.path, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	served := errors.Is(err, unix.EWOULDBLOCK)
	if served {
		err = nil
	}
	return served, errors.Join(err, file.Close())
}
