package store

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/store/migrations"
)

// migration is one file of the package migrations.
type migration struct {
	number       int64
	file         string
	text         string
	index, table string // of a CREATE INDEX CONCURRENTLY; else empty
	needs        string // the backfill to complete before; empty if none
}

var (
	buildsIndex = regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+) ON (\w+)\s*\(`)
	// The rest of such a line is a statement for one database and a comment for the other.
	onlyPostgreSQL = regexp.MustCompile(`(?m)^-- PostgreSQL: `)
	onlySQLite     = regexp.MustCompile(`(?m)^-- SQLite: `)
	needsBackfill  = regexp.MustCompile(`(?m)^-- needs backfill: (\S+)$`)
)

// readMigrations returns the migrations in order.
func readMigrations(source fs.FS) ([]migration, error) {
	names, err := fs.Glob(source, "*.sql")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("read the migrations: none found: %w", err)
	}
	all := make([]migration, len(names))
	for i, name := range names {
		if all[i], err = readMigration(source, name); err != nil {
			return nil, fmt.Errorf("read the migrations: %s: %w", name, err)
		}
	}
	slices.SortFunc(all, func(a, b migration) int { return int(a.number - b.number) })
	return all, nil
}

func readMigration(source fs.FS, name string) (m migration, err error) {
	m.file = name
	digits, _, _ := strings.Cut(name, "_")
	if m.number, err = strconv.ParseInt(digits, 10, 64); err != nil {
		return m, err
	}
	text, err := fs.ReadFile(source, name)
	if err != nil {
		return m, err
	}
	m.text = string(text)
	if found := buildsIndex.FindStringSubmatch(m.text); found != nil {
		m.index, m.table = found[1], found[2]
	}
	if found := needsBackfill.FindStringSubmatch(m.text); found != nil {
		m.needs = found[1]
	}
	return m, nil
}

// sql returns the text for a database. SQLite builds no index concurrently, because no process serves
// the file during a migration.
func (m migration) sql(d Dialect) string {
	if d == SQLite {
		return strings.ReplaceAll(onlySQLite.ReplaceAllString(m.text, ""), "INDEX CONCURRENTLY", "INDEX")
	}
	return onlyPostgreSQL.ReplaceAllString(m.text, "")
}

// Migrations returns the file names of this version's migrations, in order.
func Migrations() ([]string, error) {
	all, err := readMigrations(migrations.Files)
	var files []string
	for _, m := range all {
		files = append(files, m.file)
	}
	return files, err
}
