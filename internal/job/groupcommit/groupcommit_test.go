package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestStepsShareTransactions writes the steps of many workers at once: each is written once, in few
// transactions, and one that fails or panics keeps no other from being written.
func TestStepsShareTransactions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := New(db)
		must(t, db, `CREATE TABLE written (n BIGINT NOT NULL PRIMARY KEY)`)
		refused := errors.New("refused")
		write := func(ctx context.Context, n int) error {
			return w.Write(ctx, func(tx *store.Tx) error {
				switch n % 50 {
				case 7:
					return refused
				case 8:
					panic("scripted")
				}
				_, err := tx.Exec(`INSERT INTO written (n) VALUES ($1)`, n)
				return err
			})
		}
		const steps = 300
		errs := make([]error, steps)
		var all sync.WaitGroup
		for n := range steps {
			all.Go(func() { errs[n] = write(t.Context(), n) })
		}
		all.Wait()
		want := 0
		for n, err := range errs {
			switch n % 50 {
			case 7:
				if !errors.Is(err, refused) {
					t.Errorf("step %d: %v", n, err)
				}
			case 8:
				if !errors.Is(err, ErrPanicked) {
					t.Errorf("step %d: %v", n, err)
				}
			default:
				want++
				if err != nil {
					t.Errorf("step %d: %v", n, err)
				}
			}
		}
		if got := count(t, db, `SELECT COUNT(*) FROM written`); got != want {
			t.Errorf("%d steps are written, want %d", got, want)
		}
	})
}

// TestThoseWhoLeftKeepNobodyWaiting lets workers leave while they wait: the others' steps are
// written all the same.
func TestThoseWhoLeftKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := New(db)
		for round := range 40 {
			ctx, leave := context.WithCancel(t.Context())
			begun, goOn := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() {
				_ = w.Write(t.Context(), func(*store.Tx) error {
					close(begun)
					<-goOn
					return nil
				})
			})
			<-begun
			for range 5 { // they wait behind it, the first would lead next
				all.Go(func() { _ = w.Write(ctx, func(*store.Tx) error { return nil }) })
			}
			until(t, "five that wait", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return len(w.waiting) == 5
			})
			leave()
			if round%2 == 0 {
				until(t, "all have left", func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					for _, l := range w.waiting {
						if !l.left {
							return false
						}
					}
					return true
				})
			}
			close(goOn)
			last, stop := context.WithTimeout(t.Context(), 20*time.Second)
			if err := w.Write(last, func(*store.Tx) error { return nil }); err != nil {
				t.Fatalf("round %d: nobody writes any more: %v", round, err)
			}
			stop()
			all.Wait()
		}
	})
}

func must(t *testing.T, db *store.DB, query string, args ...any) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", query, err))
	}
}

func count(t *testing.T, db *store.DB, query string, args ...any) (n int) {
	t.Helper()
	err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow(query, args...).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// until waits until something is true.
func until(t *testing.T, what string, true func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !true() {
		select {
		case <-deadline:
			t.Fatalf("%s has not come true", what)
		case <-tick.C:
		}
	}
}
