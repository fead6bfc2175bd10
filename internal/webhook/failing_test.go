package webhook

import (
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestUnreportedFailures checks that a failure is unreported once it is old enough, until it is reported,
// and again only after a success of the receiver.
func TestUnreportedFailures(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(status(500))
		unreported := func() (list []Failing) {
			storetest.View(t, env.db, func(tx *store.Tx) (err error) {
				list, err = UnreportedTx(tx, env.clock.Now().Add(-time.Minute).UnixMilli(), 10)
				return err
			})
			return list
		}
		if got := unreported(); len(got) != 0 {
			t.Errorf("right after the failure: got %+v, want none", got)
		}
		env.clock.Advance(2 * time.Minute)
		got := unreported()
		if len(got) != 1 || got[0].Account != "acct_1" || got[0].URL != r.URL {
			t.Fatalf("after two minutes: got %+v, want the receiver of acct_1", got)
		}
		env.update(func(tx *store.Tx) error { return ReportTx(tx, got) })
		n.settle() // fails again
		if got := unreported(); len(got) != 0 {
			t.Errorf("a reported failure: got %+v, want none", got)
		}
		r.respond(nil)
		env.clock.Advance(time.Hour)
		n.settle()
		env.checkDelivery("acct_1", "delivered", 3)
		r.respond(status(500))
		env.callback(n, "acct_1", r.URL)
		n.settle()
		env.clock.Advance(2 * time.Minute)
		if got := unreported(); len(got) != 1 {
			t.Errorf("a failure after a success: got %+v, want the receiver", got)
		}
	})
}
