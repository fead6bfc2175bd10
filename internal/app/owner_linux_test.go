package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"tollgate/internal/catalog/secret"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestFilesOfOthers checks that the error for an unreadable file names its owner and gives advice,
// for every kind of file.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the file alone is denied
		t.Fatal(err)
	}
	s := testSettings(t, storetest.SQLite(t), "")
	for name, read := range map[string]func() error{
		"config":  func() error { _, err := ReadSettings(Sources{File: path}); return err },
		"secret":  func() error { _, err := readSecretFile(path); return err },
		"catalog": func() error { _, err := readFirst(path, Providers()); return err },
		"apply":   func() error { return Apply(t.Context(), s, path, Applying{Lookup: os.LookupEnv}) },
		"import":  func() error { _, err := store.OpenForeign(t.Context(), path); return ExplainPermission(err) },
	} {
		var err error
		asOther(func() { err = read() })
		if want := "the file " + path + " cannot be read and written by user "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	var why string
	asOther(func() { _, why = secret.Resolve("file:"+path, os.LookupEnv) })
	if !strings.Contains(why, "belongs to another user") {
		t.Errorf("a line's secret: %q", why)
	}
}

// asOther calls a function with the rights of another user on files, if this one is root.
func asOther(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its rights
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		do()
	}()
	<-done
}
