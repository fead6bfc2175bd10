package storetest

import (
	"context"
	"slices"
	"testing"

	"tollgate/internal/store"
)

// TestCopiesAreLikeMigratedDatabases compares the databases of tests with a newly migrated
// database.
func TestCopiesAreLikeMigratedDatabases(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, db *store.DB) {
		address := SQLite(t)
		if db.Dialect() == store.PostgreSQL {
			address = PostgreSQL(t)
		}
		if err := migrate(address); err != nil {
			t.Fatal(err)
		}
		want, got := schema(t, Open(t, address, store.Options{})), schema(t, db)
		if len(want) < 50 || !slices.Equal(got, want) {
			t.Errorf("the copy has %d columns, indexes and migrations, want %d (at least 50):\n%s\nwant\n%s", len(got), len(want), got, want)
		}
	})
}

// schema lists the columns, indexes and applied migrations of a database.
func schema(t *testing.T, db *store.DB) (all []string) {
	t.Helper()
	text := `SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || COALESCE(column_default, '')
		FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT CAST(version_id AS text) FROM goose_db_version ORDER BY 1`
	if db.Dialect() == store.SQLite {
		text = `SELECT type || ' ' || name || ' ' || COALESCE(sql, '') FROM sqlite_master
			UNION ALL SELECT CAST(version_id AS text) FROM goose_db_version ORDER BY 1`
	}
	err := db.View(context.Background(), func(tx *store.Tx) error {
		all = nil
		rows, err := tx.Query(text)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var one string
			if err := rows.Scan(&one); err != nil {
				return err
			}
			all = append(all, one)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
