// Package store owns the connection to the database: opening either engine, transactions,
// migrations, the database's clock (PostgreSQL's; on SQLite the machine's) and the lock on the file
// of SQLite. The tables belong to the packages that use them.
//
// Invariants: one SQL text serves both engines. An acknowledged commit is durable (SQLite: WAL with
// synchronous=FULL; PostgreSQL: synchronous_commit as the server sets it). SQLite has one writer at
// a time. No transaction spans a network call to anything but the database.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"tollgate/internal/store/migrations"
)

// Dialect is one of the two engines.
type Dialect int

// The engines.
const (
	SQLite Dialect = iota
	PostgreSQL
)

// String returns the engine's name.
func (d Dialect) String() string {
	if d == PostgreSQL {
		return "postgres"
	}
	return "sqlite"
}

// ErrURL reports a database setting that names neither engine.
var ErrURL = errors.New("must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME")

// Options configure Open. The zero value is right for production.
type Options struct {
	// Connections bounds the PostgreSQL connections of this node. Zero means 16.
	Connections int
	// Now replaces the database's clock on both engines. It is for tests; in production the time
	// comes from the database, and on SQLite from the machine.
	Now func() time.Time
	// Elapsed replaces the process's monotonic clock, which detects jumps of Now. If Now is set and
	// Elapsed is not, no jump is detected.
	Elapsed func() time.Duration
	// OnJump, if not nil, is called for each jump of the database's clock; a negative jump is back.
	// It must not block.
	OnJump func(jump time.Duration)
	// Log gets the waits of migrations and the progress of backfills. If nil, nothing is logged.
	Log *slog.Logger
	// Backfills has the backfills of this version, in the order in which they run.
	Backfills []Backfill
	// OldestBinary returns the lowest NewestMigration of the running nodes, or math.MaxInt64 if
	// none runs. If nil, no other node runs.
	OldestBinary func(tx *Tx) (int64, error)
	// Migrations replaces the migrations of this version. It is for tests.
	Migrations fs.FS
}

// DB is one database. It is safe for concurrent use.
type DB struct {
	dialect Dialect
	file    *sqliteFile        // of SQLite only
	write   *sql.DB            // SQLite: exactly one connection
	read    *sql.DB            // a separate pool, so that readers cannot delay writers
	level   sql.IsolationLevel // PostgreSQL: of writing transactions; see writeLevel
	local   bool               // the clock is this process's: on SQLite, and in tests
	clock   *clock
	stmts   stmtCache // SQLite: prepared statements; only the holder of the write connection uses them

	log          *slog.Logger
	source       fs.FS // of the migrations
	backfills    []*backfill
	oldestBinary func(tx *Tx) (int64, error)

	lastCommit atomic.Int64 // nanoseconds; see LastCommit
}

// sqliteReaders bounds the read connections on SQLite. Reads are short and processor-bound, so more
// connections would only cost memory.
const sqliteReaders = 4

// Open connects to the database named by url and checks that it answers. It creates a missing
// SQLite file (mode 0600) and its folder (0700), and does not migrate. Errors never show the URL's
// password. It returns ErrOtherName if an SQLite file is in use under another name. A process must
// open an SQLite file only once: closing one DB would drop the SQLite locks of another.
func Open(ctx context.Context, url string, opts Options) (*DB, error) {
	switch {
	case strings.HasPrefix(url, "sqlite:") && len(url) > len("sqlite:"):
		return openSQLite(ctx, strings.TrimPrefix(url, "sqlite:"), opts)
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		return openPostgreSQL(ctx, url, opts)
	}
	return nil, ErrURL
}

// newDB returns a DB without connections.
func newDB(dialect Dialect, opts Options) *DB {
	db := &DB{
		dialect: dialect, local: opts.Now != nil, clock: newClock(opts),
		log: opts.Log, source: opts.Migrations, oldestBinary: opts.OldestBinary,
	}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	if db.source == nil {
		db.source = migrations.Files
	}
	for _, b := range opts.Backfills {
		db.backfills = append(db.backfills, &backfill{Backfill: b})
	}
	return db
}

func openSQLite(ctx context.Context, path string, opts Options) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the database folder: %w", err)
	}
	file, err := openSQLiteFile(path)
	if err != nil {
		return nil, err
	}
	db := newDB(SQLite, opts)
	db.file, db.local = file, true
	if db.write, err = sql.Open("sqlite", sqliteDSN(file.path, "_txlock=immediate")); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database: %w", err), file.close())
	}
	if db.read, err = sql.Open("sqlite", sqliteDSN(file.path, "_txlock=deferred&_pragma=query_only(1)")); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database: %w", err), db.write.Close(), file.close())
	}
	db.write.SetMaxOpenConns(1)
	db.write.SetMaxIdleConns(1)
	db.read.SetMaxOpenConns(sqliteReaders)
	db.read.SetMaxIdleConns(sqliteReaders)
	if err := db.checkSQLite(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// sqliteDSN returns the data source name of a file with the settings for every connection.
func sqliteDSN(path, more string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		"&_pragma=cache_size(-4096)&_pragma=wal_autocheckpoint(16000)&" + more
}

// checkSQLite refuses engines before 3.51.3, whose reset of the write-ahead log could lose a
// committed transaction, and files outside WAL mode.
func (db *DB) checkSQLite(ctx context.Context) error {
	var version, mode string
	var major, minor, patch int
	if err := db.write.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return fmt.Errorf("read the SQLite version %q: %w", version, err)
	}
	if major*1_000_000+minor*1_000+patch < 3_051_003 {
		return fmt.Errorf("SQLite %s is too old: 3.51.3 or newer is needed", version)
	}
	if err := db.write.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("the database file is in journal mode %q, WAL is needed", mode)
	}
	return nil
}

// openPostgreSQL opens two pools on one server: half of the connections write, the others read.
func openPostgreSQL(ctx context.Context, url string, opts Options) (*DB, error) {
	connections := opts.Connections
	if connections <= 0 {
		connections = 16
	}
	db := newDB(PostgreSQL, opts)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err) // the driver leaves out the password
	}
	writers := max(2, connections/2)
	db.write = openPool(withoutCancel(config), writers)
	db.read = openPool(stdlib.GetConnector(*config), max(2, connections-writers))
	if db.level, err = writeLevel(ctx, db.write); err != nil {
		return nil, errors.Join(fmt.Errorf("reach the database: %w", explainPooler(oneLine(err))), db.Close())
	}
	return db, nil
}

// writeLevel returns the level of isolation for writing transactions. Their statements assume read
// committed: after a wait for a lock, they must see the rows of the lock's former owner.
// Serializable is correct too, because the server detects a stale read and the transaction is
// retried, so writeLevel keeps it if it is the server's default. Repeatable read would be wrong.
func writeLevel(ctx context.Context, pool *sql.DB) (sql.IsolationLevel, error) {
	var level string
	if err := pool.QueryRowContext(ctx, `SHOW default_transaction_isolation`).Scan(&level); err != nil {
		return 0, err
	}
	if level == "serializable" {
		return sql.LevelSerializable, nil
	}
	return sql.LevelReadCommitted, nil
}

// oneLine returns a connection error in one line. The driver returns a line for every address and
// method, most of them equal.
func oneLine(err error) error {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return err
	}
	var lines []string
	for line := range strings.Lines(failed.Unwrap().Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return &connectError{fmt.Sprintf("user %s, database %s: %s", failed.Config.User, failed.Config.Database, strings.Join(lines, "; ")), err}
}

// connectError is a driver's error with another text.
type connectError struct {
	text string
	err  error
}

// Error implements error.
func (e *connectError) Error() string { return e.text }

// Unwrap returns the driver's error.
func (e *connectError) Unwrap() error { return e.err }

// Writers returns the number of connections that write. It is 1 on SQLite.
func (db *DB) Writers() int { return db.write.Stats().MaxOpenConnections }

func openPool(connector driver.Connector, connections int) *sql.DB {
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return pool
}

// Bool returns a boolean as both databases store it: 1 or 0.
func Bool(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// OneProcess reports whether only one process at a time can serve the database. If so,
// every other node has ended when this one serves.
func (db *DB) OneProcess() bool { return db.dialect == SQLite }

// ReadsAreDurable reports whether a read returns only commits that cannot be lost. On PostgreSQL it
// may return commits before a synchronous standby has them.
func (db *DB) ReadsAreDurable() bool { return db.dialect == SQLite }

// HasVersion reports whether Batch.Version is available to validate cached rows.
func (db *DB) HasVersion() bool { return db.dialect == SQLite }

// Dialect returns the engine. Prefer a capability, such as OneProcess or HasVersion.
func (db *DB) Dialect() Dialect { return db.dialect }

// Ping checks that the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.read.QueryRowContext(ctx, `SELECT 1`).Scan(&one)
}

// Connections are the numbers of connections, and how often and how long callers have waited for
// one since Open.
type Connections struct {
	InUse, Idle int
	Waits       int64
	WaitTime    time.Duration
}

// Connections returns the current numbers.
func (db *DB) Connections() Connections {
	var all Connections
	for _, pool := range []*sql.DB{db.write, db.read} {
		s := pool.Stats()
		all.InUse, all.Idle = all.InUse+s.InUse, all.Idle+s.Idle
		all.Waits, all.WaitTime = all.Waits+s.WaitCount, all.WaitTime+s.WaitDuration
	}
	return all
}

// Close closes all connections and rolls back running transactions. The lock of LockFile ends with
// the last connection.
func (db *DB) Close() error {
	errs := []error{db.read.Close()}
	if db.dialect == SQLite {
		errs = append(errs, db.finalize())
	}
	errs = append(errs, db.write.Close())
	// A connection in use lives until its user is done or the process ends, and so do the locks.
	if db.dialect == SQLite && db.read.Stats().OpenConnections+db.write.Stats().OpenConnections == 0 {
		errs = append(errs, db.file.close())
	}
	return errors.Join(errs...)
}

// closeTimeout bounds the time Close waits for running transactions.
const closeTimeout = 5 * time.Second

// finalize closes the prepared statements of SQLite's write connection. While one is open, SQLite
// keeps the closed connection open, and neither moves the WAL into the database file nor deletes the
// WAL.
func (db *DB) finalize() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(raw any) error { return db.stmts.finalize(raw.(driver.Conn)) })
}
