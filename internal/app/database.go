package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tollgate/internal/app/access"
	"tollgate/internal/store"
)

// SettingError is a failure that the operator mends by changing a setting or
// what it points to. The command ends with exit code 2 and this one line.
type SettingError struct {
	Key string // the setting
	Err error
}

// Error names the setting and the fault.
func (e *SettingError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the fault.
func (e *SettingError) Unwrap() error { return e.Err }

// ErrNoDatabase means that a command that works on an existing database was
// run before there is one.
var ErrNoDatabase = errors.New(
	"does not exist yet: run `tollgate serve` or `tollgate apply FILE` first, or name the right one with --database")

// ErrOlderService means that a command was run beside a service that has not
// brought the schema as far as the command needs it.
var ErrOlderService = errors.New("is served by an older version, or one that is just starting: restart the service with this version first")

// OpenDatabase opens the database for a command that runs beside the service,
// with a current schema. One that nobody has set up yet is made only if create
// says so, and left as it is else: ErrNoDatabase. Errors are SettingErrors, but
// for a server that is not up; the caller closes the database.
func OpenDatabase(ctx context.Context, s *Settings, create bool) (*store.DB, error) {
	if !create && unmade(s) {
		return nil, noDatabase(s)
	}
	db, err := open(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	if !create {
		if made, err := db.Made(ctx); err != nil || !made {
			if err == nil {
				err = noDatabase(s)
			}
			return nil, errors.Join(err, db.Close())
		}
	}
	release, err := db.LockFile()
	switch {
	case errors.Is(err, store.ErrServed): // who serves the file has migrated it as far as it knows
		if current, err := db.Migrated(ctx); err != nil {
			return nil, errors.Join(startError("database", err), db.Close())
		} else if !current {
			return nil, errors.Join(&SettingError{"database", fmt.Errorf("%s %w", s.Database, ErrOlderService)}, db.Close())
		}
		return db, nil
	case err != nil:
		return nil, errors.Join(startError("database", err), db.Close())
	}
	if err := errors.Join(db.Migrate(ctx), release()); err != nil {
		return nil, errors.Join(startError("database", err), db.Close())
	}
	return db, nil
}

// unmade tells whether the database is a file that is not there yet.
func unmade(s *Settings) bool {
	path, sqlite := strings.CutPrefix(s.Database, "sqlite:")
	if !sqlite {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// noDatabase says where a command looked for a database.
func noDatabase(s *Settings) error {
	path, sqlite := strings.CutPrefix(s.Database, "sqlite:")
	if !sqlite {
		shown := "PostgreSQL"
		if u, err := url.Parse(s.Database); err == nil {
			shown = "postgres://" + u.Host + u.Path // without the password
		}
		return &SettingError{"database", fmt.Errorf("%s is empty: what tollgate keeps there %w", shown, ErrNoDatabase)}
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		whole = path
	}
	return &SettingError{"database", fmt.Errorf("%s %w (this looked at %s)", s.Database, ErrNoDatabase, whole)}
}

// open connects to the database of the settings; stepped is told of its clock.
func open(ctx context.Context, s *Settings, stepped func(jump time.Duration)) (*store.DB, error) {
	if path, sqlite := strings.CutPrefix(s.Database, "sqlite:"); sqlite {
		if err := access.Check(path); err != nil {
			return nil, &SettingError{"database", err}
		}
	}
	db, err := store.Open(ctx, s.Database, store.Options{Connections: s.DatabaseConnections, Stepped: stepped})
	if err != nil {
		return nil, startError("database", err)
	}
	return db, nil
}

// lockWait is how long a starting service waits for the lock on the file: commands
// that run beside it hold it for a moment.
const (
	lockWait  = time.Second
	lockPause = 20 * time.Millisecond
)

// lockFile takes the lock that only one service of an SQLite file may have.
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
