package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrate brings the schema up to date, and is a no-op if the schema is current or newer. Several
// nodes may call it at once: on PostgreSQL one migrates and the others wait, while nodes of older
// versions serve. On SQLite the caller must have LockFile. If a migration needs a backfill, Migrate
// finishes the backfill first. It returns ErrNewerSchema or ErrPreRelease if this binary cannot
// serve the database.
func (db *DB) Migrate(ctx context.Context) (err error) {
	unlock, err := db.lockMigrations(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	schema, err := db.Schema(ctx)
	if err != nil {
		return err
	}
	if err := schema.Check(); err != nil && !errors.Is(err, ErrOlderSchema) {
		return err
	}
	all, err := readMigrations(db.source)
	if err != nil {
		return err
	}
	provider, err := db.newProvider(all)
	if err != nil {
		return err
	}
	for _, m := range all {
		if !schema.isPending(m.file) {
			continue
		}
		if m.needs != "" {
			if err := db.finishBackfill(ctx, m); err != nil {
				return fmt.Errorf("migrate: %w", explainPooler(err))
			}
		}
		if err := db.apply(ctx, provider, m); err != nil {
			return fmt.Errorf("migrate: %s: %w", m.file, explainPooler(err))
		}
	}
	return nil
}

// newProvider returns a provider with all migrations as functions, because SQL files of goose can
// neither limit the wait for locks nor repair an index.
func (db *DB) newProvider(all []migration) (*goose.Provider, error) {
	var functions []*goose.Migration
	for _, m := range all {
		run := &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error { return db.runMigration(ctx, tx, m) }}
		if m.index != "" && db.dialect == PostgreSQL {
			run = &goose.GoFunc{RunDB: func(ctx context.Context, pool *sql.DB) error { return buildIndex(ctx, pool, m) }}
		}
		functions = append(functions, goose.NewGoMigration(m.number, run, nil))
	}
	dialect := goose.DialectSQLite3
	if db.dialect == PostgreSQL {
		dialect = goose.DialectPostgres
	}
	provider, err := goose.NewProvider(dialect, db.write, nil,
		goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(functions...))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return provider, nil
}

// migrationLockTimeout bounds the wait of a migration and of a backfill's step for a lock on
// PostgreSQL. Requests that need the same table queue behind the waiting statement.
const migrationLockTimeout = "500ms"

// runMigration runs a migration in a transaction.
func (db *DB) runMigration(ctx context.Context, tx *sql.Tx, m migration) error {
	if db.dialect == PostgreSQL {
		if _, err := tx.ExecContext(ctx, `SELECT set_config('lock_timeout', $1, true)`, migrationLockTimeout); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, m.sql(db.dialect))
	return err
}

// buildIndex builds an index on PostgreSQL while requests read and write the table. It replaces the
// invalid index of an interrupted build.
func buildIndex(ctx context.Context, pool *sql.DB, m migration) error {
	found, valid, err := indexState(ctx, pool, m)
	if err != nil || valid {
		return err
	}
	if found {
		if _, err := pool.ExecContext(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+m.index); err != nil {
			return fmt.Errorf("drop the incomplete index: %w", err)
		}
	}
	_, err = pool.ExecContext(ctx, m.text)
	return err
}

// indexState waits for the end of an earlier build, because the server continues a build whose node has
// ended. Then it reports whether the index exists and is complete.
func indexState(ctx context.Context, pool *sql.DB, m migration) (found, valid bool, err error) {
	if err := awaitBuild(ctx, pool, m); err != nil {
		return false, false, fmt.Errorf("wait for another build of an index: %w", err)
	}
	err = pool.QueryRowContext(ctx, `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`, m.index).Scan(&valid)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return err == nil, valid, err
}

// awaitBuild waits until no server process builds the index. It holds no lock and no snapshot while it
// waits, because a build waits for transactions with older snapshots.
func awaitBuild(ctx context.Context, pool *sql.DB, m migration) error {
	for {
		var builds bool
		if err := pool.QueryRowContext(ctx, selectBuild, m.text).Scan(&builds); err != nil || !builds {
			return err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// selectBuild reports whether a process runs a statement. The server may cut off a shown statement.
const selectBuild = `SELECT EXISTS (SELECT FROM pg_stat_activity
	WHERE datname = current_database() AND state = 'active' AND query <> '' AND starts_with($1, query))`

// The average pause between two tries of a migration, and the total time of all tries. A waiting node
// holds no connection during the pause, because a pooler may have few.
const (
	migrationPause   = 500 * time.Millisecond
	migrationTimeout = 5 * time.Minute
)

// apply runs one migration and records it. While another transaction holds a lock on the
// same table, apply tries again.
func (db *DB) apply(ctx context.Context, provider *goose.Provider, m migration) error {
	retries, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	for {
		_, err := provider.UpTo(ctx, m.number)
		if err == nil || !Retryable(err) {
			return err
		}
		if !sleep(retries, migrationWait()) {
			return fmt.Errorf("%w (a long transaction, such as a dump, may hold the table: migrate again when it has ended)", err)
		}
		db.log.Warn("store: a migration waits for a lock: trying again", "migration", m.file, "error", err)
	}
}

// migrationWait returns a random time, so that nodes do not try again together.
func migrationWait() time.Duration { return migrationPause/2 + Jitter(migrationPause) }

// lockMigrations lets one node at a time migrate on PostgreSQL, and returns a function that ends
// the lock. The lock belongs to an open transaction. A session lock behind a pooler would be taken
// on one connection and released on another, and two nodes could share a connection. The
// transaction is READ COMMITTED and keeps no snapshot, because the build of an index would wait for
// the end of a transaction with a snapshot.
func (db *DB) lockMigrations(ctx context.Context) (unlock func() error, err error) {
	if db.dialect == SQLite {
		return func() error { return nil }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	for {
		// The end of ctx must not roll back the transaction.
		tx, err := db.read.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return nil, fmt.Errorf("lock the migrations: %w", explainPooler(err))
		}
		var locked bool
		err = tx.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock($1)`, lock.DefaultLockID).Scan(&locked)
		if err == nil {
			// The server keeps the snapshot of a query until the next statement. A statement without
			// arguments leaves no snapshot.
			_, err = tx.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`)
		}
		if err != nil {
			_ = tx.Rollback() // the connection may be gone
			return nil, fmt.Errorf("lock the migrations: %w", explainPooler(err))
		}
		if locked {
			return tx.Rollback, nil
		}
		_ = tx.Rollback() // the transaction changed nothing
		if !sleep(ctx, migrationWait()) {
			return nil, fmt.Errorf("wait for another node to migrate: %w", ctx.Err())
		}
	}
}
