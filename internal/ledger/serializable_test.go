package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// conflictCounter counts the log's lines about batches that are retried.
type conflictCounter struct {
	slog.Handler
	n *atomic.Int64
}

// Enabled implements slog.Handler.
func (c conflictCounter) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (c conflictCounter) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "is retried") {
		c.n.Add(1)
	}
	return nil
}

// TestTwoNodesAtSerializable lets two nodes move the money of the same accounts at the isolation level
// serializable, where the server lets one of two conflicting transactions fail: admissions,
// settlements, releases, credits with references, heartbeats and the steps of Run. Every operation
// succeeds, and the books are exact.
func TestTwoNodesAtSerializable(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dbs := storetest.TwoNodes(t, storetest.WithIsolation(t, url, "serializable"))
		var conflicts atomic.Int64
		var nodes []*fixture
		for i, db := range dbs {
			if i == 1 && db.OneProcess() {
				nodes = append(nodes, nodes[0])
				continue
			}
			nodes = append(nodes, start(t, db, func(o *Options) { o.Log = slog.New(conflictCounter{slog.DiscardHandler, &conflicts}) }))
		}
		const callers, rounds = 16, 12
		accounts := []string{"hot", "warm", "cool"}
		for _, account := range accounts {
			nodes[0].open(account, 1000*money.USD, 0, KeyLimits{})
		}
		ctx := t.Context()
		var spent, given [3]atomic.Int64
		var group sync.WaitGroup
		for caller := range callers {
			f := nodes[caller%2]
			group.Go(func() {
				for round := range rounds {
					account := min(caller*round%5, 2) // most callers use the last account
					h, err := f.Admit(ctx, admission(accounts[account], money.USD))
					if err != nil {
						t.Errorf("admit: %v", err)
						return
					}
					if round%4 == 3 {
						h.Release(failed())
					} else if err := h.Settle(ctx, billed(money.USD/4)); err != nil {
						t.Errorf("settle: %v", err)
					} else {
						spent[account].Add(int64(money.USD / 4))
					}
					if round%3 != 0 {
						continue
					}
					// Two callers on different nodes send each payment.
					err = f.db.Update(ctx, func(tx *store.Tx) error {
						m, err := MoveTx(tx, accounts[2], Payment{Amount: money.USD, Reference: fmt.Sprintf("pi_%d_%d", caller/2, round)})
						if err == nil && m.Balance == 0 {
							err = errors.New("a credit without a balance")
						}
						return err
					})
					if err != nil {
						t.Errorf("credit: %v", err)
					}
					if caller%2 == 0 {
						given[2].Add(int64(money.USD))
					}
				}
			})
		}
		for _, f := range slices.Compact(slices.Clone(nodes)) { // Run of a node makes one step after the other
			group.Go(func() {
				for range rounds {
					for _, step := range []func(context.Context) error{f.Sweep, f.Fold, f.node.Beat} {
						if err := step(ctx); err != nil {
							t.Errorf("a step of Run: %v", err)
						}
					}
				}
			})
		}
		group.Wait()
		nodes[0].checkAudit()
		for i, account := range accounts {
			want := 1000*money.USD - money.Amount(spent[i].Load()) + money.Amount(given[i].Load())
			if st := nodes[0].state(account); st.Balance != want || st.Held != 0 {
				t.Errorf("%s: balance %s, held %s; want %s and 0", account, st.Balance, st.Held, want)
			}
		}
		if !dbs[0].OneProcess() && conflicts.Load() == 0 {
			t.Error("got no conflicts of batches, want some")
		}
		t.Logf("%d conflicts of batches", conflicts.Load())
	})
}
