//go:build !linux

package store

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Without open-file-description locks, only the sidecar file is locked, and a database file with
// several names is rejected.

func lockName(_ int, _ string, several bool) (bool, error) { return !several, nil }

func lockServing(int) error { return nil }

func unlockServing(int) error { return nil }

func servingLocked(f *sqliteFile) (bool, error) {
	sidecar, err := os.Open(f.path + ".lock")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	err = unix.Flock(int(sidecar.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	locked := errors.Is(err, unix.EWOULDBLOCK)
	if locked {
		err = nil
	}
	return locked, errors.Join(err, sidecar.Close())
}
