package ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestLowIsToldOnceADrop takes a balance up and down: a level is told when a
// charge or take-back brings the balance below it, once, until a credit has
// brought it above.
func TestLowIsToldOnceADrop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		level := money.Amount(rapid.Int64Range(-5, 5).Draw(t, "level"))
		balance := money.Amount(rapid.Int64Range(-10, 10).Draw(t, "balance"))
		row := lowRow{set: true, level: level, armed: balance >= level}
		heard := balance < level
		for range rapid.IntRange(1, 30).Draw(t, "moves") {
			before := balance
			balance += money.Amount(rapid.Int64Range(-4, 4).Draw(t, "move"))
			told := row.drops(before, balance)
			armed := row.rises(before, balance)
			if told && armed {
				t.Fatal("a move is both a drop and a rise")
			}
			want := balance < before && balance < level && !heard
			if told != want {
				t.Fatalf("from %d to %d at level %d: told %t, want %t", before, balance, level, told, want)
			}
			if told {
				heard = true
			}
			if balance > before && balance > level {
				heard = false
			}
		}
	})
}

// TestToldLowComesAfterTheCommit checks when the ledger says that a low balance
// was told: once what TellLow wrote is committed, also when the answer to that
// commit was lost, and not for batches in which nothing was low.
func TestToldLowComesAfterTheCommit(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(run func() error) error{
		"committed":              func(run func() error) error { return run() },
		"committed, answer lost": func(run func() error) error { return errors.Join(run(), errLost) },
		"never arrived":          func(func() error) error { return errLost },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				var s script
				var f *fixture
				var tells atomic.Int64
				told := make(chan money.Amount, 10) // balances that could be read then
				f = start(t, db, s.install, func(l *Ledger) {
					l.opts.TellLow = func(*store.Batch, int64, Low) { tells.Add(1) }
					l.opts.ToldLow = func() { told <- f.state("a").Balance }
				})
				f.open("a", 3*money.USD, 0, KeyLimits{})
				level := 2 * money.USD
				if err := db.Update(t.Context(), func(tx *store.Tx) error { return SetLowTx(tx, "a", &level) }); err != nil {
					t.Fatal(err)
				}
				settle := func() {
					t.Helper()
					if err := f.mustAdmit("a", money.USD).Settle(context.Background(), billed(money.USD)); err != nil {
						t.Fatal(err)
					}
				}
				settle() // to the level
				h := f.mustAdmit("a", money.USD)
				if n := tells.Load(); n != 0 || len(told) != 0 {
					t.Fatalf("%d tellings, %d after a commit, before there was a drop", n, len(told))
				}
				s.set(times(1, phaseWrite, broken))
				if err := h.Settle(context.Background(), billed(money.USD)); err != nil {
					t.Fatal(err)
				}
				if balance := <-told; balance != money.USD || tells.Load() == 0 {
					t.Errorf("told after %d tellings, when the balance was %s", tells.Load(), balance)
				}
				settle() // further down
				f.audited()
				if len(told) != 0 {
					t.Error("told again")
				}
			})
		})
	}
}
