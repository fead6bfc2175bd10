package node

import (
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// advance runs the fence of batch n in a transaction and returns the number of new rows. The returned
// function commits the transaction.
func advance(t *testing.T, db *store.DB, n int64) (moved int64, commit func()) {
	t.Helper()
	session, err := db.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	b.Begin("5s", "5s")
	Advance(b, &moved, "e", BatchID{Number: n}, BatchID{Number: n - 1})
	if err := session.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return moved, func() {
		b := db.NewBatch()
		b.Commit()
		if err := session.Run(t.Context(), b); err != nil {
			t.Error(err)
		}
		if err := session.Close(true); err != nil {
			t.Error(err)
		}
	}
}

// TestAdvance checks that Advance inserts the row of each batch in order, once, and only while the
// epoch lives, and that old rows are deleted.
func TestAdvance(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if err := Register(t.Context(), db, "e"); err != nil {
			t.Fatal(err)
		}
		tryAdvance := func(n, want int64) {
			t.Helper()
			moved, commit := advance(t, db, n)
			commit()
			if moved != want {
				t.Errorf("batch %d inserted %d rows, want %d", n, moved, want)
			}
		}
		tryAdvance(2, 0) // before the first
		tryAdvance(1, 1)
		tryAdvance(1, 0) // again
		tryAdvance(3, 0) // without the second
		for n := int64(2); n <= forgetEvery; n++ {
			tryAdvance(n, 1)
		}
		var rows int64
		storetest.View(t, db, func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM node_batch`).Scan(&rows)
		})
		if rows != 2 {
			t.Errorf("%d rows after %d batches; want 2", rows, forgetEvery)
		}
		if dead, err := Fence(t.Context(), db, "e", forgetEvery); !dead || err != nil {
			t.Fatal(dead, err)
		}
		tryAdvance(forgetEvery+1, 0) // dead
		if err := Remove(t.Context(), db, "e"); err != nil {
			t.Fatal(err)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM node_batch`).Scan(&rows)
		})
		if rows != 0 {
			t.Errorf("got %d rows of a removed epoch, want none", rows)
		}
	})
}

// TestFenceWaitsForABatch declares an epoch dead while its batch runs. The batch is a heartbeat, so
// the epoch lives on.
func TestFenceWaitsForABatch(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
	if err := Register(t.Context(), db, "e"); err != nil {
		t.Fatal(err)
	}
	moved, commit := advance(t, db, 1)
	dead := make(chan bool, 1)
	go func() {
		d, err := Fence(t.Context(), db, "e", 0)
		if err != nil {
			t.Error(err)
		}
		dead <- d
	}()
	for waiting := int64(0); waiting == 0; {
		storetest.View(t, db, func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		})
		select {
		case d := <-dead:
			t.Fatalf("declared dead %v without waiting for the batch", d)
		default:
		}
	}
	commit()
	if moved != 1 || <-dead {
		t.Errorf("declared dead, or inserted %d rows; want alive and 1 after the commit of the batch", moved)
	}
}
