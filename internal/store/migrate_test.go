package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"tollgate/internal/store"
	"tollgate/internal/store/migrations"
	"tollgate/internal/store/storetest"
)

// later returns the migrations of a later version: those of this version and more, by file name.
func later(t *testing.T, more ...string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := migrations.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return all
}

// The migrations of the tests, in pairs of file name and text.
var (
	bigTable = []string{"9001_big.sql",
		`CREATE TABLE big (id BIGINT NOT NULL PRIMARY KEY, account BIGINT NOT NULL, n BIGINT NOT NULL)`}
	bigOwner = append(bigTable[:2:2], "9002_owner.sql", `ALTER TABLE big ADD COLUMN owner TEXT NOT NULL DEFAULT ''`)
	bigIndex = append(bigOwner[:4:4], "9003_index.sql", "-- Accounts.\nCREATE INDEX CONCURRENTLY big_account ON big (account, n);\n",
		"9004_since.sql", "ALTER TABLE big ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;\nUPDATE store_schema SET compatible_since = 9002;")
	bigNeeds = append(bigIndex[:8:8], "9005_needs.sql",
		"-- needs backfill: big_owner\nCREATE TABLE big_owned (id BIGINT NOT NULL PRIMARY KEY)")
)

// open opens a database with migrations of a test. The caller closes it.
func open(t *testing.T, url string, opts store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func closeDB(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// fill inserts n rows into the table big.
func fill(t *testing.T, db *store.DB, n int) {
	t.Helper()
	text := `INSERT INTO big (id, account, n) SELECT i, i / 1000, 0 FROM generate_series(CAST($1 AS BIGINT), CAST($2 AS BIGINT)) AS i`
	if db.Dialect() == store.SQLite {
		text = `WITH RECURSIVE s(i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM s WHERE i < $2)
			INSERT INTO big (id, account, n) SELECT i, i / 1000, 0 FROM s`
	}
	const part = 100_000
	for from := 1; from <= n; from += part {
		storetest.Update(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec(text, from, min(n, from+part-1))
			return err
		})
	}
}

// owners is a backfill of the column owner.
func owners(rows int) store.Backfill {
	return store.Backfill{Name: "big_owner", Rows: rows, Step: func(tx *store.Tx, position string, limit int) (string, int, error) {
		from, _ := strconv.Atoi(position) // 0 for the first
		var last, count int
		err := tx.QueryRow(`SELECT COALESCE(MAX(id), 0), COUNT(*) FROM (SELECT id FROM big WHERE id > $1 ORDER BY id LIMIT $2) AS part`,
			from, limit).Scan(&last, &count)
		if err != nil {
			return "", 0, err
		}
		changed, err := tx.Exec(`UPDATE big SET owner = owner || 'o' || account WHERE id > $1 AND id <= $2 AND owner = ''`, from, last)
		if count < limit {
			return "", int(changed), err
		}
		return strconv.Itoa(last), int(changed), err
	}}
}

// count returns the result of a query with one number.
func count(t *testing.T, db *store.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// writers write to the table big, like nodes of the version with the column owner, until they are
// stopped. A writer waits at most one second for a lock.
type writers struct {
	stop    chan struct{}
	group   sync.WaitGroup
	commits atomic.Int64
	errs    chan error
	failed  chan struct{} // closed at the first error
	once    sync.Once
}

// startWriters starts two writers of a table with rows rows.
func startWriters(db *store.DB, rows int) *writers {
	w := &writers{stop: make(chan struct{}), errs: make(chan error, 1000), failed: make(chan struct{})}
	for worker := range 2 {
		w.group.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-w.stop:
					return
				default:
				}
				err := db.Update(context.Background(), func(tx *store.Tx) error {
					err := w.writeTx(tx, 1+(i*7919+worker*104729)%rows, rows+2*i+worker)
					if err != nil {
						w.errs <- err // Update would try again
						w.once.Do(func() { close(w.failed) })
					}
					return err
				})
				if err == nil {
					w.commits.Add(1)
				}
			}
		})
	}
	return w
}

func (w *writers) writeTx(tx *store.Tx, old, fresh int) error {
	if tx.Dialect() == store.PostgreSQL {
		if _, err := tx.Exec(`SELECT set_config('lock_timeout', '1s', true)`); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(`UPDATE big SET n = n + 1 WHERE id = $1`, old); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO big (id, account, n, owner) VALUES ($1, 0, 1, 'o0')`, fresh)
	return err
}

// end stops the writers and reports their errors.
func (w *writers) end(t *testing.T) {
	t.Helper()
	close(w.stop)
	w.group.Wait()
	close(w.errs)
	for err := range w.errs {
		t.Errorf("a writer: %v, want no error", err)
	}
}

// TestMigrateAMillionRows adds an index and a column to a large table and fills another column,
// while nodes of the version before write to the table. No writer waits a second for a lock.
func TestMigrateAMillionRows(t *testing.T) {
	t.Parallel()
	const rows = 1_000_000
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		before := open(t, url, store.Options{Migrations: later(t, bigOwner...)})
		if err := before.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		fill(t, before, rows)
		next := store.Options{Migrations: later(t, bigIndex...), Backfills: []store.Backfill{owners(5000)}}
		var after *store.DB
		var load *writers
		if before.OneProcess() { // nobody serves the file while it migrates
			closeDB(t, before)
			after = open(t, url, next)
			if err := after.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			load = startWriters(after, rows)
		} else {
			load = startWriters(before, rows)
			after = open(t, url, next)
			if err := after.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			defer closeDB(t, before)
		}
		started := load.commits.Load()
		steps := 0
		for more := true; more; steps++ {
			var err error
			if more, err = after.StepBackfills(ctx); err != nil {
				t.Fatal(err)
			}
		}
		written := load.commits.Load() - started
		load.end(t)
		if steps < rows/5000 || written < int64(steps)/10 {
			t.Errorf("got %d steps with %d writes, want at least %d and %d", steps, written, rows/5000, steps/10)
		}
		if n := count(t, after, `SELECT COUNT(*) FROM big WHERE owner <> 'o' || account`); n != 0 {
			t.Errorf("%d rows have a wrong owner, want none", n)
		}
		valid := `SELECT COUNT(*) FROM sqlite_master WHERE name = 'big_account'`
		if after.Dialect() == store.PostgreSQL {
			valid = `SELECT COUNT(*) FROM pg_index WHERE indexrelid = to_regclass('big_account') AND indisvalid`
		}
		if count(t, after, valid) != 1 {
			t.Error("the index is missing or invalid, want a valid index")
		}
		schema, err := after.Schema(ctx)
		if err := errors.Join(err, schema.Check()); err != nil || len(schema.Backfills) != 0 {
			t.Errorf("got the schema %+v, %v; want it current without backfills", schema, err)
		}
		closeDB(t, after)
	})
}

// logWatcher is a log that signals the first line with certain words.
type logWatcher struct {
	mu    sync.Mutex
	text  bytes.Buffer
	found chan struct{} // closed when a line contains words
	words string
}

func newLogWatcher(words string) *logWatcher {
	return &logWatcher{found: make(chan struct{}), words: words}
}

func (l *logWatcher) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.words != "" && strings.Contains(string(p), l.words) {
		close(l.found)
		l.words = ""
	}
	return l.text.Write(p)
}

func (l *logWatcher) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestMigrationGivesWay migrates a table while another transaction reads it. The migration lets the
// writers pass, and succeeds when the transaction has ended.
func TestMigrationGivesWay(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), storetest.PostgreSQL(t)
	before := open(t, url, store.Options{Migrations: later(t, bigOwner...)})
	defer closeDB(t, before)
	if err := before.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	fill(t, before, 1000)
	log := newLogWatcher("trying again")
	after := open(t, url, store.Options{Log: log.logger(),
		Migrations: later(t, append(bigOwner[:4:4], "9003_seen.sql", `ALTER TABLE big ADD COLUMN seen BIGINT NOT NULL DEFAULT 0`)...)})
	defer closeDB(t, after)
	migrated := make(chan error, 1)
	load := startWriters(before, 1000)
	defer load.end(t)
	err := before.View(ctx, func(tx *store.Tx) error { // a dump
		var n int64
		if err := tx.QueryRow(`SELECT COUNT(*) FROM big`).Scan(&n); err != nil {
			return err
		}
		go func() { migrated <- after.Migrate(ctx) }()
		select {
		case <-log.found:
		case <-load.failed:
		case err := <-migrated:
			t.Errorf("the migration ended with %v, want it to wait for the reader", err)
			migrated <- err
		}
		return nil
	})
	if err := errors.Join(err, <-migrated); err != nil {
		t.Error(err)
	}
}

// TestIndexOfACrash interrupts the build of an index on PostgreSQL.
func TestIndexOfACrash(t *testing.T) {
	t.Parallel()
	const stops = "the server stops the build"
	for name, crash := range map[string]func(t *testing.T, db *store.DB, node context.CancelFunc){
		stops: func(t *testing.T, db *store.DB, _ context.CancelFunc) {
			storetest.Update(t, db, func(tx *store.Tx) error {
				_, err := tx.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index WHERE relid = to_regclass('big')`)
				return err
			})
		},
		"the node ends, and the server goes on": func(_ *testing.T, _ *store.DB, node context.CancelFunc) { node() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.PostgreSQL(t)
			before := open(t, url, store.Options{Migrations: later(t, bigOwner...)})
			defer closeDB(t, before)
			if err := before.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			fill(t, before, 1000)
			next := store.Options{Migrations: later(t, bigIndex...)}
			// Strict isolation as the server's default must not keep snapshots that the build waits for.
			url += "&default_transaction_isolation=serializable"
			again := make(chan error, 1)
			const incomplete = `SELECT COALESCE(MAX(CAST(indexrelid AS BIGINT)), 0) FROM pg_index
				WHERE indexrelid = to_regclass('big_account') AND NOT indisvalid`
			var built int64
			storetest.Update(t, before, func(tx *store.Tx) error { // the build waits for this transaction
				if _, err := tx.Exec(`UPDATE big SET n = 1 WHERE id = 1`); err != nil {
					return err
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				node := open(t, url, next)
				ended := make(chan error, 1)
				go func() { ended <- node.Migrate(ctx) }()
				for built == 0 {
					built = count(t, before, incomplete)
				}
				crash(t, before, cancel)
				if err := <-ended; err == nil {
					t.Error("the interrupted build returned no error, want one")
				}
				closeDB(t, node)
				second := open(t, url, next)
				go func() { again <- errors.Join(second.Migrate(t.Context()), second.Close()) }()
				for name != stops && count(t, before, `SELECT COUNT(*) FROM pg_stat_activity
					WHERE datname = current_database() AND query LIKE 'SELECT EXISTS (SELECT FROM pg_stat_activity%'`) == 0 {
				}
				return nil
			})
			if err := <-again; err != nil {
				t.Fatal(err)
			}
			valid := count(t, before,
				`SELECT CAST(indexrelid AS BIGINT) FROM pg_index WHERE indexrelid = to_regclass('big_account') AND indisvalid`)
			if rebuilt := valid != built; rebuilt != (name == stops) {
				t.Errorf("the index was built again: %v, want %v", rebuilt, name == stops)
			}
		})
	}
}

// TestOlderBinaries opens a database with the binaries of former versions.
func TestOlderBinaries(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		with := func(migrations []string, use func(db *store.DB)) {
			db := open(t, url, store.Options{Migrations: later(t, migrations...)})
			use(db)
			closeDB(t, db)
		}
		migrate := func(db *store.DB) {
			if err := db.Migrate(ctx); err != nil {
				t.Error(err)
			}
		}
		try := func(db *store.DB) (errs []error) {
			schema, err := db.Schema(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return append(errs, schema.Check(), db.Migrate(ctx), db.CheckCompatible(ctx),
				db.Update(ctx, func(tx *store.Tx) error { return tx.CheckCompatible() }))
		}
		with(bigOwner, func(db *store.DB) {
			schema, err := db.Schema(ctx)
			if err != nil || !errors.Is(schema.Check(), store.ErrOlderSchema) || len(schema.Pending) != 2 {
				t.Errorf("before the migration: got %+v, %v; want ErrOlderSchema and two pending migrations", schema, err)
			}
		})
		with(bigOwner, migrate)
		for _, older := range [][]string{nil, bigTable, bigOwner} { // the newer schema is compatible with all
			with(older, func(db *store.DB) {
				if err := errors.Join(try(db)...); err != nil {
					t.Errorf("%d more migrations: got %v, want no error", len(older)/2, err)
				}
			})
		}
		with(bigIndex, migrate)
		for _, older := range [][]string{nil, bigTable} { // the schema needs 9002
			with(older, func(db *store.DB) {
				for i, err := range try(db) {
					if !errors.Is(err, store.ErrNewerSchema) || !strings.Contains(fmt.Sprint(err), "9002") {
						t.Errorf("%d more migrations, check %d: got %v, want ErrNewerSchema with 9002", len(older)/2, i, err)
					}
				}
			})
		}
		for _, compatible := range [][]string{bigOwner, bigIndex} {
			with(compatible, func(db *store.DB) {
				if err := errors.Join(try(db)...); err != nil {
					t.Errorf("%d more migrations: got %v, want no error", len(compatible)/2, err)
				}
			})
		}
	})
}

// TestPreRelease opens databases with migrations of builds before the first release.
func TestPreRelease(t *testing.T) {
	t.Parallel()
	first := fstest.MapFS{"0001_schema.sql": &fstest.MapFile{Data: []byte(
		`CREATE TABLE store_schema (id TEXT NOT NULL PRIMARY KEY, compatible_since BIGINT NOT NULL);
		CREATE TABLE store_backfill (name TEXT NOT NULL PRIMARY KEY, position TEXT NOT NULL, changed BIGINT NOT NULL, done BIGINT NOT NULL);
		INSERT INTO store_schema (id, compatible_since) VALUES ('current', 1)`)}}
	for _, number := range []int{2, 17, 43, 44} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			storetest.EachEmpty(t, func(t *testing.T, url string) {
				db := open(t, url, store.Options{Migrations: first})
				defer closeDB(t, db)
				if err := db.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				storetest.Update(t, db, func(tx *store.Tx) error {
					_, err := tx.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)`, number)
					return err
				})
				schema, err := db.Schema(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range []error{schema.Check(), db.Migrate(t.Context())} {
					if errors.Is(err, store.ErrPreRelease) != (number <= 43) || number > 43 && err != nil {
						t.Errorf("got %v, want ErrPreRelease: %v", err, number <= 43)
					}
				}
			})
		})
	}
}
