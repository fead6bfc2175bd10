package mail

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tollgate/internal/gatewaytest/fakemail"
)

// TestMetrics checks the numbers of attempts, of ended and of waiting mails.
func TestMetrics(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		env.server.Plan(fakemail.None, fakemail.Refuse, fakemail.Defer)
		env.write(m, letter("ann"), letter("bob"), letter("eve"))
		env.clock.Advance(30 * time.Second)
		send(t, m)
		if err := m.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			got  prometheus.Collector
			want float64
		}{
			"sent": {m.metrics.attempts.WithLabelValues("sent"), 1}, "refused": {m.metrics.attempts.WithLabelValues("refused"), 1},
			"failed": {m.metrics.attempts.WithLabelValues("failed"), 1}, "sent mails": {m.metrics.ended.WithLabelValues("sent"), 1},
			"given up": {m.metrics.ended.WithLabelValues("given_up"), 1}, "waiting": {m.metrics.waiting, 1}, "oldest": {m.metrics.oldest, 30},
		} {
			if got := testutil.ToFloat64(c.got); got != c.want {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
			}
		}
	})
}
