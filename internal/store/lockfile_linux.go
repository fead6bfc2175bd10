package store

import (
	"errors"
	"hash/fnv"
	"io"

	"golang.org/x/sys/unix"
)

// The bytes of a database file that are locked here. SQLite locks bytes around 1<<30, and its
// largest file ends at 1<<48.
const (
	servingByte = 1 << 62 // exclusive lock of the process that serves the file
	firstName   = 1 << 61 // shared locks of all processes that have the file open: a byte for each name
	names       = 1 << 60
)

// lockName locks the byte of a name and reports whether no other name is in use.
func lockName(fd int, name string, _ bool) (bool, error) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // a hash takes everything
	own := int64(h.Sum64() % names)
	if err := setLock(fd, unix.F_RDLCK, firstName+own, 1); err != nil {
		return false, err
	}
	for _, others := range [2][2]int64{{firstName, own}, {firstName + own + 1, names - own - 1}} {
		if others[1] == 0 { // a length of 0 would be one without an end
			continue
		}
		if locked, err := isLocked(fd, others[0], others[1]); err != nil || locked {
			return false, err
		}
	}
	return true, nil
}

func lockServing(fd int) error { return setLock(fd, unix.F_WRLCK, servingByte, 1) }

func unlockServing(fd int) error {
	if fd < 0 { // it went with the descriptor
		return nil
	}
	return setLock(fd, unix.F_UNLCK, servingByte, 1)
}

func servingLocked(f *liteFile) (bool, error) { return isLocked(f.fd, servingByte, 1) }

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
