// Package access owns what is said of files, folders and addresses that this process
// may not use: whose they are, and what to do.
//
// Invariants: it changes nothing, and a fault of another kind is told as it is.
package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// What access(2) asks for.
const (
	mayEnter = 1
	mayWrite = 2
	mayRead  = 4
)

// Files that SQLite and tollgate keep beside a database file.
var besideDatabase = [...]string{"-wal", "-shm", ".lock"}

// Check says which file or folder keeps this user from an SQLite file, and
// whose it is: SQLite itself tells a number.
func Check(path string) error {
	folder := filepath.Dir(path)
	for ; ; folder = filepath.Dir(folder) { // the nearest one that is there
		_, err := os.Stat(folder)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			return WithOwner(folder, err)
		}
	}
	if err := syscall.Access(folder, mayWrite|mayEnter); err != nil {
		return WithOwner(folder, err)
	}
	for _, name := range append([]string{""}, besideDatabase[:]...) {
		if err := syscall.Access(path+name, mayRead|mayWrite); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return WithOwner(path+name, err)
		}
	}
	return nil
}

// WithOwner says of a file or folder that cannot be used whose it is, and what to do;
// another fault is told as it is. Of what cannot be looked at, the nearest folder that
// can is named.
func WithOwner(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w", path, bare(err))
	}
	info, seen := os.Stat(path)
	for ; seen != nil && path != filepath.Dir(path); info, seen = os.Stat(path) {
		path = filepath.Dir(path)
	}
	what := "file"
	if seen == nil && info.IsDir() {
		what = "folder"
	}
	uid, known := ownerOf(info)
	switch self := os.Geteuid(); {
	case !known:
		return fmt.Errorf("the %s %s cannot be read and written by %s", what, path, userName(self))
	case uid == self:
		return fmt.Errorf("the %s %s cannot be read and written by %s, whose it is: allow it with chmod u+rwX", what, path, userName(self))
	default:
		return fmt.Errorf("the %s %s belongs to %s and cannot be read and written by %s: run this as %[3]s, or give it to %[4]s with chown",
			what, path, userName(uid), userName(self))
	}
}

// Explained says of a file or folder that an error of the file system denies whose it
// is, and what to do; every other error is returned as it is.
func Explained(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && errors.Is(err, fs.ErrPermission) {
		return WithOwner(at.Path, err)
	}
	return err
}

// bare is an error of the file system without the path in it.
func bare(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// ownerOf returns the user whose a file is; false: nobody knows.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	if info == nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// userName is a user by name and number.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return "user " + u.Username
	}
	return "user " + number
}
