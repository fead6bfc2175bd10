package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// Tx is a running transaction. It ends when the function that received the Tx returns. It is not safe
// for concurrent use.
type Tx struct {
	db  *DB
	ctx context.Context
	tx  *sql.Tx
}

// updateTimeout bounds the total time of Update.
const updateTimeout = 15 * time.Second

// Update runs fn in a read-write transaction and commits. On SQLite the transaction has the write
// lock from its start. If the database asks for a retry (a serialization failure, a deadlock, a
// busy file) or ends the connection before the commit, Update runs fn again after a random wait, so
// fn must have no effect outside the transaction. If fn returns an error, Update rolls back and
// returns the error unchanged. If the result of the commit is unknown, the error is ErrUncertain;
// callers that move money repeat with an idempotency key.
//
// At the isolation level serializable, a duplicate key asks for a retry too: PostgreSQL may report it
// for a row that a concurrent transaction has inserted and this transaction's snapshot does not show.
func (db *DB) Update(ctx context.Context, fn func(tx *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	transient := func(err error) bool {
		return Retryable(err) || endedBefore(err) || db.level == sql.LevelSerializable && isDuplicate(err)
	}
	return retry(ctx, transient, func() error {
		return db.run(ctx, db.write, &sql.TxOptions{Isolation: db.level}, func(tx *Tx) error {
			if db.dialect == PostgreSQL {
				if _, err := tx.Exec(sessionLimits, "3s", "5s"); err != nil {
					return err
				}
			}
			return fn(tx)
		})
	})
}

// sessionLimits bounds a transaction on PostgreSQL: its waits for locks ($1), and its idle time ($2)
// before the server ends the transaction.
const sessionLimits = `SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)`

// batchLimits is sessionLimits for a transaction whose statements all find rows by their keys. It
// avoids new plans for each list of keys, and full reads of tables that were small when last
// analyzed.
const batchLimits = sessionLimits + `, set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// View runs fn on one consistent, read-only snapshot. If the database asks for a retry, or ends the
// connection, for example in a restart, View runs fn again after a random wait, so fn must have no
// effect outside the transaction.
func (db *DB) View(ctx context.Context, fn func(tx *Tx) error) error {
	opts := &sql.TxOptions{}
	if db.dialect == PostgreSQL {
		opts = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	return retry(ctx, repeatsRead, func() error { return db.run(ctx, db.read, opts, fn) })
}

// repeatsRead reports whether a read that failed with err may run again.
func repeatsRead(err error) bool { return Retryable(err) || endedBefore(err) }

// Read runs fn with DB.View and returns its result.
func Read[T any](ctx context.Context, db *DB, fn func(tx *Tx) (T, error)) (out T, err error) {
	err = db.View(ctx, func(tx *Tx) (err error) {
		out, err = fn(tx)
		return err
	})
	return out, err
}

// Write runs fn with DB.Update and returns its result.
func Write[T any](ctx context.Context, db *DB, fn func(tx *Tx) (T, error)) (out T, err error) {
	err = db.Update(ctx, func(tx *Tx) (err error) {
		out, err = fn(tx)
		return err
	})
	return out, err
}

// QueryRow runs one read-only statement that returns at most one row. Without a transaction it
// takes one round trip instead of three.
func (db *DB) QueryRow(ctx context.Context, query string, args ...any) (row *sql.Row) {
	_ = retry(ctx, repeatsRead, func() error {
		row = db.read.QueryRowContext(ctx, query, db.args(args)...)
		return row.Err()
	})
	return row // has the error
}

// run runs fn in one transaction and commits, without a retry.
func (db *DB) run(ctx context.Context, pool *sql.DB, opts *sql.TxOptions, fn func(tx *Tx) error) error {
	tx, err := pool.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("begin: %w", explainPooler(err))
	}
	defer func() { _ = tx.Rollback() }() // after a commit this is a no-op; it matters when fn fails or panics
	if err := fn(&Tx{db: db, ctx: ctx, tx: tx}); err != nil {
		return explainPooler(err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before the commit: %w", err)
	}
	start := db.clock.begin()
	if err := tx.Commit(); err != nil {
		// ErrTxDone means that ctx has ended and COMMIT was not sent. Read-only transactions have
		// no uncertain result either.
		if Refused(err) || errors.Is(err, sql.ErrTxDone) || pool == db.read {
			return fmt.Errorf("commit: %w", err)
		}
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	if pool == db.write {
		db.recordCommit(start)
	}
	return nil
}

// ErrUncertain means that the answer to a COMMIT was lost: the transaction may or may not have
// taken place.
var ErrUncertain = errors.New("the database did not answer the commit")

// endedBefore reports whether the server ended the connection before COMMIT was sent, for example
// in a restart. Nothing was committed then.
func endedBefore(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "57P01" && !errors.Is(err, ErrUncertain) // admin_shutdown
}

// isDuplicate reports whether PostgreSQL rejected a row with the key of another row.
func isDuplicate(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" // unique_violation
}

// Context returns the context of the transaction.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Dialect returns the engine.
func (tx *Tx) Dialect() Dialect { return tx.db.dialect }

// Exec runs a statement and returns the number of changed rows.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	res, err := tx.tx.ExecContext(tx.ctx, query, tx.db.args(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Query runs a statement that returns rows; the caller closes them.
func (tx *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	return tx.tx.QueryContext(tx.ctx, query, tx.db.args(args)...)
}

// Each calls fn for each row of a query until fn returns an error.
func (tx *Tx) Each(fn func(Row) error, query string, args ...any) error {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Collect calls scan for each row of a query and returns the results.
func Collect[T any](tx *Tx, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	var list []T
	err := tx.Each(func(row Row) error {
		v, err := scan(row)
		list = append(list, v)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Column returns the values of a query with one column.
func Column[T any](tx *Tx, query string, args ...any) ([]T, error) {
	return Collect(tx, func(row Row) (v T, err error) {
		err = row.Scan(&v)
		return v, err
	}, query, args...)
}

// QueryRow runs a statement that returns at most one row.
func (tx *Tx) QueryRow(query string, args ...any) *sql.Row {
	return tx.tx.QueryRowContext(tx.ctx, query, tx.db.args(args)...)
}

// Run runs the statements of b in this transaction, one after the other, and stops at the first
// failure. b must not contain Begin or Commit.
func (tx *Tx) Run(b *Batch) error {
	for _, item := range b.items {
		if err := tx.runItem(item); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) runItem(item batchItem) error {
	switch {
	case item.text == "":
		return item.scan(nil)
	case item.nowArg:
		item.args[len(item.args)-1] = tx.db.localMS()
	case item.scan == nil:
		n, err := tx.Exec(item.text, item.args...)
		if item.rows != nil {
			*item.rows = n
		}
		return err
	}
	return tx.Each(item.scan, item.text, item.args...)
}

// Batch returns an empty batch for Run.
func (tx *Tx) Batch() *Batch { return tx.db.NewBatch() }

// Lock locks the rows of table whose column holds one of ids, in ascending order, until the
// transaction ends. Read the rows in a later statement: on PostgreSQL a statement that waited for a
// lock sees older rows of other tables. On SQLite the transaction itself is the lock.
func (tx *Tx) Lock(table, column string, ids ...string) error {
	if tx.db.dialect == SQLite {
		return nil
	}
	rows, err := tx.Query(tx.db.lockText(table, column), List(ids))
	if err != nil {
		return fmt.Errorf("lock %s: %w", table, err)
	}
	for rows.Next() { // the locks are taken as the rows are read
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (db *DB) lockText(table, column string) string {
	return `SELECT 1 FROM ` + table + ` WHERE ` + db.In(column, 1) + ` ORDER BY ` + column + ` FOR UPDATE`
}

// Keep prevents other transactions from moving or dropping a table until this one ends. Call it before
// any other statement: a snapshot does not show the rows of a table that is dropped later. On SQLite
// it is a no-op, because a snapshot has the tables of its time.
func (tx *Tx) Keep(table string) error {
	if tx.db.dialect == SQLite {
		return nil
	}
	// LOCK TABLE takes no snapshot, so the transaction's snapshot is taken after the lock.
	_, err := tx.tx.ExecContext(tx.ctx, `LOCK TABLE `+table+` IN ACCESS SHARE MODE`)
	return err
}

// ByIndex makes PostgreSQL read by matching indexes, in their order, for the rest of the
// transaction, so that a page of a long list costs the same whatever the statistics are. It also
// turns off just-in-time compilation, which the huge cost estimates of other reads would trigger.
// On SQLite it is a no-op: write the statement so that only one index matches.
func (tx *Tx) ByIndex() error {
	if tx.db.dialect == SQLite {
		return nil
	}
	_, err := tx.Exec(`SELECT set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true),
		set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true)`)
	return err
}

// Serialize makes transactions with the same name wait for each other, for cases without a row to
// lock. On SQLite all writers wait anyway.
func (tx *Tx) Serialize(name string) error {
	if tx.db.dialect == SQLite {
		return nil
	}
	_, err := tx.Exec(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, name)
	return err
}

// In returns the condition that column holds one of the values of parameter n. Pass the parameter
// as a List.
func (tx *Tx) In(column string, n int) string { return tx.db.In(column, n) }

// In is Tx.In for statements built outside a transaction.
func (db *DB) In(column string, n int) string {
	if db.dialect == PostgreSQL {
		return fmt.Sprintf("%s = ANY($%d)", column, n)
	}
	return fmt.Sprintf("%s IN (SELECT value FROM json_each($%d))", column, n)
}

// InNumbers is In for a column of numbers. The List has them in decimal.
func (tx *Tx) InNumbers(column string, n int) string {
	if tx.db.dialect == PostgreSQL {
		return fmt.Sprintf("%s = ANY(CAST(CAST($%d AS text[]) AS bigint[]))", column, n)
	}
	return fmt.Sprintf("%s IN (SELECT CAST(value AS INTEGER) FROM json_each($%d))", column, n)
}

// NowMS returns the current time of the database's clock in Unix milliseconds: the server's on
// PostgreSQL, the machine's on SQLite. The clock may jump ahead and back, so stored times may lie
// in the future. Read it after taking locks.
func (tx *Tx) NowMS() (int64, error) {
	if tx.db.local {
		return tx.db.localMS(), nil
	}
	start := tx.db.clock.begin()
	var now int64
	err := tx.QueryRow(clockText).Scan(&now)
	if err == nil {
		tx.db.clock.observe(now, start)
	}
	return now, err
}

const clockText = `SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT`

// list is the argument of an In condition.
type list []string

// List passes values to an In condition.
func List(values []string) any { return list(values) }

// args converts the arguments with an engine-specific form.
func (db *DB) args(args []any) []any {
	for i, arg := range args {
		values, ok := arg.(list)
		if !ok {
			continue
		}
		args = slices.Clone(args)
		if values == nil {
			values = list{} // nil would be NULL, and neither IN nor NOT IN a NULL is true
		}
		if db.dialect == PostgreSQL {
			args[i] = []string(values)
			continue
		}
		raw, _ := json.Marshal([]string(values)) // strings: cannot fail
		args[i] = string(raw)
	}
	return args
}

// Retryable reports whether the database asked to run the whole transaction again. Nothing was
// committed.
func Retryable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
			return true
		}
		return false
	}
	return busy(err)
}

// LockTimeout reports whether err means that a transaction has waited too long for a lock of another
// transaction.
func LockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}

// busy reports whether another process held the SQLite file too long.
func busy(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && lite.Code()&0xff == 5 // SQLITE_BUSY and its extended codes
}

// NoRoom reports whether a file could not be written because the disk is full or fails. A later
// attempt may succeed.
func NoRoom(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "53100" // disk_full
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return slices.Contains([]int{13, 778, 4874}, lite.Code()) // FULL, IOERR_WRITE, IOERR_SHMSIZE
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Refused reports whether the database rejected a statement, so that the transaction was not
// committed. Unless the error is Retryable, a retry fails again. Refused returns false for a broken
// connection, a server shutdown and a full disk, because the outcome of a COMMIT is unknown then. It
// also returns false for a pooler's lost prepared statements, because another connection may have them.
func Refused(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if isStatementLost(err) {
			return false
		}
		switch pg.Code[:min(2, len(pg.Code))] {
		case "08", "53", "57", "58": // connection, resources, operator, system
			return false
		}
		return pg.Code != "25P03" && pg.Code != "25006" // idle in transaction, read-only server
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff {
		case 1, 5, 18, 19, 20, 25: // ERROR, BUSY, TOOBIG, CONSTRAINT, MISMATCH, RANGE
			return true
		}
	}
	return errors.Is(err, ErrColumn)
}
