package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Batch is a list of statements that are sent together: in one round trip on PostgreSQL, and as
// prepared statements one after the other on SQLite. The texts of statements should be few and
// constant, because each text is prepared once and stays prepared.
type Batch struct {
	db    *DB
	items []batchItem
}

type batchItem struct {
	text string
	args []any
	rows *int64              // gets the number of changed rows; may be nil
	scan func(row Row) error // for a statement that returns rows

	nowArg bool // the last argument is the time of this process's clock when the statement runs
}

// Row is one row of a result. In a batch, Scan accepts only *int64 and *string.
type Row interface {
	// Scan copies the row's columns, in order, into the values pointed at by dest.
	Scan(dest ...any) error
}

// NewBatch returns an empty batch.
func (db *DB) NewBatch() *Batch { return &Batch{db: db} }

// Exec adds a statement. When the batch has run, the number of changed rows is stored in rows,
// unless rows is nil.
func (b *Batch) Exec(rows *int64, text string, args ...any) {
	b.items = append(b.items, batchItem{text: text, args: b.db.args(args), rows: rows})
}

// Query adds a statement that returns rows; scan is called for each row when the batch runs. An
// error of scan ends the batch.
func (b *Batch) Query(scan func(row Row) error, text string, args ...any) {
	b.items = append(b.items, batchItem{text: text, args: b.db.args(args), scan: scan})
}

// QueryLocked is Query for a statement that locks its rows until the transaction ends, in the
// statement's order. The statement must not join other tables: after waiting for a lock, it would
// read their rows as they were before the wait.
func (b *Batch) QueryLocked(scan func(row Row) error, text string, args ...any) {
	if b.db.dialect == PostgreSQL {
		text += ` FOR UPDATE`
	}
	b.Query(scan, text, args...)
}

// QueryFree is like QueryLocked, but does not wait: the result omits rows locked by other transactions.
// SQLite has one writer, so its rows are always free.
func (b *Batch) QueryFree(scan func(row Row) error, text string, args ...any) {
	if b.db.dialect == PostgreSQL {
		text += ` FOR UPDATE SKIP LOCKED`
	}
	b.Query(scan, text, args...)
}

// ExecShared is Exec for INSERT ... SELECT text with an ON CONFLICT clause. Until the transaction ends,
// no other transaction can lock the selected rows (Tx.Lock) or delete them. Other transactions can run
// ExecShared on the rows at the same time, and change columns outside the key.
func (b *Batch) ExecShared(rows *int64, text, conflict string, args ...any) {
	if b.db.dialect == PostgreSQL {
		text += ` FOR KEY SHARE`
	}
	b.Exec(rows, text+` `+conflict, args...)
}

// Begin opens a transaction. On SQLite, Begin takes the write lock. On PostgreSQL, the transaction
// waits at most lockTimeout ("500ms") for each lock and may be idle for idleTimeout ("2s") between
// round trips. Its statements must find rows by keys, because plans are generic and sequential
// scans are off.
func (b *Batch) Begin(lockTimeout, idleTimeout string) {
	if b.db.dialect == SQLite {
		b.Exec(nil, `BEGIN IMMEDIATE`)
		return
	}
	b.Exec(nil, `BEGIN ISOLATION LEVEL `+b.db.level.String())
	b.Query(func(Row) error { return nil }, batchLimits, lockTimeout, idleTimeout)
}

// Commit ends the transaction.
func (b *Batch) Commit() { b.Exec(nil, `COMMIT`) }

// Rollback ends the transaction without its changes.
func (b *Batch) Rollback() { b.Exec(nil, `ROLLBACK`) }

// Now adds a query that stores the database's time in ms, in Unix milliseconds, like Tx.NowMS.
func (b *Batch) Now(ms *int64) {
	if b.db.local {
		b.items = append(b.items, batchItem{scan: func(Row) error { *ms = b.db.localMS(); return nil }})
		return
	}
	start := b.db.clock.begin()
	b.Query(func(row Row) error {
		err := row.Scan(ms)
		if err == nil {
			b.db.clock.observe(*ms, start)
		}
		return err
	}, clockText)
}

// QueryNow adds a query that also reads the time, at this place in the batch. Its text is
// SELECT n.ms, COLUMNS FROM %s n LEFT JOIN ..., where %s becomes a table of one row with the column
// ms. The result always has a row, whose first column is the time in Unix milliseconds; scan must
// store it in ms.
func (b *Batch) QueryNow(ms *int64, scan func(row Row) error, text string, args ...any) {
	args = b.db.args(args)
	if b.db.local {
		clock := fmt.Sprintf("(SELECT CAST($%d AS BIGINT) AS ms)", len(args)+1)
		b.items = append(b.items, batchItem{text: fmt.Sprintf(text, clock), args: append(args, nil), scan: scan, nowArg: true})
		return
	}
	start, observed := b.db.clock.begin(), false
	b.items = append(b.items, batchItem{text: fmt.Sprintf(text, "("+clockText+" AS ms)"), args: args, scan: func(row Row) error {
		err := scan(row)
		if err == nil && !observed {
			b.db.clock.observe(*ms, start)
			observed = true
		}
		return err
	}})
}

// Session is one write connection for batches. On SQLite an open session excludes every other
// writer of this process.
type Session struct {
	db   *DB
	conn *sql.Conn
}

// Session takes a write connection from the pool. The caller must close the session.
func (db *DB) Session(ctx context.Context) (*Session, error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("take a connection: %w", err)
	}
	return &Session{db: db, conn: conn}, nil
}

// Run runs the statements of b in order and stops at the first failure. An open transaction stays
// open after an error: call Close with keep false.
func (s *Session) Run(ctx context.Context, b *Batch) error {
	return s.conn.Raw(func(raw any) error {
		if s.db.dialect == PostgreSQL {
			return explainPooler(runPostgreSQL(ctx, raw.(*stdlib.Conn).Conn(), b))
		}
		return s.db.stmts.run(raw.(driver.Conn), b)
	})
}

// Close returns the connection to the pool. Pass keep false if a transaction may be open: Close
// then rolls back on SQLite, and drops the connection on PostgreSQL, so that the server rolls back.
func (s *Session) Close(keep bool) error {
	if !keep {
		err := s.conn.Raw(func(raw any) error {
			if s.db.dialect == PostgreSQL {
				return driver.ErrBadConn
			}
			rollback := s.db.NewBatch()
			rollback.Exec(nil, `ROLLBACK`)
			_ = s.db.stmts.run(raw.(driver.Conn), rollback) // ROLLBACK fails if no transaction is open, which is fine
			return nil
		})
		if err != nil && !errors.Is(err, driver.ErrBadConn) {
			return errors.Join(err, s.conn.Close())
		}
	}
	if err := s.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}

func runPostgreSQL(ctx context.Context, conn *pgx.Conn, b *Batch) error {
	var pipe pgx.Batch
	var local []func(Row) error // scans of items without a statement
	for _, item := range b.items {
		if item.text == "" {
			local = append(local, item.scan)
			continue
		}
		if item.nowArg {
			item.args[len(item.args)-1] = b.db.localMS()
		}
		queued := pipe.Queue(item.text, item.args...)
		switch {
		case item.scan != nil:
			queued.Query(func(rows pgx.Rows) error {
				for rows.Next() {
					if err := item.scan(rows); err != nil {
						return err
					}
				}
				return rows.Err()
			})
		case item.rows != nil:
			queued.Exec(func(tag pgconn.CommandTag) error { *item.rows = tag.RowsAffected(); return nil })
		}
	}
	if err := conn.SendBatch(ctx, &pipe).Close(); err != nil {
		return err
	}
	for _, scan := range local {
		if err := scan(nil); err != nil {
			return err
		}
	}
	return nil
}

// stmtCache holds the prepared statements of SQLite's only write connection. It needs no lock,
// because only the holder of the connection uses the cache.
type stmtCache struct {
	conn  driver.Conn
	count int64 // number of connections opened so far
	stmts map[string]driver.Stmt
	args  []driver.NamedValue // of the last statement; its space is used again
}

func (c *stmtCache) run(conn driver.Conn, b *Batch) error {
	if c.conn != conn { // the first use, or the pool replaced the connection
		c.conn, c.stmts = conn, map[string]driver.Stmt{}
		c.count++
	}
	for _, item := range b.items {
		if item.text == "" {
			if err := item.scan(nil); err != nil {
				return err
			}
			continue
		}
		if item.nowArg {
			item.args[len(item.args)-1] = b.db.localMS()
		}
		stmt, err := c.prepare(item.text)
		if err != nil {
			return err
		}
		c.args = c.args[:0]
		for i, arg := range item.args {
			value, err := driver.DefaultParameterConverter.ConvertValue(arg)
			if err != nil {
				return err
			}
			c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: value})
		}
		if item.scan == nil {
			err = execSQLite(stmt, c.args, item.rows)
		} else {
			err = querySQLite(stmt, c.args, item.scan)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *stmtCache) prepare(text string) (driver.Stmt, error) {
	if stmt, ok := c.stmts[text]; ok {
		return stmt, nil
	}
	stmt, err := c.conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	c.stmts[text] = stmt
	return stmt, nil
}

// finalize ends the statements prepared on conn.
func (c *stmtCache) finalize(conn driver.Conn) error {
	if c.conn != conn {
		return nil // the cache has no statements of conn
	}
	var errs []error
	for _, stmt := range c.stmts {
		errs = append(errs, stmt.Close())
	}
	c.conn, c.stmts = nil, nil
	return errors.Join(errs...)
}

func execSQLite(stmt driver.Stmt, args []driver.NamedValue, changed *int64) error {
	res, err := stmt.(driver.StmtExecContext).ExecContext(context.Background(), args)
	if err != nil || changed == nil {
		return err
	}
	*changed, err = res.RowsAffected()
	return err
}

func querySQLite(stmt driver.Stmt, args []driver.NamedValue, scan func(Row) error) error {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), args)
	if err != nil {
		return err
	}
	row := sqliteRow(make([]driver.Value, len(rows.Columns())))
	for err == nil {
		if err = rows.Next(row); err == nil {
			err = scan(row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

// ErrColumn reports a value whose type is not its column's type; SQLite allows such values. Run
// stops, and Refused reports true for the error, because a retry would fail again on the same row.
var ErrColumn = errors.New("a row is damaged")

// sqliteRow is a row of SQLite as the driver returns it.
type sqliteRow []driver.Value

// Scan implements Row.
func (r sqliteRow) Scan(dest ...any) error {
	if len(dest) != len(r) {
		return fmt.Errorf("scan %d columns into %d values", len(r), len(dest))
	}
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			v, ok := r[i].(int64)
			if !ok {
				return fmt.Errorf("%w: column %d is a %T, not an integer", ErrColumn, i, r[i])
			}
			*d = v
		case *string:
			v, ok := r[i].(string)
			if !ok {
				return fmt.Errorf("%w: column %d is a %T, not a text", ErrColumn, i, r[i])
			}
			*d = v
		default:
			return fmt.Errorf("column %d: a row scans into *int64 and *string, not %T", i, d)
		}
	}
	return nil
}
