package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"tollgate/internal/store/migrations"
)

// ErrOlderSchema and ErrNewerSchema report that the database's schema is not this version's.
var (
	ErrOlderSchema = errors.New("the database is older than this binary: run `tollgate migrate`, or start `tollgate serve` of this version")
	ErrNewerSchema = errors.New("this binary is older than the database: use the version of tollgate that serves it, or a newer one")
)

// Schema compares the migrations of a database with those of this version.
type Schema struct {
	// Pending has the file names of the migrations left for Migrate, in order.
	Pending []string
	// Version is the number of the newest migration in the database. It is 0 if the
	// database is empty.
	Version int64
	// Newest is the number of this version's newest migration.
	Newest int64
}

// Check returns an error that wraps ErrOlderSchema or ErrNewerSchema, unless the schema is this
// version's.
func (s Schema) Check() error {
	switch {
	case s.Version > s.Newest:
		return fmt.Errorf("its schema has number %d and this binary has %d: %w", s.Version, s.Newest, ErrNewerSchema)
	case len(s.Pending) > 0:
		return fmt.Errorf("its schema has number %d and this binary has %d: %w", s.Version, s.Newest, ErrOlderSchema)
	}
	return nil
}

// Schema reads the applied migrations. It changes nothing.
func (db *DB) Schema(ctx context.Context) (s Schema, err error) {
	files, err := migrationFiles()
	if err != nil {
		return s, err
	}
	numbers := slices.Sorted(maps.Keys(files))
	s.Newest = numbers[len(numbers)-1]
	applied, err := db.applied(ctx)
	if err != nil {
		return s, fmt.Errorf("read the schema's version: %w", explainPooler(err))
	}
	for _, n := range numbers {
		if !applied[n] {
			s.Pending = append(s.Pending, files[n])
		}
	}
	for n := range applied {
		s.Version = max(s.Version, n)
	}
	return s, nil
}

// Migrations returns the file names of this version's migrations, in order.
func Migrations() ([]string, error) {
	files, err := migrationFiles()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Values(files)), nil
}

// applied returns the numbers of the applied migrations.
func (db *DB) applied(ctx context.Context) (map[int64]bool, error) {
	table := `SELECT COUNT(*) > 0 FROM sqlite_master WHERE name = '` + goose.DefaultTablename + `'`
	if db.dialect == PostgreSQL {
		table = `SELECT to_regclass('` + goose.DefaultTablename + `') IS NOT NULL`
	}
	var exists bool
	if err := db.read.QueryRowContext(ctx, table).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	rows, err := db.read.QueryContext(ctx, `SELECT version_id FROM `+goose.DefaultTablename+` WHERE is_applied`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	applied := map[int64]bool{}
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		applied[n] = true
	}
	return applied, rows.Err()
}

// migrationFiles returns the names of this version's migrations by their numbers.
func migrationFiles() (map[int64]string, error) {
	entries, err := migrations.Files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	files := make(map[int64]string, len(entries))
	for _, entry := range entries {
		digits, _, _ := strings.Cut(entry.Name(), "_")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the migrations: %s: %w", entry.Name(), err)
		}
		files[n] = entry.Name()
	}
	return files, nil
}
