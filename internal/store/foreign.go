package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Foreign is another program's database, of which one snapshot is read and nothing
// written. It is not safe for concurrent use. Close it.
type Foreign struct {
	dialect Dialect
	db      *sql.DB
	tx      *sql.Tx
}

// ErrNoTable means that another program's database has no such table.
var ErrNoTable = errors.New("there is no such table")

// OpenForeign opens the database that a postgres:// URL names, or the SQLite file at a
// path. Errors never show the URL's password.
func OpenForeign(ctx context.Context, source string) (*Foreign, error) {
	f := &Foreign{dialect: SQLite}
	opts := &sql.TxOptions{}
	if strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://") {
		config, err := pgx.ParseConfig(source)
		if err != nil {
			return nil, fmt.Errorf("open the source: %w", err) // without the password
		}
		f.dialect, f.db = PostgreSQL, stdlib.OpenDB(*config)
		opts = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	} else {
		file, err := os.Open(source) // SQLite would say less
		if err != nil {
			return nil, fmt.Errorf("open the source: %w", err)
		}
		file.Close()
		db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: source}).EscapedPath()+"?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)")
		if err != nil {
			return nil, fmt.Errorf("open the source: %w", err)
		}
		f.db = db
	}
	var err error
	if f.tx, err = f.db.BeginTx(ctx, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("open the source: %w", err), f.db.Close())
	}
	return f, nil
}

// Close ends the snapshot.
func (f *Foreign) Close() error { return errors.Join(f.tx.Rollback(), f.db.Close()) }

// Each calls row with each row of a table: the values by column as text, booleans as
// true and false, lists and objects as JSON; NULL has none. Errors: ErrNoTable, and
// row's.
func (f *Foreign) Each(ctx context.Context, table string, row func(map[string]string) error) error {
	if err := f.has(ctx, table); err != nil {
		return err
	}
	name := `"` + strings.ReplaceAll(table, `"`, `""`) + `"`
	text := `SELECT * FROM ` + name
	if f.dialect == PostgreSQL {
		text = `SELECT to_jsonb(t)::text FROM ` + name + ` t`
	}
	rows, err := f.tx.QueryContext(ctx, text)
	if err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	for rows.Next() {
		values, err := f.scan(rows, columns)
		if err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if err := row(values); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	return nil
}

// has returns ErrNoTable where a table is missing.
func (f *Foreign) has(ctx context.Context, table string) error {
	text := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1`
	if f.dialect == PostgreSQL {
		text = `SELECT count(*) FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) AND tablename = $1`
	}
	var found int
	if err := f.tx.QueryRowContext(ctx, text, table).Scan(&found); err != nil {
		return fmt.Errorf("look for the table %s: %w", table, err)
	}
	if found == 0 {
		return fmt.Errorf("%s: %w", table, ErrNoTable)
	}
	return nil
}

// scan reads a row.
func (f *Foreign) scan(rows *sql.Rows, columns []string) (map[string]string, error) {
	if f.dialect == PostgreSQL {
		var object string
		if err := rows.Scan(&object); err != nil {
			return nil, err
		}
		return textsOf([]byte(object))
	}
	raw := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range raw {
		into[i] = &raw[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	values := make(map[string]string, len(columns))
	for i, name := range columns {
		if text, ok := textOf(raw[i]); ok {
			values[name] = text
		}
	}
	return values, nil
}

// textsOf returns the members of a JSON object as texts, but for those that are null.
func textsOf(object []byte) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	values := make(map[string]string, len(members))
	for name, raw := range members {
		text := string(raw)
		if text == "null" {
			continue
		}
		if strings.HasPrefix(text, `"`) {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}
		values[name] = text
	}
	return values, nil
}

// textOf returns a value of SQLite as text; false for NULL.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case []byte:
		return string(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), true
	}
	return fmt.Sprint(value), true
}
