package ledger

import (
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestHeldIsReported(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var got [2]OpenHolds
		f := start(t, db, func(o *Options) {
			o.Observer.Held = func(requests, jobs OpenHolds) { got = [2]OpenHolds{requests, jobs} }
		})
		f.open("a", 10*money.USD, 0, KeyLimits{})
		expect := func(when string, want [2]OpenHolds) {
			t.Helper()
			if err := f.observeHeld(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		expect("nothing is held", [2]OpenHolds{})
		var holds []*Hold
		for range 3 {
			holds = append(holds, f.mustAdmit("a", money.USD))
		}
		job, _ := jobAdmission(2 * money.USD)
		if err := f.AdmitJob(t.Context(), job, &admitHook{}); err != nil {
			t.Fatal(err)
		}
		expect("three requests and a job", [2]OpenHolds{{Holds: 3, Amount: 3 * money.USD}, {Holds: 1, Amount: 2 * money.USD}})
		for _, h := range holds {
			h.Release(failed())
		}
		expect("only the job", [2]OpenHolds{1: {Holds: 1, Amount: 2 * money.USD}})
	})
}
