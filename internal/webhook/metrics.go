package webhook

import "github.com/prometheus/client_golang/prometheus"

// metrics are the tollgate_webhook_* metrics. No label names an account or an
// address, so their number is bounded.
type metrics struct {
	attempts   *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	inFlight   prometheus.Gauge
	pending    prometheus.Gauge
	overdue    prometheus.Gauge
}

// newMetrics makes the metrics and registers them; registry may be nil.
func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_webhook_attempts_total",
			Help: "Attempts to deliver an event by outcome: delivered, status (an answer that is no 2xx), unanswered, or disabled (not sent).",
		}, []string{"outcome"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_webhook_deliveries_total",
			Help: "Deliveries that have ended, by state: delivered or failed.",
		}, []string{"state"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_in_flight",
			Help: "Attempts of this node that run or are not recorded yet.",
		}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_pending",
			Help: "Deliveries that have attempts to come, on all nodes; up to 10,000 are counted, every 10 seconds.",
		}),
		overdue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_overdue_seconds",
			Help: "How long the attempt has been due that waits longest for a place; 0: none is due.",
		}),
	}
	for _, outcome := range []string{"delivered", "status", "unanswered", "disabled"} { // a rate needs a zero to begin with
		m.attempts.WithLabelValues(outcome)
	}
	m.final(stateDelivered, 0)
	m.final(stateFailed, 0)
	if registry != nil {
		registry.MustRegister(m.attempts, m.deliveries, m.inFlight, m.pending, m.overdue)
	}
	return m
}

// ended counts an attempt.
func (m metrics) ended(o outcome) {
	label := ""
	switch {
	case o.kind == delivered:
		label = "delivered"
	case o.kind == disabled:
		label = "disabled"
	case o.kind == failed && o.status != 0:
		label = "status"
	case o.kind == failed:
		label = "unanswered"
	default:
		return // it did not count for the delivery either
	}
	m.attempts.WithLabelValues(label).Inc()
}

// final counts n deliveries that reached a final state.
func (m metrics) final(state, n int) {
	m.deliveries.WithLabelValues(stateName(state)).Add(float64(n))
}
