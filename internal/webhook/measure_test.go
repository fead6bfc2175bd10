package webhook

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMeasure checks that a delivery is pending while attempts remain, and overdue from its due time
// until an attempt runs.
func TestMeasure(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("node_a")
		expect := func(when string, pending float64, overdue time.Duration) {
			t.Helper()
			if err := n.Measure(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := testutil.ToFloat64(n.metrics.pending); got != pending {
				t.Errorf("%s: %v pending deliveries, want %v", when, got, pending)
			}
			if got := testutil.ToFloat64(n.metrics.overdue); got != overdue.Seconds() {
				t.Errorf("%s: overdue for %v s, want %v", when, got, overdue)
			}
		}
		expect("without deliveries", 0, 0)
		env.callback(n, "acct_1", "http://127.0.0.1:1/gone")
		env.clock.Advance(20 * time.Second)
		env.callback(n, "acct_2", "http://127.0.0.1:1/gone")
		env.clock.Advance(10 * time.Second)
		expect("two deliveries wait", 2, 30*time.Second)
		n.settle()
		expect("both wait for a retry", 2, 0)
		env.exec(`DELETE FROM webhook_queue`)
		expect("with an empty queue", 0, 0)
	})
}
