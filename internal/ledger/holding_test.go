package ledger

import (
	"testing"

	"tollgate/internal/ledger/holding"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestHoldsAreAddedUp: those of requests and those of jobs.
func TestHoldsAreAddedUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var told [2]holding.Holding
		w := holding.Watch{DB: db, Tell: func(requests, jobs holding.Holding) { told = [2]holding.Holding{requests, jobs} }}
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		expect := func(when string, want [2]holding.Holding) {
			t.Helper()
			if err := w.Add(t.Context()); err != nil {
				t.Fatal(err)
			}
			if told != want {
				t.Errorf("%s: %v, want %v", when, told, want)
			}
		}
		expect("nothing is held", [2]holding.Holding{})
		var holds []*Hold
		for range 3 {
			holds = append(holds, f.mustAdmit("a", money.USD))
		}
		job, _ := jobAdmission(2 * money.USD)
		if err := f.AdmitJob(t.Context(), job, &passenger{}); err != nil {
			t.Fatal(err)
		}
		expect("three requests and a job", [2]holding.Holding{{Holds: 3, Amount: 3 * money.USD}, {Holds: 1, Amount: 2 * money.USD}})
		for _, h := range holds {
			h.Release(failed())
		}
		expect("the job alone", [2]holding.Holding{1: {Holds: 1, Amount: 2 * money.USD}})
	})
}
