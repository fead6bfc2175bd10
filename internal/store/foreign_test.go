package store_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestForeignDatabases checks that rows of any database are read as texts by column, whatever the
// types, and that nothing can be written.
func TestForeignDatabases(t *testing.T) {
	t.Parallel()
	sqliteFile, maria := filepath.Join(t.TempDir(), "other.db"), storetest.MariaDB(t)
	for name, source := range map[string]struct{ driver, database, opened, types string }{
		"sqlite":   {"sqlite", sqliteFile, sqliteFile, `flag boolean, list text`},
		"postgres": {"pgx", storetest.PostgreSQL(t), "", `flag boolean, list text[]`},
		"mariadb":  {"mysql", maria + "?multiStatements=true&sql_mode=ansi_quotes", maria + "?parseTime=true", `flag tinyint(1), list json`},
	} {
		t.Run(name, func(t *testing.T) {
			if source.opened == "" {
				source.opened = source.database
			}
			db, err := sql.Open(source.driver, source.database)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			list := `["a","b"]`
			if name == "postgres" {
				list = `{a,b}`
			}
			if _, err := db.Exec(`CREATE TABLE "Other" (id bigint, share double precision, word text, ` + source.types + `);
				INSERT INTO "Other" VALUES (9007199254740993, 0.1, 'é "q"', true, '` + list + `');
				INSERT INTO "Other" (id, word) VALUES (-1, '')`); err != nil {
				t.Fatal(err)
			}
			f, err := store.OpenForeign(t.Context(), source.opened)
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]string
			err = f.Each(t.Context(), "Other", func(row map[string]string) error {
				if list := row["list"]; list == `["a", "b"]` {
					row["list"] = `["a","b"]`
				}
				if row["flag"] == "1" {
					row["flag"] = "true"
				}
				got = append(got, row)
				return nil
			})
			want := []map[string]string{{"id": "9007199254740993", "share": "0.1", "word": `é "q"`, "flag": "true", "list": `["a","b"]`},
				{"id": "-1", "word": ""}}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got rows %v, %v; want %v", got, err, want)
			}
			if err := f.Each(t.Context(), "gone", nil); !errors.Is(err, store.ErrNoTable) {
				t.Errorf("a missing table: got %v, want ErrNoTable", err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestForeignDatabasesThatDoNotOpen checks that the error gives advice and never shows a password.
func TestForeignDatabasesThatDoNotOpen(t *testing.T) {
	t.Parallel()
	const form = "USER:PASSWORD@tcp(HOST:3306)/DATABASE"
	for source, want := range map[string]string{
		filepath.Join(t.TempDir(), "gone.db"):          "no such file",
		"postgres://u:sesame@127.0.0.1:1/x":            "connect",
		"u:sesame@tcp(127.0.0.1:1)/x":                  "connection refused",
		"u:sesame@unix(/gone/socket)/x":                "no such file",
		"mysql://u:sesame@127.0.0.1:1/x":               form,
		"u:sesame@127.0.0.1/x":                         form,
		"u:sesame@tcp(127.0.0.1:1)":                    form,
		"u:sesame@tcp(127.0.0.1:1)/":                   form,
		"u:ses@ame/sesame@tcp(127.0.0.1:1/x":           form,
		"u:sesame@tcp(127.0.0.1:1)/x?parseTime=sesame": form,
	} {
		_, err := store.OpenForeign(t.Context(), source)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got %v, want %q without the password", source, err, want)
		}
	}
}

// TestForeignMariaDBIsASnapshot checks that rows added later by another program are not read.
func TestForeignMariaDBIsASnapshot(t *testing.T) {
	t.Parallel()
	address := storetest.MariaDB(t)
	storetest.LoadMariaDB(t, address, "CREATE TABLE a (n int); CREATE TABLE b (n int); INSERT INTO a VALUES (1)")
	f, err := store.OpenForeign(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	count := func(table string) (n int) {
		t.Helper()
		if err := f.Each(t.Context(), table, func(map[string]string) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("a"); n != 1 {
		t.Errorf("a has %d rows, want 1", n)
	}
	storetest.LoadMariaDB(t, address, "INSERT INTO b VALUES (1)")
	if n := count("b"); n != 0 {
		t.Errorf("b has %d rows, want none, because its row was added later", n)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
