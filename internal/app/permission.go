package app

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

// Arguments of access(2).
const (
	accessExecute = 1
	accessWrite   = 2
	accessRead    = 4
)

// besideDatabase are the suffixes of files next to an SQLite database.
var besideDatabase = [...]string{"-wal", "-shm", ".lock"}

// checkDatabaseAccess names the file or folder of an SQLite database that this process may not use,
// and its owner. SQLite itself reports only a number.
func checkDatabaseAccess(path string) error {
	folder := filepath.Dir(path)
	for ; ; folder = filepath.Dir(folder) { // the nearest existing folder
		_, err := os.Stat(folder)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			return permissionError(folder, err)
		}
	}
	if err := syscall.Access(folder, accessWrite|accessExecute); err != nil {
		return permissionError(folder, err)
	}
	for _, suffix := range append([]string{""}, besideDatabase[:]...) {
		if err := syscall.Access(path+suffix, accessRead|accessWrite); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return permissionError(path+suffix, err)
		}
	}
	return nil
}

// ExplainPermission adds the owner of the file and advice to an error of the file system, if this
// process lacks the permission. It returns other errors unchanged.
func ExplainPermission(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrPermission) {
		return permissionError(pathErr.Path, err)
	}
	return err
}

// permissionError returns an error with the owner of a file or folder and advice, if err means that
// this process lacks the permission. If the file itself is hidden, the error is about the nearest
// visible folder.
func permissionError(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w", path, withoutPath(err))
	}
	info, statErr := os.Stat(path)
	for ; statErr != nil && path != filepath.Dir(path); info, statErr = os.Stat(path) {
		path = filepath.Dir(path)
	}
	kind := "file"
	if statErr == nil && info.IsDir() {
		kind = "folder"
	}
	uid, known := ownerOf(info)
	switch self := os.Geteuid(); {
	case !known:
		return fmt.Errorf("the %s %s cannot be read and written by %s", kind, path, userName(self))
	case uid == self:
		return fmt.Errorf("the %s %s cannot be read and written by %s, its owner: allow it with chmod u+rwX", kind, path, userName(self))
	default:
		return fmt.Errorf("the %s %s belongs to %s and cannot be read and written by %s: run this as %[3]s, or give it to %[4]s with chown",
			kind, path, userName(uid), userName(self))
	}
}

// withoutPath returns an error of the file system without its path.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// ownerOf returns the user id of a file's owner, if the system has one.
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

// userName returns "user NAME", or the number of a user without a name.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return "user " + u.Username
	}
	return "user " + number
}
