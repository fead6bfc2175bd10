package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestOneProcessServesAFile(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	served := func(want bool) {
		t.Helper()
		if got, err := db.IsServed(); err != nil || got != want {
			t.Errorf("IsServed: %v, %v; want %v", got, err, want)
		}
	}
	served(false)
	release, err := db.LockFile()
	if err != nil {
		t.Fatal(err)
	}
	served(true)
	if _, err := db.LockFile(); !errors.Is(err, store.ErrServed) {
		t.Errorf("second lock: %v; want ErrServed", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	served(false)
	again, err := db.LockFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
}

// TestLockLeavesNoFile checks that the process that created the lock file removes it, so that an
// audit of a backup leaves the backup unchanged, and that an existing file stays.
func TestLockLeavesNoFile(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	lockPath := strings.TrimPrefix(url, "sqlite:") + ".lock"
	exists := func() bool {
		_, err := os.Stat(lockPath)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	lock := func() {
		t.Helper()
		release, err := db.LockFile()
		if err != nil || !exists() {
			t.Fatalf("lock: %v, the lock file exists: %v; want true", err, exists())
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	if exists() {
		t.Fatal("the lock file exists before the first lock, want none")
	}
	lock()
	if exists() {
		t.Error("the lock file exists after the release, want it removed")
	}
	if err := os.WriteFile(lockPath, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lock()
	if !exists() {
		t.Error("the release removed a lock file of another process, want it kept")
	}
}

// otherName gives a database file another name, in a new folder.
func otherName(t *testing.T, url string, link func(path, other string) error) string {
	t.Helper()
	other := filepath.Join(t.TempDir(), "other.db")
	if err := link(strings.TrimPrefix(url, "sqlite:"), other); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + other
}

// TestSymbolicLinkIsTheFile opens a served file through a symbolic link. The lock counts under both
// names, and each name shows the writes through the other name.
func TestSymbolicLinkIsTheFile(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	if _, err := db.LockFile(); err != nil {
		t.Fatal(err)
	}
	linked := otherName(t, url, os.Symlink)
	other := storetest.Open(t, linked, store.Options{})
	if _, err := other.LockFile(); !errors.Is(err, store.ErrServed) {
		t.Errorf("lock through a link: %v; want ErrServed", err)
	}
	if served, err := other.IsServed(); err != nil || !served {
		t.Errorf("IsServed: %v, %v; want true", served, err)
	}
	if err := errors.Join(node.Register(ctx, other, "b"), node.Register(ctx, db, "a")); err != nil {
		t.Fatal(err)
	}
	if nodes, err := node.List(ctx, other); err != nil || len(nodes) != 2 {
		t.Errorf("nodes %v, %v; want two", nodes, err)
	}
	if _, err := os.Stat(strings.TrimPrefix(linked, "sqlite:") + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a write-ahead log next to the link: %v; want none", err)
	}
}

// TestHardLinkIsRefused opens a file under two names. While one name is in use, Open rejects the
// other name and writes no file next to it, whether or not the file is served. After Close, the
// other name may be used.
func TestHardLinkIsRefused(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), storetest.SQLite(t)
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	linked := otherName(t, url, os.Link)
	refused := func(url string) {
		t.Helper()
		if _, err := store.Open(ctx, url, store.Options{}); !errors.Is(err, store.ErrOtherName) {
			t.Errorf("Open(%q): %v; want ErrOtherName", url, err)
		}
	}
	refused(linked)
	if _, err := db.LockFile(); err != nil {
		t.Fatal(err)
	}
	refused(linked)
	logs, err := filepath.Glob(strings.TrimPrefix(linked, "sqlite:") + "-*")
	if err != nil || len(logs) > 0 {
		t.Errorf("files next to the other name: %v, %v; want none", logs, err)
	}
	if err := errors.Join(db.Migrate(ctx), node.Register(ctx, db, "a"), db.Close()); err != nil {
		t.Fatal(err)
	}
	other := storetest.Open(t, linked, store.Options{})
	if nodes, err := node.List(ctx, other); err != nil || len(nodes) != 1 {
		t.Errorf("nodes %v, %v; want one", nodes, err)
	}
	refused(url)
}

// TestLogOfAnotherName checks that Open rejects a name if a killed process has left a log under
// another name, because SQLite would not find the log.
func TestLogOfAnotherName(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), storetest.SQLite(t)
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(url, "sqlite:")
	if err := errors.Join(db.Migrate(ctx), db.Close()); err != nil {
		t.Fatal(err)
	}
	linked := path + ".link"
	if err := errors.Join(os.Link(path, linked), os.WriteFile(path+"-wal", []byte("frames"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(ctx, "sqlite:"+linked, store.Options{}); !errors.Is(err, store.ErrOtherName) {
		t.Errorf("got %v; want ErrOtherName", err)
	}
	storetest.Open(t, url, store.Options{})
}

// TestLocksOfSQLiteStayFree runs SQLite operations that lock the whole file while our lock is held.
func TestLocksOfSQLiteStayFree(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), storetest.SQLite(t)
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	release, err := db.LockFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	session, err := db.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var busy int64
	b := db.NewBatch()
	b.Exec(nil, `VACUUM`)
	b.Query(func(row store.Row) error {
		var pages, moved int64
		return row.Scan(&busy, &pages, &moved)
	}, `PRAGMA wal_checkpoint(TRUNCATE)`)
	if err := errors.Join(session.Run(ctx, b), session.Close(true)); err != nil || busy != 0 {
		t.Fatalf("the checkpoint returned busy %d, %v; want 0", busy, err)
	}
	if err := errors.Join(db.Close(), release()); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(strings.TrimPrefix(url, "sqlite:") + suffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s after Close: %v; want it gone", suffix, err)
		}
	}
}
