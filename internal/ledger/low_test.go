package ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestToldLowComesAfterTheCommit checks that LowAnnounced is called once the writes of AnnounceLow are
// committed, even if the answer to the commit was lost, and not for batches without a low balance.
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
				told := make(chan money.Amount, 10) // balances readable at that time
				f = start(t, db, s.install, func(l *Ledger) {
					l.opts.AnnounceLow = func(*store.Batch, int64, Low) { tells.Add(1) }
					l.opts.LowAnnounced = func() { told <- f.state("a").Balance }
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
