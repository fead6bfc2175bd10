package webhook

import (
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestClockJump checks that the log stays while the clock is far ahead for a moment, and that a delivery
// postponed in that moment is retried soon after the clock is right again.
func TestClockJump(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := new(storetest.Clock)
		var elapsed time.Duration
		db := storetest.Open(t, url, store.Options{Now: c.Now, Elapsed: func() time.Duration { return elapsed }})
		env := &testEnv{t: t, db: db, clock: c}
		n, _ := env.deliver(nil)
		c.Advance(400 * 24 * time.Hour)
		env.callback(n, "acct_1", "http://127.0.0.1:9/") // no receiver listens, so the delivery is postponed
		n.settle()
		if err := n.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Advance(-400 * 24 * time.Hour)
		if err := n.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.settle()
		log := env.log("acct_1")
		if len(log) != 2 {
			t.Fatalf("the log has %d entries, want 2", len(log))
		}
		attempts := 0
		for _, d := range log {
			attempts += len(d.Attempts)
			if d.NextMS > c.Now().Add(time.Hour).UnixMilli() {
				t.Errorf("the next attempt is in %v, want less than an hour", time.Duration(d.NextMS-c.Now().UnixMilli())*time.Millisecond)
			}
		}
		if attempts != 3 {
			t.Errorf("%d attempts, want 3: one delivered and two failed", attempts)
		}
	})
}
