package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"tollgate/internal/store"
	"tollgate/internal/store/migrations"
	"tollgate/internal/store/storetest"
)

// released returns the migrations of each released version, and of the next one.
func released(t *testing.T) map[string]fstest.MapFS {
	t.Helper()
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/released/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{} // the version by its text
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		versions[string(text)] = strings.TrimSuffix(filepath.Base(file), ".sql")
	}
	all, found, text := fstest.MapFS{}, map[string]fstest.MapFS{}, ""
	for _, name := range names {
		content, err := migrations.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: content}
		text += string(content)
		if version := versions[text]; version != "" {
			found[version] = fstest.MapFS{}
			for name, file := range all {
				found[version][name] = file
			}
		}
	}
	for _, version := range versions {
		if found[version] == nil {
			t.Errorf("a migration of the release %s was changed: released migrations never change", version)
		}
	}
	found["the next release"] = all
	return found
}

// TestUpgrade upgrades a database with a row in each table from every released version to this one,
// and to one with further migrations of every kind. The result is the schema of a new database.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for version, old := range released(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			storetest.EachEmpty(t, func(t *testing.T, url string) {
				db := open(t, url, store.Options{Migrations: old})
				if err := db.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				tables := seedAll(t, db)
				closeDB(t, db)
				for _, opts := range []store.Options{{}, {Migrations: later(t, bigNeeds...), Backfills: []store.Backfill{owners(0)}}} {
					db := open(t, url, opts)
					if err := db.Migrate(t.Context()); err != nil {
						t.Fatal(err)
					}
					fresh := open(t, empty(t, db), opts)
					if err := fresh.Migrate(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got, want := layout(t, db), layout(t, fresh); got != want {
						t.Errorf("the upgraded database has\n%s\nwant, as in a new one,\n%s", got, want)
					}
					for table, rows := range tables {
						if n := count(t, db, `SELECT COUNT(*) FROM `+table); n != rows {
							t.Errorf("%s has %d rows, want %d", table, n, rows)
						}
					}
					closeDB(t, fresh)
					closeDB(t, db)
				}
			})
		})
	}
}

// empty returns the address of an empty database on the same engine as db.
func empty(t *testing.T, db *store.DB) string {
	if db.Dialect() == store.SQLite {
		return storetest.SQLite(t)
	}
	return storetest.PostgreSQL(t)
}

// columns lists the columns of all tables, in order.
func columns(d store.Dialect) string {
	if d == store.SQLite {
		return `SELECT m.name, c.name, upper(c.type) LIKE '%INT%',
				c.type || ' ' || c."notnull" || ' ' || COALESCE(c.dflt_value, '') || ' ' || c.pk
			FROM sqlite_master m, pragma_table_info(m.name) c
			WHERE m.type = 'table' AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'sqlite%' ORDER BY m.name, c.cid`
	}
	return `SELECT c.relname, a.attname, CASE WHEN format_type(a.atttypid, a.atttypmod) LIKE '%int%' THEN 1 ELSE 0 END,
			format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' || COALESCE(pg_get_expr(d.adbin, d.adrelid), '')
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT LIKE 'goose%'
			AND c.relname <> 'ledger_receipt_old'
		ORDER BY c.relname, a.attnum`
}

// indexes lists the definitions of all indexes.
func indexes(d store.Dialect) string {
	if d == store.SQLite {
		return `SELECT name || ' ' || COALESCE(sql, '') FROM sqlite_master WHERE type = 'index' ORDER BY name`
	}
	return `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname`
}

// seedAll inserts a row into each table and returns their numbers of rows.
func seedAll(t *testing.T, db *store.DB) map[string]int64 {
	t.Helper()
	names, values := map[string][]string{}, map[string][]string{}
	storetest.View(t, db, func(tx *store.Tx) error {
		return tx.Each(func(row store.Row) error {
			var table, column, words string
			var number int64
			err := row.Scan(&table, &column, &number, &words)
			names[table] = append(names[table], column)
			values[table] = append(values[table], map[int64]string{0: "'x'", 1: "1"}[number])
			return err
		}, columns(db.Dialect()))
	})
	rows := map[string]int64{}
	for table := range names {
		if table == "store_backfill" { // the test's backfill adds a row
			continue
		}
		storetest.Update(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec(fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`,
				table, strings.Join(names[table], ", "), strings.Join(values[table], ", ")))
			return err
		})
		rows[table] = count(t, db, `SELECT COUNT(*) FROM `+table)
	}
	if len(rows) < 10 {
		t.Errorf("found %d tables, want at least 10", len(rows))
	}
	return rows
}

// layout describes the tables and indexes of a database.
func layout(t *testing.T, db *store.DB) string {
	t.Helper()
	var lines []string
	storetest.View(t, db, func(tx *store.Tx) error {
		err := tx.Each(func(row store.Row) error {
			var table, column, words string
			var number int64
			err := row.Scan(&table, &column, &number, &words)
			lines = append(lines, table+" "+column+" "+words)
			return err
		}, columns(tx.Dialect()))
		all, more := store.Column[string](tx, indexes(tx.Dialect()))
		lines = append(lines, all...)
		return errors.Join(err, more)
	})
	return strings.Join(lines, "\n")
}
