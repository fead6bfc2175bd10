package store_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestVersion checks that the version changes with each writer, and only then.
func TestVersion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	run := func(keep bool, add ...func(b *store.Batch)) {
		t.Helper()
		session, err := db.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b := db.NewBatch()
		for _, a := range add {
			a(b)
		}
		if err := errors.Join(session.Run(ctx, b), session.Close(keep)); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(b *store.Batch) { b.Begin("500ms", "2s") }
	commit := func(b *store.Batch) { b.Commit() }
	const write = `INSERT INTO node (epoch, beat, dead, started_ms) VALUES ('`
	insert := func(name string) func(b *store.Batch) {
		return func(b *store.Batch) { b.Exec(nil, write+name+`', 0, 0, 0)`) }
	}
	other, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	for name, c := range map[string]struct {
		do   func()
		same bool
	}{
		"nobody": {func() {}, true},
		"a reader": {func() {
			if err := db.View(ctx, func(tx *store.Tx) error { return tx.QueryRow(`SELECT COUNT(*) FROM node`).Scan(new(int)) }); err != nil {
				t.Error(err)
			}
		}, true},
		"a batch":                      {func() { run(true, begin, insert("batch"), commit) }, false},
		"a batch that was rolled back": {func() { run(false, begin, insert("back")) }, false},
		"a transaction": {func() {
			if err := db.Update(ctx, func(tx *store.Tx) error { _, err := tx.Exec(write + `tx', 0, 0, 0)`); return err }); err != nil {
				t.Error(err)
			}
		}, false},
		"another connection": {func() {
			if _, err := other.ExecContext(ctx, write+`other', 0, 0, 0)`); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		var left, found store.Version
		run(true, begin, insert("first "+name), func(b *store.Batch) { b.Version(&left) }, commit)
		c.do()
		run(false, begin, func(b *store.Batch) { b.Version(&found) })
		if left.Same(found) != c.same {
			t.Errorf("after %s: got %+v, before %+v; want the same: %v", name, found, left, c.same)
		}
	}
	if (store.Version{}).Same(store.Version{}) {
		t.Error("Same of two zero versions is true, want false")
	}
}
