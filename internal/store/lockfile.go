package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrServed means that another process serves this SQLite file.
var ErrServed = errors.New("another tollgate process serves this database file")

// LockFile takes the lock that lets one process serve an SQLite file; it is
// gone when release is called or the process dies, so whoever gets it knows
// that the former server is dead. Subcommands write beside it without it. On
// PostgreSQL many nodes serve one database and LockFile does nothing.
func (db *DB) LockFile() (release func() error, err error) {
	if db.dialect == PostgreSQL {
		return func() error { return nil }, nil
	}
	file, err := os.OpenFile(db.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%s: %w", db.path, ErrServed)
		}
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
