package store_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestBackfillResumes ends processes in the middle of a backfill. The rows are changed once.
func TestBackfillResumes(t *testing.T) {
	t.Parallel()
	const rows = 10
	storetest.EachURL(t, func(t *testing.T, url string) {
		opts := store.Options{Migrations: later(t, bigIndex...)}
		var crash context.CancelFunc
		var positions []string
		whole := owners(3)
		opts.Backfills = []store.Backfill{whole}
		opts.Backfills[0].Step = func(tx *store.Tx, position string, limit int) (string, int, error) {
			positions = append(positions, position)
			next, changed, err := whole.Step(tx, position, limit)
			if crash != nil {
				crash()
			}
			return next, changed, err
		}
		for life := range 5 {
			db := open(t, url, opts)
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if life == 0 {
				fill(t, db, rows)
			}
			crash = nil
			if more, err := db.StepBackfills(t.Context()); err != nil || more != (life < 4) {
				t.Errorf("life %d: more %v, %v; want %v", life, more, err, life < 4)
			}
			var ctx context.Context
			ctx, crash = context.WithCancel(t.Context())
			_, err := db.StepBackfills(ctx)
			crash()
			if failed := err != nil; failed != (life < 3) {
				t.Errorf("life %d: got %v, want an error: %v", life, err, life < 3)
			}
			closeDB(t, db)
		}
		if got, want := strings.Join(positions, ","), ",3,3,6,6,9,9"; got != want {
			t.Errorf("got positions %q, want %q", got, want)
		}
		db := open(t, url, opts)
		defer closeDB(t, db)
		if n := count(t, db, `SELECT COUNT(*) FROM big WHERE owner = 'o0'`); n != rows {
			t.Errorf("%d rows are filled, want %d", n, rows)
		}
		if n := count(t, db, `SELECT changed FROM store_backfill WHERE name = 'big_owner' AND done = 1`); n != rows {
			t.Errorf("%d rows are recorded, want %d", n, rows)
		}
	})
}

// TestBackfillOnTwoNodes lets two nodes run a backfill. While one runs a step, the other runs none.
func TestBackfillOnTwoNodes(t *testing.T) {
	t.Parallel()
	const rows = 30
	url := storetest.PostgreSQL(t)
	whole := owners(10)
	steps := 0
	var during func()
	opts := store.Options{Migrations: later(t, bigIndex...), Backfills: []store.Backfill{{Name: whole.Name, Rows: whole.Rows,
		Step: func(tx *store.Tx, position string, limit int) (string, int, error) {
			steps++
			if call := during; call != nil {
				during = nil
				call()
			}
			return whole.Step(tx, position, limit)
		}}}}
	first := open(t, url, opts)
	defer closeDB(t, first)
	if err := first.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, first, rows)
	second := open(t, url, opts)
	defer closeDB(t, second)
	for n := 1; n <= 4; n++ {
		during = func() {
			if more, err := second.StepBackfills(t.Context()); more || err != nil || steps != n {
				t.Errorf("the other node during step %d: more %v, %v after %d steps; want false and no further step", n, more, err, steps)
			}
		}
		if _, err := first.StepBackfills(t.Context()); err != nil || steps != n {
			t.Errorf("after step %d: got %d steps, %v", n, steps, err)
		}
		first, second = second, first
	}
	for _, db := range []*store.DB{first, second} {
		if more, err := db.StepBackfills(t.Context()); more || err != nil || steps != 4 {
			t.Errorf("after the end: more %v, %v after %d steps; want false after 4", more, err, steps)
		}
	}
	if n := count(t, first, `SELECT COUNT(*) FROM big WHERE owner = 'o0'`); n != rows {
		t.Errorf("%d rows are filled, want %d", n, rows)
	}
}

// TestBackfillWaitsForOlderBinaries checks that no step runs while a node may write in the old way.
func TestBackfillWaitsForOlderBinaries(t *testing.T) {
	t.Parallel()
	oldest := int64(9001)
	opts := store.Options{Migrations: later(t, bigIndex...), Backfills: []store.Backfill{owners(0)},
		OldestBinary: func(*store.Tx) (int64, error) { return oldest, nil }}
	db := open(t, storetest.PostgreSQL(t), opts)
	defer closeDB(t, db)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 600)
	for _, c := range []struct {
		oldest, unfilled int64
		more             bool
	}{{9001, 600, false}, {9002, 100, true}, {9001, 100, false}, {math.MaxInt64, 0, true}, {9001, 0, false}} {
		oldest = c.oldest
		more, err := db.StepBackfills(t.Context())
		unfilled := count(t, db, `SELECT COUNT(*) FROM big WHERE owner = ''`)
		if err != nil || more != c.more || unfilled != c.unfilled {
			t.Errorf("oldest binary %d: more %v, %v, %d unfilled rows; want %v and %d", c.oldest, more, err, unfilled, c.more, c.unfilled)
		}
	}
}

// TestMigrationNeedsABackfill migrates to versions with a migration that needs a backfill.
func TestMigrationNeedsABackfill(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := open(t, url, store.Options{Migrations: later(t, bigIndex...)})
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		fill(t, db, 1200)
		closeDB(t, db)

		without := open(t, url, store.Options{Migrations: later(t, bigNeeds...)})
		err := without.Migrate(t.Context())
		if err == nil || !strings.Contains(err.Error(), "9005_needs.sql needs the backfill big_owner") {
			t.Errorf("without the backfill: got %v, want an error that names big_owner", err)
		}
		closeDB(t, without)

		log := newLogWatcher("")
		with := open(t, url, store.Options{Migrations: later(t, bigNeeds...), Backfills: []store.Backfill{owners(0)}, Log: log.logger()})
		if err := with.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.text.String(), "a backfill is complete") {
			t.Errorf("got the log %s, want the end of the backfill", log.text.String())
		}
		if n := count(t, with, `SELECT COUNT(*) FROM big WHERE owner = ''`); n != 0 {
			t.Errorf("%d rows are unfilled, want none", n)
		}
		if n := count(t, with, `SELECT COUNT(*) FROM big_owned`); n != 0 {
			t.Errorf("the new table has %d rows, want none", n)
		}
		closeDB(t, with)

		// A later version may drop the backfill.
		last := open(t, url, store.Options{Migrations: later(t, append(bigNeeds[:10:10],
			"9006_more.sql", "-- needs backfill: big_owner\nCREATE TABLE big_more (id BIGINT NOT NULL PRIMARY KEY)")...)})
		if err := last.Migrate(t.Context()); err != nil {
			t.Error(err)
		}
		closeDB(t, last)
	})
}
