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

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Foreign is a snapshot of another program's database. Foreign never writes and is not
// safe for concurrent use. The caller must close it.
type Foreign struct {
	engine foreignEngine
	db     *sql.DB
	tx     *sql.Tx
}

// foreignEngine is a kind of database and its dialect of SQL.
type foreignEngine struct {
	quote     string // around the name of a table
	hasTable  string // counts the tables with a name
	selectAll string // with %s for the name of a table
	json      bool   // a row is a JSON object
	options   sql.TxOptions
}

// ErrNoTable reports a table missing from another program's database.
var ErrNoTable = errors.New("there is no such table")

// OpenForeign opens the database named by source: a postgres:// URL, the address of a MySQL or
// MariaDB database (USER:PASSWORD@tcp(HOST:PORT)/DATABASE), or the path of an SQLite file. Errors
// do not contain the password.
func OpenForeign(ctx context.Context, source string) (*Foreign, error) {
	open := foreignSQLite
	if strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://") {
		open = foreignPostgreSQL
	} else if _, err := os.Stat(source); err != nil && strings.ContainsAny(source, "@(") {
		open = foreignMySQL // the path of a file may contain these characters too
	}
	f, err := open(source)
	if err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	if f.tx, err = f.db.BeginTx(ctx, &f.engine.options); err != nil {
		return nil, errors.Join(fmt.Errorf("open the source: %w", err), f.db.Close())
	}
	return f, nil
}

func foreignSQLite(path string) (*Foreign, error) {
	file, err := os.Open(path) // the error of SQLite would be less clear
	if err != nil {
		return nil, err
	}
	file.Close()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	return &Foreign{db: db, engine: foreignEngine{quote: `"`, selectAll: `SELECT * FROM %s`,
		hasTable: `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1`}}, nil
}

func foreignPostgreSQL(address string) (*Foreign, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, err // the driver leaves out the password
	}
	return &Foreign{db: stdlib.OpenDB(*config), engine: foreignEngine{quote: `"`, selectAll: `SELECT to_jsonb(t)::text FROM %s t`, json: true,
		hasTable: `SELECT count(*) FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) AND tablename = $1`,
		options:  sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}}}, nil
}

func foreignMySQL(address string) (*Foreign, error) {
	config, err := mysql.ParseDSN(address)
	if err != nil || config.DBName == "" { // the driver's error may contain the password
		return nil, errors.New("it is not a file, and not the address of a database: write postgres://USER:PASSWORD@HOST/DATABASE, " +
			"or for MySQL and MariaDB USER:PASSWORD@tcp(HOST:3306)/DATABASE")
	}
	config.ParseTime = false // a text can also be 0000-00-00
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return &Foreign{db: sql.OpenDB(connector), engine: foreignEngine{quote: "`", selectAll: `SELECT * FROM %s`,
		hasTable: `SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = ?`,
		options:  sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}}}, nil
}

// Close ends the snapshot.
func (f *Foreign) Close() error { return errors.Join(f.tx.Rollback(), f.db.Close()) }

// Each calls row with each row of a table. The map holds the values by column as text:
// booleans as true and false (MySQL and SQLite: 1 and 0), lists and objects as JSON. A
// NULL is absent. Each returns ErrNoTable if there is no such table, and any error of
// row.
func (f *Foreign) Each(ctx context.Context, table string, row func(map[string]string) error) error {
	if err := f.checkTable(ctx, table); err != nil {
		return err
	}
	quote := f.engine.quote
	name := quote + strings.ReplaceAll(table, quote, quote+quote) + quote
	rows, err := f.tx.QueryContext(ctx, fmt.Sprintf(f.engine.selectAll, name))
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

// checkTable returns ErrNoTable if the table is missing.
func (f *Foreign) checkTable(ctx context.Context, table string) error {
	var found int
	if err := f.tx.QueryRowContext(ctx, f.engine.hasTable, table).Scan(&found); err != nil {
		return fmt.Errorf("look for the table %s: %w", table, err)
	}
	if found == 0 {
		return fmt.Errorf("%s: %w", table, ErrNoTable)
	}
	return nil
}

func (f *Foreign) scan(rows *sql.Rows, columns []string) (map[string]string, error) {
	if f.engine.json {
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

// textsOf returns the non-null members of a JSON object as texts.
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

// textOf returns a value of SQLite or MySQL as text. It returns false for NULL.
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
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 32), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), true
	}
	return fmt.Sprint(value), true
}
