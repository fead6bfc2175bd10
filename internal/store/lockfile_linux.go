package store

import (
	"errors"
	"hash/fnv"
	"io"

	"golang.org/x/sys/unix"
)

// Bytes of a database file for our locks. SQLite locks bytes around 1<<30, and the largest SQLite file
// ends at 1<<48.
const (
	servingByte = 1 << 62 // exclusive lock of the process that serves the file
	firstName   = 1 << 61 // shared locks of all processes that have the file open: a byte for each name
	names       = 1 << 60
)

// lockName locks the byte of a name and reports whether no other name is in use.
func lockName(fd int, name string, _ bool) (bool, error) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // a hash's Write never fails
	own := int64(h.Sum64() % names)
	if err := setLock(fd, unix.F_RDLCK, firstName+own, 1); err != nil {
		return false, err
	}
	for _, span := range [2][2]int64{{firstName, own}, {firstName + own + 1, names - own - 1}} {
		if span[1] == 0 { // a lock of length 0 has no end
			continue
		}
		if locked, err := isLocked(fd, span[0], span[1]); err != nil || locked {
			return false, err
		}
	}
	return true, nil
}

func lockServing(fd int) error { return setLock(fd, unix.F_WRLCK, servingByte, 1) }

func unlockServing(fd int) error {
	if fd < 0 { // the lock ended when the descriptor was closed
		return nil
	}
	return setLock(fd, unix.F_UNLCK, servingByte, 1)
}

func servingLocked(f *sqliteFile) (bool, error) { return isLocked(f.fd, servingByte, 1) }

// setLock sets an open-file-description lock without waiting. The lock belongs to the descriptor
// and not to the process.
func setLock(fd int, kind int16, start, length int64) error {
	for {
		err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: start, Len: length})
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isLocked reports whether another descriptor has a lock on one of the bytes.
func isLocked(fd int, start, length int64) (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: start, Len: length}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lock)
	return lock.Type != unix.F_UNLCK, err
}
