package ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"tollgate/internal/ledger/commit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestLowAnnouncedAfterCommit checks that LowAnnounced is called once the writes of AnnounceLow are
// committed, even if the answer to the commit was lost, and not for batches without a low balance.
func TestLowAnnouncedAfterCommit(t *testing.T) {
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
				var announcements atomic.Int64
				announced := make(chan money.Amount, 10) // the balances read by LowAnnounced
				f = start(t, db, s.install, func(o *Options) {
					o.AnnounceLow = func(*store.Batch, int64, Low) { announcements.Add(1) }
					o.LowAnnounced = func() { announced <- f.state("a").Balance }
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
				if n := announcements.Load(); n != 0 || len(announced) != 0 {
					t.Fatalf("got %d announcements, %d commits of them, before a drop; want none", n, len(announced))
				}
				s.set(breakFirst(1, commit.PhaseWrite, broken))
				if err := h.Settle(context.Background(), billed(money.USD)); err != nil {
					t.Fatal(err)
				}
				if balance := <-announced; balance != money.USD || announcements.Load() == 0 {
					t.Errorf("got %d announcements and a balance of %s after the commit, want at least one and 1", announcements.Load(), balance)
				}
				settle() // further down
				f.checkAudit()
				if len(announced) != 0 {
					t.Errorf("got %d further announcements, want none", len(announced))
				}
			})
		})
	}
}
