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
	// ErrServed reports that another process serves the SQLite file.
	ErrServed = errors.New("another tollgate process serves this database file")
	// ErrOtherName reports that the SQLite file is in use under another name, a hard link. SQLite
	// names the write-ahead log after the file, so two names would have two logs, and the file
	// would be destroyed.
	ErrOtherName = errors.New("this database file has another name (a hard link) and is in use under that name; use that name here too")
)

// sqliteFile is a descriptor of an SQLite file, in addition to SQLite's descriptors. It is open as
// long as the database is open.
//
// Closing any descriptor of a file drops the POSIX locks that SQLite holds on the file in this
// process. So sqliteFile is not an os.File, is opened once, and is closed last. Its locks belong to
// the descriptor and cover bytes that SQLite never locks.
type sqliteFile struct {
	fd      int // -1 after close
	path    string
	serving atomic.Bool
}

// openSQLiteFile opens or creates the file (mode 0600). It returns ErrOtherName if the file is in
// use under another name. The path of the result has no symbolic links, because SQLite names its
// log after the resolved path.
func openSQLiteFile(path string) (*sqliteFile, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the database file: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	f := &sqliteFile{fd: fd}
	if f.path, err = filepath.EvalSymlinks(path); err == nil {
		err = f.claimName()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database file: %w", err), f.close())
	}
	return f, nil
}

// claimName claims the file for its present name. It returns ErrOtherName if another name is
// claimed or has the log of a killed process. A claim ends when its descriptor is closed.
func (f *sqliteFile) claimName() error {
	var file, folder unix.Stat_t
	if err := unix.Fstat(f.fd, &file); err != nil {
		return &fs.PathError{Op: "stat", Path: f.path, Err: err}
	}
	if err := unix.Stat(filepath.Dir(f.path), &folder); err != nil {
		return &fs.PathError{Op: "stat", Path: filepath.Dir(f.path), Err: err}
	}
	// The folder is identified by its inode, because its path may differ in a container.
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

// hasNoOtherLog reports whether the folder has no log of a killed process under another name of the
// file. SQLite finds a log only by the name of the file.
func (f *sqliteFile) hasNoOtherLog() (bool, error) {
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

// close drops all locks. SQLite must have closed the file before.
func (f *sqliteFile) close() error {
	if f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	f.serving.Store(false)
	return unix.Close(fd)
}

// LockFile takes the lock that only one process, the server of an SQLite file, can hold, under any
// name of the file. LockFile returns ErrServed if another process holds the lock. The lock
// ends when release is called, the database is closed or the process dies, so a new holder knows
// that the former server is dead. A server keeps the lock until the database is closed. Subcommands
// write without the lock. On PostgreSQL many nodes serve one database, and LockFile is a no-op.
func (db *DB) LockFile() (release func() error, err error) {
	if db.dialect == PostgreSQL {
		return func() error { return nil }, nil
	}
	f := db.file
	sidecar, created, err := lockSidecar(f.path + ".lock")
	if err == nil {
		err = lockServing(f.fd)
	}
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EACCES) {
			err = ErrServed
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", f.path, err), releaseSidecar(sidecar, created))
	}
	f.serving.Store(true)
	return func() error {
		f.serving.Store(false)
		return errors.Join(unlockServing(f.fd), releaseSidecar(sidecar, created))
	}, nil
}

// lockSidecar locks the file PATH.lock next to the database, for systems without
// open-file-description locks and for versions that know only this lock. created reports whether
// lockSidecar created the file. If lockSidecar returns both an error and a file, the caller must
// call releaseSidecar.
func lockSidecar(path string) (sidecar *os.File, created bool, err error) {
	for {
		sidecar, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if created = err == nil; errors.Is(err, fs.ErrExist) {
			sidecar, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		}
		if err != nil {
			return nil, false, fmt.Errorf("open the lock file: %w", err)
		}
		if err := unix.Flock(int(sidecar.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return sidecar, false, err // another process holds the lock and owns the file
		}
		// The former holder may have removed the file after it was opened above.
		openedInfo, err := sidecar.Stat()
		if err != nil {
			return sidecar, false, err
		}
		if pathInfo, err := os.Stat(path); err == nil && os.SameFile(openedInfo, pathInfo) {
			return sidecar, created, nil
		}
		if err := sidecar.Close(); err != nil {
			return nil, false, err
		}
	}
}

// releaseSidecar releases the lock on a sidecar file. If created is true, it removes the file
// first, so that no process locks a file that is about to disappear.
func releaseSidecar(sidecar *os.File, created bool) (err error) {
	if sidecar == nil {
		return nil
	}
	if created {
		err = os.Remove(sidecar.Name())
	}
	return errors.Join(err, sidecar.Close())
}

// IsServed reports whether this or another process serves the SQLite file. A migrating subcommand
// counts as a server for a moment. On PostgreSQL IsServed always returns true; the rows
// of the nodes show which nodes are alive.
func (db *DB) IsServed() (bool, error) {
	if db.dialect == PostgreSQL || db.file.serving.Load() {
		return true, nil
	}
	served, err := servingLocked(db.file)
	if err != nil {
		return false, fmt.Errorf("check whether a process serves %s: %w", db.file.path, err)
	}
	return served, nil
}
