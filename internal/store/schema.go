package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/pressly/goose/v3"
)

// ErrOlderSchema and ErrNewerSchema report that this binary cannot serve the schema of the
// database. ErrPreRelease reports a database that no release can serve.
var (
	ErrOlderSchema = errors.New("the database is older than this binary: run `tollgate migrate`, or start `tollgate serve` of this version")
	ErrNewerSchema = errors.New("this binary is older than the database: use the version of tollgate that serves it, or a newer one")
	ErrPreRelease  = errors.New("the database is of a pre-release build of tollgate, and releases cannot use it: " +
		"export your data with that build (`tollgate catalog`, `tollgate account list --csv` and so on: docs/operator.md, " +
		"Pre-release builds), then start this version with a new --database")
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
	// CompatibleSince is the lowest Newest of a compatible binary. A migration raises the number if it
	// removes something that older binaries use.
	CompatibleSince int64
	// PreRelease is true if the database has migrations of builds before the first release.
	PreRelease bool
	// Backfills has the incomplete backfills of this version.
	Backfills []BackfillProgress
}

// preRelease is the number of the last migration before the first release. The first release
// replaced the migrations from 1 on by one with the number 1, and later numbers start above
// preRelease.
const preRelease = 43

// Check returns an error that wraps ErrOlderSchema, ErrNewerSchema or ErrPreRelease if this version
// cannot serve the database. A newer schema passes if it is compatible with this version.
func (s Schema) Check() error {
	switch {
	case s.PreRelease:
		return fmt.Errorf("its schema has number %d: %w", s.Version, ErrPreRelease)
	case s.CompatibleSince > s.Newest:
		return newerSchema(s.CompatibleSince, s.Newest)
	case s.Version > s.Newest && len(s.Pending) > 0: // neither a former nor a later version of this binary wrote it
		return fmt.Errorf("its schema has number %d and this binary has %d: %w", s.Version, s.Newest, ErrNewerSchema)
	case len(s.Pending) > 0:
		return fmt.Errorf("its schema has number %d and this binary has %d: %w", s.Version, s.Newest, ErrOlderSchema)
	}
	return nil
}

func newerSchema(needed, newest int64) error {
	return fmt.Errorf("its schema needs a binary with number %d or higher and this binary has %d: %w", needed, newest, ErrNewerSchema)
}

func (s Schema) isPending(file string) bool { return slices.Contains(s.Pending, file) }

// Schema reads the applied migrations. It changes nothing.
func (db *DB) Schema(ctx context.Context) (s Schema, err error) {
	all, err := readMigrations(db.source)
	if err != nil {
		return s, err
	}
	s.Newest = all[len(all)-1].number
	applied, err := db.applied(ctx)
	if err == nil && len(applied) > 0 {
		s.CompatibleSince, err = db.compatibleSince(ctx)
	}
	if err != nil {
		return s, fmt.Errorf("read the schema's version: %w", explainPooler(err))
	}
	for _, m := range all {
		if !applied[m.number] {
			s.Pending = append(s.Pending, m.file)
		}
	}
	for n := range applied {
		s.Version = max(s.Version, n)
		known := slices.ContainsFunc(all, func(m migration) bool { return m.number == n })
		s.PreRelease = s.PreRelease || n > 1 && n <= preRelease && !known
	}
	if s.PreRelease {
		return s, nil
	}
	if s.Backfills, err = db.unfinishedBackfills(ctx); err != nil {
		return s, fmt.Errorf("read the progress of backfills: %w", explainPooler(err))
	}
	return s, nil
}

// applied returns the numbers of the applied migrations.
func (db *DB) applied(ctx context.Context) (map[int64]bool, error) {
	exists, err := db.hasTable(ctx, goose.DefaultTablename)
	if err != nil || !exists {
		return nil, err
	}
	rows, err := db.read.QueryContext(ctx, `SELECT version_id FROM `+goose.DefaultTablename+` WHERE is_applied AND version_id > 0`)
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

func (db *DB) hasTable(ctx context.Context, name string) (exists bool, err error) {
	text := `SELECT COUNT(*) > 0 FROM sqlite_master WHERE name = $1`
	if db.dialect == PostgreSQL {
		text = `SELECT to_regclass($1) IS NOT NULL`
	}
	err = db.read.QueryRowContext(ctx, text, name).Scan(&exists)
	return exists, err
}

const readCompatible = `SELECT compatible_since FROM store_schema WHERE id = 'current'`

// compatibleSince reads Schema.CompatibleSince. It returns 0 if the database has no such number.
func (db *DB) compatibleSince(ctx context.Context) (number int64, err error) {
	if exists, err := db.hasTable(ctx, "store_schema"); err != nil || !exists {
		return 0, err
	}
	err = db.read.QueryRowContext(ctx, readCompatible).Scan(&number)
	return number, err
}

// CheckCompatible returns ErrNewerSchema if the schema has changed so that this version can no
// longer serve the database. A running node calls it regularly.
func (db *DB) CheckCompatible(ctx context.Context) error {
	number, err := db.compatibleSince(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", explainPooler(err))
	}
	return db.checkCompatible(number)
}

// CheckCompatible is DB.CheckCompatible for a transaction, and keeps the answer true until the
// transaction ends: a migration that raises the number waits.
func (tx *Tx) CheckCompatible() error {
	if err := tx.Lock("store_schema", "id", "current"); err != nil {
		return err
	}
	var number int64
	if err := tx.QueryRow(readCompatible).Scan(&number); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	return tx.db.checkCompatible(number)
}

func (db *DB) checkCompatible(number int64) error {
	newest, err := db.NewestMigration()
	if err != nil {
		return err
	}
	if number > newest {
		return newerSchema(number, newest)
	}
	return nil
}

// NewestMigration returns the number of this version's newest migration.
func (db *DB) NewestMigration() (int64, error) {
	all, err := readMigrations(db.source)
	if err != nil {
		return 0, err
	}
	return all[len(all)-1].number, nil
}
