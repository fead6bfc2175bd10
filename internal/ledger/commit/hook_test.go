package commit

import (
	"testing"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/rows"
	"tollgate/internal/store"
)

// failedJob ends a job as failed.
type failedJob struct{}

func (failedJob) Read(*store.Batch)              {}
func (failedJob) Write(*store.Batch, int64)      {}
func (failedJob) Decide(int64) (books.End, bool) { return books.End{Outcome: books.Failed}, true }
func (failedJob) Orphaned() bool                 { return true }

// TestOneEndABatch checks that only one of several ends of a job in one batch takes effect, even if
// the hold is missing.
func TestOneEndABatch(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]bool{"with its hold": true, "without": false} {
		b := &batch{Books: new(rows.Cache).NewBooks()}
		b.Accounts["a"], b.Keys["k"] = &books.AccountRow{ID: "a", Balance: 10}, &books.KeyRow{ID: "k", Account: "a"}
		b.AddHeld("a", "k", 0, 5)
		if open {
			b.Holds["h"] = &books.HoldRow{ID: "h", Epoch: books.JobEpoch, Account: "a", Key: "k", Amount: 5, Job: "j"}
		}
		var ops []*Op
		for range 3 {
			ops = append(ops, &Op{kind: opJob, account: "a", key: "k", holdID: "h", endHook: failedJob{}})
		}
		b.decide(ops, "e")
		ran := 0
		for _, d := range b.decisions {
			if d.hookRan {
				ran++
			}
		}
		if ran != 1 || len(b.Hooks) != 1 {
			t.Errorf("%s: %d of 3 ends took effect, want 1", name, ran)
		}
	}
}
