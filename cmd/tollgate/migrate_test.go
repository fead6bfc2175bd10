package main

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// schemaCommands has commands of every kind that open the database.
var schemaCommands = []string{
	"account create --name a", "account list", "account credit acct_x 5", "account change acct_x --name b", "user list acct_x",
	"user link user_x", "key create acct_x", "key list acct_x", "key delete key_x", "codes create 5", "codes void code_x",
	"webhook get acct_x", "webhook set acct_x --url none", "webhook deliveries acct_x", "mail list", "mail resend mail_x",
	"mail test a@example.com", "usage", "request list", "request show req_x",
	"job list", "job show job_x", "line list", "line drain main", "line resume main", "secret list", "secret set a", "secret delete a",
	"secret rotate",
	"audit", "audit --copy", "catalog",
	"catalog --history", "apply DIR/catalog.yaml", "apply --dry-run DIR/catalog.yaml",
	"import litellm --litellm-config DIR/litellm.yaml --write-catalog DIR/imported.yaml",
	"import litellm --dry-run --litellm-config DIR/litellm.yaml --write-catalog DIR/imported.yaml",
}

// schemaFolder returns a new folder with the files for schemaCommands.
func schemaFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeSandboxCatalog(t, dir, "{}")
	writeFile(t, dir, "litellm.yaml", "model_list: []\n")
	return dir
}

// schemaStates describes databases that this version cannot serve.
var schemaStates = map[string]struct {
	unknown int64  // number of an applied migration, unknown to this version
	since   int64  // value of compatible_since; 0 means unchanged
	want    string // part of the error
}{
	"an incompatible newer version": {9000, 8000, "needs a binary with number 8000 or higher"},
	"the next version":              {44, 44, "this binary is older than the database"},
	"a pre-release build":           {17, 0, "of a pre-release build"},
	"the first pre-release builds":  {2, 0, "export your data with that build"},
	"the last pre-release build":    {43, 0, "docs/operator.md"},
}

// TestNoCommandMigrates checks that all commands reject databases that this version cannot serve,
// and do not change the schema.
func TestNoCommandMigrates(t *testing.T) {
	t.Parallel()
	for name, c := range schemaStates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				inDatabase(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)`, c.unknown)
				if c.since > 0 {
					inDatabase(t, url, `UPDATE store_schema SET compatible_since = $1`, c.since)
				}
				before, dir := schemaOf(t, url), schemaFolder(t)
				for _, args := range append(slices.Clone(schemaCommands), "migrate", "migrate --dry-run", "serve --listen 127.0.0.1:0") {
					got := tollgate(t, dir, append(strings.Fields(strings.ReplaceAll(args, "DIR", dir)), "--database", url)...)
					if got.code != 2 || !strings.Contains(got.errors, c.want) || strings.Count(got.errors, "\n") != 1 ||
						strings.Contains(got.errors, "password") {
						t.Errorf("%s: got exit %d and %q, want 2 and one line with %q", args, got.code, got.errors, c.want)
					}
				}
				if after := schemaOf(t, url); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the commands changed the schema from %+v to %+v", before, after)
				}
			})
		})
	}
}

// TestNewerCompatibleSchema checks that commands and the service work on a newer, compatible
// database, and that migrate does nothing.
func TestNewerCompatibleSchema(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		inDatabase(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`)
		dir := t.TempDir()
		for _, c := range []struct{ args, want string }{
			{"account create --name a", `"name": "a"`}, {"account list", `"name": "a"`}, {"audit", `"ok": true`},
			{"migrate", "nothing to do: the database has a newer schema"}, {"migrate --dry-run", "nothing to do"},
		} {
			got := tollgate(t, dir, append(strings.Fields(c.args), "--database", url)...)
			if got.code != 0 || !strings.Contains(got.out, c.want) {
				t.Errorf("%s ended with %+v, want exit 0 and %q", c.args, got, c.want)
			}
		}
		serve(t, dir, "--database", url).stop()
	})
}

// TestMigrate checks that migrate brings databases of every released schema to the current
// schema, lists the same migrations in a dry run, and does nothing the second time.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for number := range newestMigration(t) + 1 {
		if number > 1 && number < 44 { // schemas of builds before the first release
			continue
		}
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
					t.Errorf("the dry run ended with %+v and migrate with %+v, want the same migrations", dry, got)
				}
				if s := schemaOf(t, url); s.Check() != nil {
					t.Errorf("the migrated schema is %+v, which Check rejects", s)
				}
				repeated := tollgate(t, dir, "migrate", "--database", url)
				if repeated.code != 0 || !strings.HasPrefix(repeated.out, "nothing to do") {
					t.Errorf("the second migrate ended with %+v, want nothing to do", repeated)
				}
				if got := tollgate(t, dir, "account", "list", "--database", url); got.code != 0 {
					t.Errorf("account list ended with %+v, want exit 0", got)
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
	result, err := db.Exec(statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := result.RowsAffected(); err != nil || changed != 1 {
		t.Fatalf("the statement changed %d rows, %v, want 1", changed, err)
	}
}
