// Package storetest owns the databases for tests: a fresh, migrated one for each test, on either
// engine. Invariant: a test on both engines never passes on one engine only.
package storetest

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// EnvPostgres names the variable with the address of a PostgreSQL server for test databases. `make
// test` starts a server and sets it. If no server is installed, `make test` sets Absent, runs the
// tests on SQLite only, and fails at its end.
const EnvPostgres = "TOLLGATE_TEST_POSTGRES"

// Absent is the value of EnvPostgres that skips the tests on PostgreSQL.
const Absent = "absent"

// Each runs a test on a fresh SQLite file and on a fresh PostgreSQL database.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	EachURL(t, func(t *testing.T, url string) {
		test(t, Open(t, url, store.Options{}))
	})
}

// EachURL runs a test on the addresses of two fresh, migrated databases and removes them when the
// test ends. Use it for tests that call Open with a clock: the tests of both databases run at the
// same time and must not share a clock.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	each(t, migratedSQLite, migratedPostgreSQL, test)
}

// EachEmpty is EachURL for tests of a first start: the databases are not migrated.
func EachEmpty(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	each(t, SQLite, PostgreSQL, test)
}

func each(t *testing.T, sqlite, postgres func(testing.TB) string, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, sqlite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres(t))
	})
}

// Open opens and migrates a database and closes it when the test ends. A missing SQLite file is
// created as a copy of a migrated one.
func Open(t testing.TB, url string, opts store.Options) *store.DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		seed(t, path)
	}
	db, err := store.Open(ctx, url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	return db
}

// TwoNodes opens a database for two nodes. On SQLite, where one process serves a file, both are the
// same.
func TwoNodes(t testing.TB, url string) [2]*store.DB {
	t.Helper()
	first := Open(t, url, store.Options{})
	if first.OneProcess() {
		return [2]*store.DB{first, first}
	}
	return [2]*store.DB{first, Open(t, url, store.Options{})}
}

// WithIsolation returns the address of a PostgreSQL database with another default level of isolation
// for its transactions. The address of an SQLite file is unchanged, because its writers run one by one.
func WithIsolation(t testing.TB, address, level string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme == "sqlite" {
		return address
	}
	query := u.Query()
	query.Set("default_transaction_isolation", level)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // the driver takes a plus literally
	return u.String()
}

// Update runs fn in a writing transaction, which must succeed.
func Update(t testing.TB, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// Exec runs one statement in a transaction of its own. The statement must succeed.
func Exec(t testing.TB, db *store.DB, text string, args ...any) {
	t.Helper()
	Update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec(text, args...)
		return err
	})
}

// View runs fn in a reading transaction, which must succeed.
func View(t testing.TB, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := db.View(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// seed creates the file of a migrated database unless the file exists.
func seed(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		return
	}
	content, err := sqliteTemplate()
	if err != nil {
		t.Fatalf("create the template of SQLite files: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// migratedSQLite returns the address of a migrated file.
func migratedSQLite(t testing.TB) string {
	t.Helper()
	address := SQLite(t)
	seed(t, strings.TrimPrefix(address, "sqlite:"))
	return address
}

// SQLite returns the address of a file that does not exist yet.
func SQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "tollgate.db")
}

// PostgreSQL creates an empty database and returns its address. Without a server the test fails; the
// test is skipped only if EnvPostgres is Absent.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	return createPostgreSQL(t, "")
}

// migratedPostgreSQL creates a migrated database.
func migratedPostgreSQL(t testing.TB) string {
	t.Helper()
	if server := os.Getenv(EnvPostgres); server == "" || server == Absent {
		return PostgreSQL(t) // reports the missing setting
	}
	template, err := postgresTemplate()
	if err != nil {
		t.Fatalf("create the template of PostgreSQL databases: %v", err)
	}
	return createPostgreSQL(t, " TEMPLATE "+template)
}

// createPostgreSQL creates a database and drops it when the test ends.
func createPostgreSQL(t testing.TB, like string) string {
	t.Helper()
	server := os.Getenv(EnvPostgres)
	switch server {
	case "":
		t.Fatalf("%s is not set: run the tests with `make test`, which starts a PostgreSQL server", EnvPostgres)
	case Absent:
		t.Skip("PostgreSQL is not installed: the test did NOT run on it")
	}
	address, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s: %v", EnvPostgres, err)
	}
	admin, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	admin.SetMaxOpenConns(1)
	name := strings.ToLower(id.New("test_"))
	if _, err := admin.Exec(`CREATE DATABASE ` + name + like); err != nil {
		t.Fatalf("create a test database: %v", err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(`DROP DATABASE ` + name + ` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
		if err := admin.Close(); err != nil {
			t.Error(err)
		}
	})
	address.Path = "/" + name
	return address.String()
}
