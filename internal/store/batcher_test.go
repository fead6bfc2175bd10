package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// newBatcher returns a batcher of functions.
func newBatcher(db *store.DB) *store.Batcher[func(tx *store.Tx) error] {
	return store.NewBatcher(db, func(tx *store.Tx, writes []func(tx *store.Tx) error) error {
		for _, do := range writes {
			if err := do(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting for %s", what)
		case <-tick.C:
		}
	}
}

// TestBatcher checks that concurrent writes are committed once each and a failed or panicking write
// does not affect the other writes.
func TestBatcher(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBatcher(db)
		storetest.Exec(t, db, `CREATE TABLE written (n BIGINT NOT NULL PRIMARY KEY)`)
		errScripted := errors.New("failed")
		const steps = 300
		errs := make([]error, steps)
		var wg sync.WaitGroup
		for n := range steps {
			wg.Go(func() {
				errs[n] = b.Write(t.Context(), func(tx *store.Tx) error {
					switch n % 50 {
					case 7:
						return errScripted
					case 8:
						panic("scripted")
					}
					_, err := tx.Exec(`INSERT INTO written (n) VALUES ($1)`, n)
					return err
				})
			})
		}
		wg.Wait()
		want := 0
		for n, err := range errs {
			var wantErr error
			switch n % 50 {
			case 7:
				wantErr = errScripted
			case 8:
				wantErr = store.ErrPanic
			default:
				want++
			}
			if !errors.Is(err, wantErr) {
				t.Errorf("write %d: %v, want %v", n, err, wantErr)
			}
		}
		var got int
		err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow(`SELECT COUNT(*) FROM written`).Scan(&got) })
		if err != nil || got != want {
			t.Errorf("%d rows were written, want %d: %v", got, want, err)
		}
	})
}

// TestBatcherCanceledWrites checks that later writes finish after pending writes, including the next
// leader's, were canceled.
func TestBatcherCanceledWrites(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBatcher(db)
		pending := func(want int, canceled bool) func() bool {
			return func() bool { return b.Pending(canceled) == want }
		}
		for round := range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			running, release := make(chan struct{}), make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = b.Write(t.Context(), func(*store.Tx) error {
					close(running)
					<-release
					return nil
				})
			})
			<-running
			for range 5 {
				wg.Go(func() { _ = b.Write(ctx, func(*store.Tx) error { return nil }) })
			}
			until(t, "five pending writes", pending(5, false))
			cancel()
			if round%2 == 0 {
				until(t, "five canceled writes", pending(5, true))
			}
			close(release)
			last, stop := context.WithTimeout(t.Context(), 20*time.Second)
			if err := b.Write(last, func(*store.Tx) error { return nil }); err != nil {
				t.Fatalf("round %d: the write after the canceled writes failed: %v", round, err)
			}
			stop()
			wg.Wait()
		}
	})
}
