package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// SettingError is an error that the operator can fix by changing a setting, or the file or server named
// by the setting. The command prints the error as one line and ends with exit code 2.
type SettingError struct {
	Key string // the setting
	Err error
}

// Error names the setting and the fault.
func (e *SettingError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the fault.
func (e *SettingError) Unwrap() error { return e.Err }

// ErrNoDatabase means that a command for an existing database was run without one.
var ErrNoDatabase = errors.New(
	"does not exist yet: run `tollgate serve` or `tollgate apply FILE` first, or name the right database with --database")

// OpenDatabase opens the database for a command beside the service. It migrates nothing: if this
// version cannot use the schema, the error wraps store.ErrOlderSchema, store.ErrNewerSchema or
// store.ErrPreRelease. If the database is empty, OpenDatabase creates the schema if create is true, and returns
// ErrNoDatabase otherwise. Errors are SettingErrors, except for a server that is not up. The caller
// closes the database.
func OpenDatabase(ctx context.Context, s *Settings, create bool) (*store.DB, error) {
	if !create && databaseMissing(s) {
		return nil, noDatabase(s)
	}
	db, err := open(ctx, s, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := checkSchema(ctx, db, s, create); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkSchema creates the schema of an empty database if create is true, and checks
// the schema of any other.
func checkSchema(ctx context.Context, db *store.DB, s *Settings, create bool) error {
	schema, err := db.Schema(ctx)
	switch {
	case err != nil:
		return startError("database", err)
	case schema.Version > 0:
		return schemaError(s, schema)
	case !create:
		return noDatabase(s)
	}
	err = migrate(ctx, db)
	if errors.Is(err, store.ErrServed) { // a starting service creates it
		if schema, err := db.Schema(ctx); err == nil && schema.Version > 0 {
			return schemaError(s, schema)
		}
	}
	if err != nil {
		return startError("database", err)
	}
	return nil
}

// schemaError returns a SettingError if this version cannot use the schema.
func schemaError(s *Settings, schema store.Schema) error {
	if err := schema.Check(); err != nil {
		return &SettingError{"database", fmt.Errorf("%s: %w", databaseName(s), err)}
	}
	return nil
}

// migrate runs the migrations. On SQLite it returns store.ErrServed while a service runs.
func migrate(ctx context.Context, db *store.DB) error {
	release, err := lockFile(ctx, db)
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), release())
}

// Migrate runs the pending migrations and returns the schema before them; Schema.Pending has their file
// names. It creates the schema of an empty database. If dryRun is true, it changes and creates nothing.
// On PostgreSQL, nodes may serve the database meanwhile. Migrate logs waits and the progress of backfills.
// Errors are SettingErrors, except for a server that is not up.
func Migrate(ctx context.Context, s *Settings, dryRun bool, log *slog.Logger) (schema store.Schema, err error) {
	if dryRun && databaseMissing(s) {
		schema.Pending, err = store.Migrations()
		return schema, err
	}
	db, err := open(ctx, s, store.Options{Log: log})
	if err != nil {
		return schema, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if schema, err = db.Schema(ctx); err != nil {
		return schema, startError("database", err)
	}
	if err := schemaError(s, schema); err != nil && !errors.Is(err, store.ErrOlderSchema) {
		return schema, err
	}
	if dryRun || len(schema.Pending) == 0 {
		return schema, nil
	}
	if err := migrate(ctx, db); err != nil {
		if errors.Is(err, store.ErrServed) {
			err = fmt.Errorf("%w: stop it, or restart it with this version, which migrates too", err)
		}
		return schema, startError("database", err)
	}
	return schema, nil
}

// databaseMissing reports whether the database is a missing file.
func databaseMissing(s *Settings) bool {
	path, sqlite := strings.CutPrefix(s.Database, "sqlite:")
	if !sqlite {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// noDatabase returns an error with the place where a command looked for a database.
func noDatabase(s *Settings) error {
	path, sqlite := strings.CutPrefix(s.Database, "sqlite:")
	if !sqlite {
		return &SettingError{"database", fmt.Errorf("%s is empty: tollgate's schema %w", databaseName(s), ErrNoDatabase)}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		absolute = path
	}
	return &SettingError{"database", fmt.Errorf("%s %w (the command looked at %s)", s.Database, ErrNoDatabase, absolute)}
}

// databaseName returns the name of the database without its password.
func databaseName(s *Settings) string {
	if strings.HasPrefix(s.Database, "sqlite:") {
		return s.Database
	}
	if u, err := url.Parse(s.Database); err == nil {
		return "postgres://" + u.Host + u.Path
	}
	return "PostgreSQL"
}

// open connects to the database of the settings.
func open(ctx context.Context, s *Settings, o store.Options) (*store.DB, error) {
	if path, sqlite := strings.CutPrefix(s.Database, "sqlite:"); sqlite {
		if err := checkDatabaseAccess(path); err != nil {
			return nil, &SettingError{"database", err}
		}
	}
	o.Connections, o.Backfills, o.OldestBinary = s.DatabaseConnections, backfills(), node.OldestTx
	db, err := store.Open(ctx, s.Database, o)
	if err != nil {
		return nil, startError("database", err)
	}
	return db, nil
}

// lockWait is the longest wait for the lock on the file, because other commands may hold the lock
// briefly. lockPause is the time between two attempts.
const (
	lockWait  = time.Second
	lockPause = 20 * time.Millisecond
)

// lockFile takes the lock of the only service of an SQLite file.
func lockFile(ctx context.Context, db *store.DB) (func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		release, err := db.LockFile()
		if !errors.Is(err, store.ErrServed) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockPause):
		}
	}
}
