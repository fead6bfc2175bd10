package main

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// schemaCommands has commands of every kind that open the database.
var schemaCommands = []string{
	"account create --name a", "account list", "account credit acct_x 5", "account change acct_x --name b", "user list acct_x",
	"user link user_x", "key create acct_x", "key list acct_x", "key delete key_x", "codes create 5", "codes void code_x",
	"webhook get acct_x", "webhook set acct_x --url none", "webhook deliveries acct_x", "usage", "request list", "request show req_x",
	"job list", "job show job_x", "line list", "line drain main", "line resume main", "audit", "audit --copy", "catalog",
	"catalog --history", "apply DIR/catalog.yaml", "apply --dry-run DIR/catalog.yaml",
	"import litellm --litellm-config DIR/litellm.yaml --write-catalog DIR/imported.yaml",
	"import litellm --dry-run --litellm-config DIR/litellm.yaml --write-catalog DIR/imported.yaml",
}

// schemaFolder makes a folder with the files that schemaCommands read.
func schemaFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sandbox(t, dir, "{}")
	writeFile(t, dir, "litellm.yaml", "model_list: []\n")
	return dir
}

// TestNoCommandMigrates checks that commands reject databases of older and newer versions
// and do not change the schema.
func TestNoCommandMigrates(t *testing.T) {
	t.Parallel()
	newest := newestMigration(t)
	for name, c := range map[string]struct {
		number int64 // of the last migration
		newer  bool  // has a migration unknown to this version
		want   string
	}{
		"the version before": {newest - 1, false, "tollgate migrate"},
		"the first version":  {1, false, "tollgate migrate"},
		"half of it":         {newest / 2, false, "tollgate serve"},
		"a newer version":    {newest, true, "this binary is older than the database"},
		"a fork":             {newest - 1, true, "this binary is older than the database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachEmpty(t, func(t *testing.T, url string) {
				storetest.MigrateTo(t, url, c.number)
				if c.newer {
					inDatabase(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`)
				}
				before, dir := schemaOf(t, url), schemaFolder(t)
				for _, args := range append(schemaCommands, "migrate --dry-run") {
					got := tollgate(t, dir, append(strings.Fields(strings.ReplaceAll(args, "DIR", dir)), "--database", url)...)
					if args == "migrate --dry-run" && !c.newer {
						if got.code != 0 || strings.Count(got.out, ".sql\n") != len(before.Pending) || !strings.Contains(got.out, "nothing was changed") {
							t.Errorf("%s: %+v", args, got)
						}
						continue
					}
					if got.code != 2 || !strings.Contains(got.errors, c.want) || strings.Count(got.errors, "\n") != 1 ||
						strings.Contains(got.errors, "password") {
						t.Errorf("%s: exit %d, %q", args, got.code, got.errors)
					}
				}
				if after := schemaOf(t, url); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the schema was %+v and is %+v", before, after)
				}
			})
		})
	}
}

// TestMigrate migrates empty databases and those of older versions.
func TestMigrate(t *testing.T) {
	t.Parallel()
	newest := newestMigration(t)
	for _, number := range []int64{0, 1, newest - 1, newest} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			storetest.EachEmpty(t, func(t *testing.T, url string) {
				if number > 0 {
					storetest.MigrateTo(t, url, number)
				}
				dir := t.TempDir()
				dry := tollgate(t, dir, "migrate", "--dry-run", "--database", url)
				if number == 0 {
					wantNoDatabase(t, url)
				}
				got := tollgate(t, dir, "migrate", "--database", url)
				names, _, _ := strings.Cut(dry.out, "dry run: ")
				if dry.code != 0 || got.code != 0 || !strings.HasPrefix(got.out, names) {
					t.Errorf("the dry run printed %+v, and the run %+v", dry, got)
				}
				if s := schemaOf(t, url); s.Check() != nil {
					t.Errorf("%+v", s)
				}
				again := tollgate(t, dir, "migrate", "--database", url)
				if again.code != 0 || !strings.HasPrefix(again.out, "nothing to do") {
					t.Errorf("%+v", again)
				}
				if got := tollgate(t, dir, "account", "list", "--database", url); got.code != 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

func newestMigration(t *testing.T) int64 {
	t.Helper()
	return schemaOf(t, storetest.SQLite(t)).Newest
}

func schemaOf(t *testing.T, url string) store.Schema {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := db.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inDatabase runs a statement on the database at url. The statement must change one row.
func inDatabase(t *testing.T, url, statement string, args ...any) {
	t.Helper()
	driver := "pgx"
	path, sqlite := strings.CutPrefix(url, "sqlite:")
	if sqlite {
		driver, url = "sqlite", path
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	done, err := db.Exec(statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := done.RowsAffected(); err != nil || changed != 1 {
		t.Fatalf("%d rows changed, %v", changed, err)
	}
}
