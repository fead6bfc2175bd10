package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestOpenRefusesOtherURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "sqlite:", "mysql://x", "data/tollgate.db"} {
		if _, err := store.Open(context.Background(), url, store.Options{}); !errors.Is(err, store.ErrURL) {
			t.Errorf("Open(%q): %v; want ErrURL", url, err)
		}
	}
}

// TestServerThatIsNotUp checks that the error is one line, without repetition and without the
// password.
func TestServerThatIsNotUp(t *testing.T) {
	t.Parallel()
	_, err := store.Open(context.Background(), "postgres://u:sesame@127.0.0.1:1/x?connect_timeout=1", store.Options{})
	if err == nil || strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "\n") ||
		strings.Count(err.Error(), "connection refused") != 1 || !strings.Contains(err.Error(), "user u, database x: 127.0.0.1:1") {
		t.Errorf("Open: got %v, want one line with the user, the database and one refusal, and no password", err)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want it to wrap ECONNREFUSED", err)
	}
}

func TestSQLiteFileIsPrivate(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	storetest.Open(t, url, store.Options{})
	info, err := os.Stat(strings.TrimPrefix(url, "sqlite:"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestCloseLeavesOneFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := storetest.SQLite(t)
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	session, err := db.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	b.Begin("500ms", "2s")
	b.Exec(nil, `DELETE FROM node WHERE epoch = $1`, "none")
	b.Commit()
	if err := errors.Join(session.Run(ctx, b), session.Close(true), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.TrimPrefix(url, "sqlite:") + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the WAL file after Close: %v; want it gone", err)
	}
}

func TestNodesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.PostgreSQL(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			db, err := store.Open(context.Background(), url, store.Options{})
			if err == nil {
				err = errors.Join(db.Migrate(context.Background()), db.Migrate(context.Background()), db.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestUpdateCommitsOrRollsBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		boom := errors.New("boom")
		insert := func(epoch string, fail error) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				if _, err := tx.Exec(`INSERT INTO node (epoch, beat, dead, started_ms) VALUES ($1, 0, 0, 0)`, epoch); err != nil {
					return err
				}
				return fail
			})
		}
		if err := insert("a", nil); err != nil {
			t.Fatal(err)
		}
		if err := insert("b", boom); !errors.Is(err, boom) {
			t.Fatalf("got %v; want the function's own error", err)
		}
		nodes, err := node.List(ctx, db)
		if err != nil || len(nodes) != 1 || nodes[0].Epoch != "a" {
			t.Errorf("nodes %v, %v; want a alone", nodes, err)
		}
	})
}

func TestUpdateSurvivesAnEndedConnection(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
	runs := 0
	err := db.Update(context.Background(), func(tx *store.Tx) error {
		if runs++; runs > 1 {
			return nil
		}
		_, err := tx.Exec(`SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("got %v after %d runs, want no error after 2", err, runs)
	}
}

// TestReadsSurviveAnEndedConnection checks that a read is retried if its connection ends, before or
// after it has returned rows.
func TestReadsSurviveAnEndedConnection(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
	const end, all = `SELECT pg_terminate_backend(pg_backend_pid())`,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	for name, first := range map[string]func(tx *store.Tx) error{
		"a row":   func(tx *store.Tx) error { var is bool; return tx.QueryRow(end).Scan(&is) },
		"an exec": func(tx *store.Tx) error { _, err := tx.Exec(end); return err },
		"a row after another": func(tx *store.Tx) error {
			if _, err := store.Column[int](tx, `SELECT 1`); err != nil {
				return err
			}
			_, err := tx.Exec(end)
			return err
		},
	} {
		runs := 0
		err := db.View(t.Context(), func(tx *store.Tx) error {
			if runs++; runs > 1 {
				return nil
			}
			return first(tx)
		})
		if err != nil || runs != 2 {
			t.Errorf("%s: got %v after %d runs, want no error after 2", name, err, runs)
		}
	}
	for i := range 10 { // connections waiting in the pool
		if err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(all); return err }); err != nil {
			t.Fatal(err)
		}
		var one int
		if err := db.QueryRow(t.Context(), `SELECT 1`).Scan(&one); err != nil {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

func TestWritersDoNotLoseUpdates(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		if err := node.Register(ctx, db, "n"); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 10 {
					err := db.Update(ctx, func(tx *store.Tx) error {
						if err := tx.Lock("node", "epoch", "n"); err != nil {
							return err
						}
						var beat int64
						if err := tx.QueryRow(`SELECT beat FROM node WHERE epoch = $1`, "n").Scan(&beat); err != nil {
							return err
						}
						_, err := tx.Exec(`UPDATE node SET beat = $1 WHERE epoch = $2`, beat+1, "n")
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		nodes, err := node.List(ctx, db)
		if err != nil || nodes[0].Beat != 80 {
			t.Errorf("%v, %v; want a beat of 80", nodes, err)
		}
	})
}

func TestInTakesLists(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		for _, epoch := range []string{"a", `b"'`, "c"} {
			if err := node.Register(ctx, db, epoch); err != nil {
				t.Fatal(err)
			}
		}
		for want, ids := range map[int64][]string{2: {"a", `b"'`, "x"}, 0: nil} {
			var n int64
			err := db.View(ctx, func(tx *store.Tx) error {
				return tx.QueryRow(`SELECT COUNT(*) FROM node WHERE `+tx.In("epoch", 1), store.List(ids)).Scan(&n)
			})
			if err != nil || n != want {
				t.Errorf("%d rows in %v, %v; want %d", n, ids, err, want)
			}
			err = db.View(ctx, func(tx *store.Tx) error {
				return tx.QueryRow(`SELECT COUNT(*) FROM node WHERE NOT `+tx.In("epoch", 1), store.List(ids)).Scan(&n)
			})
			if err != nil || n != 3-want {
				t.Errorf("%d rows not in %v, %v; want %d", n, ids, err, 3-want)
			}
		}
	})
}

func TestBatches(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		if err := node.Register(ctx, db, "n"); err != nil {
			t.Fatal(err)
		}
		run := func(keep bool, fill func(b *store.Batch)) error {
			session, err := db.Session(ctx)
			if err != nil {
				t.Fatal(err)
			}
			b := db.NewBatch()
			fill(b)
			err = session.Run(ctx, b)
			if cerr := session.Close(keep && err == nil); cerr != nil {
				t.Fatal(cerr)
			}
			return err
		}
		var moved, batch, now int64
		var state node.EpochState
		if err := run(true, func(b *store.Batch) {
			b.Begin("500ms", "2s")
			node.Advance(b, &moved, "n", node.BatchID{Number: 1}, node.BatchID{})
			b.QueryLocked(func(row store.Row) error { return row.Scan(&batch) }, `SELECT batch FROM node_batch WHERE epoch = $1`, "n")
			b.Now(&now)
			node.ConfirmState(b, &state, "n", 0)
		}); err != nil {
			t.Fatal(err)
		}
		if want := (node.EpochState{Found: true, Batch: 1}); moved != 1 || batch != 1 || state != want {
			t.Errorf("moved %d, batch %d, %+v; want 1, 1, %+v", moved, batch, state, want)
		}
		if d := time.Since(time.UnixMilli(now)); d < -time.Minute || d > time.Minute {
			t.Errorf("the database's clock is %v away, want at most a minute", d)
		}
		if err := run(false, func(b *store.Batch) { // never committed, so rolled back when the connection returns to the pool
			b.Begin("500ms", "2s")
			node.Advance(b, &moved, "n", node.BatchID{Number: 2}, node.BatchID{Number: 1})
		}); err != nil || moved != 1 {
			t.Fatalf("moved %d, %v; want 1", moved, err)
		}
		if err := run(true, func(b *store.Batch) {
			b.Begin("500ms", "2s")
			b.Exec(nil, `INSERT INTO node (epoch, beat, dead, started_ms) VALUES ($1, 0, 0, 0)`, "n")
			b.Commit()
		}); err == nil {
			t.Fatal("a second row of the same epoch was inserted, want an error")
		}
		ask := func(b *store.Batch) {
			b.Begin("500ms", "2s")
			node.ConfirmState(b, &state, "n", 0)
		}
		if err := run(true, ask); err != nil || state.Batch != 1 || state.Dead {
			t.Errorf("%+v, %v; want batch 1: what was not committed must be gone", state, err)
		}
		// A batch is a heartbeat, so that a busy node is not declared dead by a fence waiting
		// behind its batch.
		if dead, err := node.Fence(ctx, db, "n", 0); err != nil || dead {
			t.Fatalf("fenced %v, %v although its batches go on; want false", dead, err)
		}
		if dead, err := node.Fence(ctx, db, "n", 1); err != nil || !dead {
			t.Fatal(dead, err)
		}
		if err := run(true, ask); err != nil || state.Batch != 1 || !state.Dead {
			t.Errorf("%+v, %v; want batch 1 of a dead node", state, err)
		}
		state = node.EpochState{}
		if err := errors.Join(node.Remove(ctx, db, "n"), run(true, ask)); err != nil || state.Found {
			t.Errorf("%+v, %v; want no row", state, err)
		}
	})
}

func TestProcessClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	var last int64
	for range 1000 {
		err := db.View(context.Background(), func(tx *store.Tx) error {
			now, err := tx.NowMS()
			if err == nil && now < last {
				err = fmt.Errorf("%d after %d", now, last)
			}
			last = now
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEndBeforeTheCommit checks that if the deadline of a transaction passes before COMMIT is sent,
// nothing was written and the outcome is not reported as uncertain.
func TestEndBeforeTheCommit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(`CREATE TABLE ended (n INTEGER)`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for name, run := range map[string]func(context.Context, func(*store.Tx) error) error{"update": db.Update, "view": db.View} {
			ctx, cancel := context.WithCancel(t.Context())
			err := run(ctx, func(tx *store.Tx) error {
				defer cancel()
				if name == "view" {
					return nil
				}
				_, err := tx.Exec(`INSERT INTO ended (n) VALUES (1)`)
				return err
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUncertain) {
				t.Errorf("%s: got %v, want context.Canceled and not ErrUncertain", name, err)
			}
		}
		var rows int
		if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM ended`).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("got %d rows, %v; want none", rows, err)
		}
	})
}
