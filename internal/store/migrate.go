package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"tollgate/internal/store/migrations"
)

// Migrate brings the schema up to date, and is a no-op if the schema is current. Several nodes may
// call it at once: on PostgreSQL one migrates and the others wait. On SQLite the caller must have
// LockFile.
func (db *DB) Migrate(ctx context.Context) error {
	provider, err := db.migrator()
	if err != nil {
		return err
	}
	if err := retry(ctx, Retryable, func() error { _, err := provider.Up(ctx); return err }); err != nil {
		return fmt.Errorf("migrate: %w", explainPooler(err))
	}
	return nil
}

func (db *DB) migrator() (*goose.Provider, error) {
	dialect := goose.DialectSQLite3
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if db.dialect == PostgreSQL {
		dialect = goose.DialectPostgres
		opts = append(opts, goose.WithLocker(&migrationLock{}))
	}
	provider, err := goose.NewProvider(dialect, db.write, migrations.Files, opts...)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return provider, nil
}

// migrationLock lets one node at a time migrate. The lock belongs to an open transaction on another
// connection than the migration's. A session lock behind a pooler would be taken on one connection
// and released on another, and two nodes could share a connection. Nodes of former versions with
// the session lock and nodes with this one exclude each other.
type migrationLock struct{ tx *sql.Tx }

// How often and how long a waiting node tries again. It holds no connection while it waits, because
// a pooler may have few.
const (
	migrationPause   = 500 * time.Millisecond
	migrationTimeout = 5 * time.Minute
)

// tryMigrate takes the lock, if it is free, in a transaction that may stay idle during the
// migrations.
const tryMigrate = `SELECT pg_try_advisory_xact_lock($1) FROM set_config('idle_in_transaction_session_timeout', '0', true)`

// Lock implements lock.Locker.
func (l *migrationLock) Lock(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	for {
		// The end of ctx must not roll back the transaction. At a stricter level of isolation it would
		// keep a snapshot, and a concurrent index waits for the end of older snapshots.
		tx, err := db.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return fmt.Errorf("lock the migrations: %w", err)
		}
		var locked bool
		if err := tx.QueryRowContext(ctx, tryMigrate, lock.DefaultLockID).Scan(&locked); err != nil {
			_ = tx.Rollback() // the connection may be gone
			return fmt.Errorf("lock the migrations: %w", err)
		}
		if locked {
			l.tx = tx
			return nil
		}
		_ = tx.Rollback() // it did nothing
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another node to migrate: %w", ctx.Err())
		case <-time.After(migrationPause):
		}
	}
}

// Unlock implements lock.Locker.
func (l *migrationLock) Unlock(context.Context, *sql.DB) error { return l.tx.Rollback() }
