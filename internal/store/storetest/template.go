package storetest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/migrations"
)

// Migrating a database takes longer than most tests. So tests get a copy of a template: a migrated
// SQLite file, created once per folder of temporary files, or a migrated PostgreSQL database,
// created once per server.

// templateTime bounds the creation of a template, or the wait for another process that creates it.
const templateTime = 2 * time.Minute

// templateLock is the advisory lock, in the server's first database, of the process that creates
// the template.
const templateLock = 7_020_312

// sqliteTemplate returns the content of a migrated SQLite file. The first test process creates the
// file in the folder of temporary files, and the other processes read the file. The file's name
// changes with the migrations.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) {
	hash, err := migrationsHash()
	if err != nil {
		return nil, err
	}
	template := filepath.Join(os.TempDir(), "tollgate-migrated-"+hash+".db")
	if content, err := os.ReadFile(template); err == nil {
		return content, nil
	}
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers are in the folder of temporary files
	path := filepath.Join(dir, "template.db")
	if err := migrate("sqlite:" + path); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	// The rename is atomic: no other process reads half a file. If the rename fails
	// (another user may own the name), each process creates its own file.
	_ = os.Rename(path, template)
	return content, nil
})

// postgresTemplate returns the name of a migrated database on the server of EnvPostgres. The name
// changes with the migrations, because a server may keep the databases of older migrations.
var postgresTemplate = sync.OnceValues(func() (name string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), templateTime)
	defer cancel()
	hash, err := migrationsHash()
	if err != nil {
		return "", err
	}
	name = "migrated_" + hash
	address, err := url.Parse(os.Getenv(EnvPostgres))
	if err != nil {
		return "", err
	}
	admin, err := sql.Open("pgx", address.String())
	if err != nil {
		return "", err
	}
	defer admin.Close()
	conn, err := admin.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close() // releases the lock too
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return "", err
	}
	var found bool
	if err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, name).Scan(&found); err != nil {
		return "", err
	}
	if found {
		return name, nil
	}
	unfinished := strings.ToLower(id.New("template_"))
	if _, err := conn.ExecContext(ctx, `CREATE DATABASE `+unfinished); err != nil {
		return "", err
	}
	address.Path = "/" + unfinished
	if err := migrate(address.String()); err != nil {
		return "", err
	}
	_, err = conn.ExecContext(ctx, `ALTER DATABASE `+unfinished+` RENAME TO `+name)
	return name, err
})

// migrate runs all migrations on the empty database at an address.
func migrate(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), templateTime)
	defer cancel()
	db, err := store.Open(ctx, address, store.Options{})
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), db.Close())
}

// MigrateTo runs the migrations up to a number on the empty database at an address. The result is
// the schema of an older version.
func MigrateTo(t testing.TB, address string, number int64) {
	t.Helper()
	files, err := migrations.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	older := fstest.MapFS{}
	for _, file := range files {
		text, err := migrations.Files.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if file.Name() < fmt.Sprintf("%04d", number+1) {
			older[file.Name()] = &fstest.MapFile{Data: text}
		}
	}
	db, err := store.Open(t.Context(), address, store.Options{Migrations: older})
	if err == nil {
		err = errors.Join(db.Migrate(t.Context()), db.Close())
	}
	if err != nil {
		t.Fatalf("migrate to %d: %v", number, err)
	}
}

// migrationsHash returns a hash of the names and contents of all migrations.
func migrationsHash() (string, error) {
	files, err := migrations.Files.ReadDir(".")
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no migrations: %w", err)
	}
	sum := sha256.New()
	for _, file := range files {
		text, err := migrations.Files.ReadFile(file.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", file.Name(), len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
