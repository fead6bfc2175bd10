package migrations

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// baseline is the last migration of the first release. It runs on empty databases only.
const baseline = "0001_schema.sql"

var (
	comment     = regexp.MustCompile(`--[^\n]*`)
	createTable = regexp.MustCompile(`^CREATE TABLE (\w+) \(`)
	ownIndex    = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX \w+ ON (\w+) \(`)
	// PostgreSQL cannot build an index of a partitioned table concurrently (ADR 20).
	partitioned = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX CONCURRENTLY \w+ ON ledger_receipt(?:_old)? \(`)
	onlineIndex = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX CONCURRENTLY \w+ ON \w+ \(`)
	insert      = regexp.MustCompile(`^INSERT INTO (\w+) `)
	alter       = regexp.MustCompile(`^ALTER TABLE (\w+) (?:` +
		`ADD COLUMN \w+ (?:BIGINT|TEXT) NOT NULL DEFAULT (?:-?\d+|'[^']*')$|DROP COLUMN \w+$)`)
	drop  = regexp.MustCompile(`^DROP (?:TABLE|INDEX) \w+$`)
	since = regexp.MustCompile(`^UPDATE store_schema SET compatible_since = \d+$`)
)

// faults returns the statements of a migration that could hold a lock for long or break older
// binaries.
func faults(text string) (found []string) {
	created, altered := map[string]bool{}, map[string]bool{}
	removes, raises := false, false
	statements := strings.Split(comment.ReplaceAllString(text, ""), ";")
	count := 0
	for _, statement := range statements {
		statement = strings.Join(strings.Fields(statement), " ")
		if statement == "" {
			continue
		}
		count++
		table := func(pattern *regexp.Regexp) string {
			if m := pattern.FindStringSubmatch(statement); m != nil {
				return m[1]
			}
			return ""
		}
		switch {
		case table(createTable) != "":
			created[table(createTable)] = true
		case created[table(ownIndex)], created[table(insert)]:
		case partitioned.MatchString(statement):
			found = append(found, "the migrations cannot build an index of a partitioned table yet")
		case onlineIndex.MatchString(statement):
			if count > 1 || strings.TrimSpace(statements[len(statements)-1]) != "" || len(statements) > 2 {
				found = append(found, "an index of a table with rows needs a migration of its own")
			}
		case since.MatchString(statement):
			raises = true
		case table(alter) != "":
			altered[table(alter)] = true
			removes = removes || strings.Contains(statement, " DROP ")
		case drop.MatchString(statement):
			removes = removes || strings.HasPrefix(statement, "DROP TABLE")
		default:
			found = append(found, "not allowed: "+statement)
		}
	}
	if len(altered) > 1 {
		found = append(found, "several tables are altered: the first stays locked while the next waits")
	}
	if removes && !raises {
		found = append(found, "what older binaries use is removed: set compatible_since")
	}
	return found
}

// TestMigrationsAreOnline checks every migration after the first release.
func TestMigrationsAreOnline(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(Files, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal("no migrations", err)
	}
	for _, name := range names {
		if name <= baseline {
			continue
		}
		if name < "0044" {
			t.Errorf("%s: numbers up to 43 belong to builds before the first release", name)
		}
		text, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults(string(text)) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"-- +goose Up\n-- Words; more.\nCREATE TABLE a (\n    id TEXT NOT NULL PRIMARY KEY -- an id; or none\n);\n" +
			"CREATE INDEX a_id ON a (id);": 0,
		"ALTER TABLE a ADD COLUMN b BIGINT NOT NULL DEFAULT -1; ALTER TABLE a ADD COLUMN c TEXT NOT NULL DEFAULT '';": 0,
		"CREATE INDEX CONCURRENTLY a_b ON a (b) WHERE b <> '';":                                                       0,
		"CREATE TABLE a (id TEXT NOT NULL PRIMARY KEY); INSERT INTO a (id) VALUES ('current')":                        0,
		"ALTER TABLE a DROP COLUMN b; UPDATE store_schema SET compatible_since = 50":                                  0,
		"DROP INDEX a_b": 0,

		"CREATE INDEX CONCURRENTLY a ON ledger_receipt (line)":                    1,
		"CREATE UNIQUE INDEX CONCURRENTLY a ON ledger_receipt_old (line)":         1,
		"CREATE INDEX CONCURRENTLY a ON ledger_receipt_other (line) WHERE b = 1;": 0,
		"CREATE INDEX a_b ON a (b)":                                               1,
		"CREATE INDEX CONCURRENTLY a_b ON a (b); ALTER TABLE a DROP COLUMN c":     2, // it also removes a column
		"UPDATE a SET b = 1":                  1,
		"DELETE FROM a":                       1,
		"INSERT INTO a (id) SELECT id FROM b": 1,
		"ALTER TABLE a ADD COLUMN b BIGINT NOT NULL DEFAULT 0 CHECK (b >= 0)": 1,
		"ALTER TABLE a ADD COLUMN b TEXT NOT NULL DEFAULT random()":           1,
		"ALTER TABLE a ALTER COLUMN b SET NOT NULL":                           1,
		"ALTER TABLE a RENAME TO b":                                           1,
		"ALTER TABLE a DROP COLUMN b":                                         1,
		"DROP TABLE a":                                                        1,
		"ALTER TABLE a ADD COLUMN c BIGINT NOT NULL DEFAULT 0;\n" +
			"ALTER TABLE b ADD COLUMN c BIGINT NOT NULL DEFAULT 0;": 1,
	} {
		if got := faults(text); len(got) != want {
			t.Errorf("%s: %s, want %d", text, fmt.Sprintf("%q", got), want)
		}
	}
}
