package store_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestForeignDatabases: rows come as texts by column, whatever the database calls their
// types, and nothing can be written.
func TestForeignDatabases(t *testing.T) {
	t.Parallel()
	lite := filepath.Join(t.TempDir(), "other.db")
	for name, source := range map[string]struct{ driver, database, opened, types string }{
		"sqlite":   {"sqlite", lite, lite, `flag boolean, list text`},
		"postgres": {"pgx", storetest.PostgreSQL(t), "", `flag boolean, list text[]`},
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
				t.Errorf("read %v, %v", got, err)
			}
			if err := f.Each(t.Context(), "gone", nil); !errors.Is(err, store.ErrNoTable) {
				t.Errorf("a table that is not there: %v", err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := store.OpenForeign(t.Context(), filepath.Join(t.TempDir(), "gone.db")); err == nil {
		t.Error("a file that is not there opens")
	}
}
