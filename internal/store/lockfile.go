package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var (
	// ErrServed reports that another process serves this SQLite file.
	ErrServed = errors.New("another tollgate process serves this database file")
	// ErrOtherName means that an SQLite file is in use under another name, a hard link. SQLite
	// names the write-ahead log after the file, so two names would create two logs for one file and
	// destroy it.
	ErrOtherName = errors.New("this database file has another name (a hard link) and is in use under that one: use that name here too")
)

// liteFile is a process's own descriptor of an SQLite file, beside SQLite's. It is open as long as
// the database is.
//
// It is no os.File and is opened once and closed last, because closing any descriptor of a file
// drops SQLite's POSIX locks on it in this process. Its own locks belong to the descriptor and are
// on bytes far from SQLite's, so neither sees the other's.
type liteFile struct {
	fd      int // -1: closed
	path    string
	serving atomic.Bool
}

// openLiteFile opens or creates the file (mode 0600) and refuses a file in use under another name.
// The path of the result has no symbolic links, because SQLite names its log after the resolved
// path.
func openLiteFile(path string) (*liteFile, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the database file: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	f := &liteFile{fd: fd}
	if f.path, err = filepath.EvalSymlinks(path); err == nil {
		err = f.claimName()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database file: %w", err), f.close())
	}
	return f, nil
}

// claimName makes every process fail that opens the file under another name, or fails itself with
// ErrOtherName. The claim ends with the descriptor.
func (f *liteFile) claimName() error {
	var file, folder unix.Stat_t
	if err := unix.Fstat(f.fd, &file); err != nil {
		return &fs.PathError{Op: "stat", Path: f.path, Err: err}
	}
	if err := unix.Stat(filepath.Dir(f.path), &folder); err != nil {
		return &fs.PathError{Op: "stat", Path: filepath.Dir(f.path), Err: err}
	}
	// The folder itself, not its path: a container may see it elsewhere.
	name := fmt.Sprintf("%d:%d:%s", folder.Dev, folder.Ino, filepath.Base(f.path))
	free, err := lockName(f.fd, name, file.Nlink > 1)
	if err == nil && free && file.Nlink > 1 {
		free, err = f.hasNoOtherLog()
	}
	if err == nil && !free {
		err = fmt.Errorf("%s: %w", f.path, ErrOtherName)
	}
	return err
}

// hasNoOtherLog reports whether no killed process has left a log under another name of the file in
// its folder. SQLite finds a log only under the log's own name.
func (f *liteFile) hasNoOtherLog() (bool, error) {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return false, err
	}
	self, err := os.Stat(f.path)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		base, isLog := strings.CutSuffix(entry.Name(), "-wal")
		if !isLog || base == filepath.Base(f.path) {
			continue
		}
		other, err := os.Stat(filepath.Join(filepath.Dir(f.path), base))
		if err != nil || !os.SameFile(self, other) {
			continue
		}
		if log, err := entry.Info(); err == nil && log.Size() > 0 {
			return false, nil
		}
	}
	return true, nil
}

// close drops all locks; SQLite must have closed the file.
func (f *liteFile) close() error {
	if f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	f.serving.Store(false)
	return unix.Close(fd)
}

// LockFile takes the lock of the one process that serves an SQLite file, under any name of the
// file. The lock ends when release is called, the database is closed or the process dies, so a new
// holder knows that the former server is dead. A server keeps the lock until the database is
// closed. Subcommands write without it. It returns ErrServed if another process has the lock. On
// PostgreSQL many nodes serve one database, and LockFile is a no-op.
func (db *DB) LockFile() (release func() error, err error) {
	if db.dialect == PostgreSQL {
		return func() error { return nil }, nil
	}
	f := db.file
	beside, created, err := lockBeside(f.path + ".lock")
	if err == nil {
		err = lockServing(f.fd)
	}
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EACCES) {
			err = ErrServed
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", f.path, err), releaseBeside(beside, created))
	}
	f.serving.Store(true)
	return func() error {
		f.serving.Store(false)
		return errors.Join(unlockServing(f.fd), releaseBeside(beside, created))
	}, nil
}

// lockBeside locks a file beside the database, for systems without open-file-description locks and
// for versions that know only this lock. created reports whether it created the file. If it returns
// an error and a file, call releaseBeside.
func lockBeside(path string) (beside *os.File, created bool, err error) {
	for {
		beside, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if created = err == nil; errors.Is(err, fs.ErrExist) {
			beside, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		}
		if err != nil {
			return nil, false, fmt.Errorf("open the lock file: %w", err)
		}
		if err := unix.Flock(int(beside.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return beside, false, err // another process has the lock and the file
		}
		// The former holder may have removed the file since it was opened here.
		opened, err := beside.Stat()
		if err != nil {
			return beside, false, err
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(opened, named) {
			return beside, created, nil
		}
		if err := beside.Close(); err != nil {
			return nil, false, err
		}
	}
}

// releaseBeside releases the lock on a file beside the database. If created is true, it removes the
// file first, so that no process locks a file that is about to disappear.
func releaseBeside(beside *os.File, created bool) (err error) {
	if beside == nil {
		return nil
	}
	if created {
		err = os.Remove(beside.Name())
	}
	return errors.Join(err, beside.Close())
}

// IsServed reports whether a process, this one included, serves this SQLite file. A subcommand that
// migrates counts for a moment. On PostgreSQL it is always true: the rows of the nodes say which
// nodes are alive.
func (db *DB) IsServed() (bool, error) {
	if db.dialect == PostgreSQL || db.file.serving.Load() {
		return true, nil
	}
	served, err := servingLocked(db.file)
	if err != nil {
		return false, fmt.Errorf("ask who serves %s: %w", db.file.path, err)
	}
	return served, nil
}
