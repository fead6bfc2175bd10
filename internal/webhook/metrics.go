package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the tollgate_webhook_* metrics. No label has an account or an address, so the number of
// series is bounded.
type metrics struct {
	attempts   *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	inFlight   prometheus.Gauge
	pending    prometheus.Gauge
	overdue    prometheus.Gauge
}

// newMetrics creates the metrics and registers them. registry may be nil.
func newMetrics(registry prometheus.Registerer) metrics {
	with := promauto.With(registry)
	m := metrics{
		attempts: with.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_webhook_attempts_total",
			Help: "Attempts to deliver an event by outcome: delivered, status (answered without a 2xx), unanswered, or disabled (not sent).",
		}, []string{"outcome"}),
		deliveries: with.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_webhook_deliveries_total",
			Help: "Deliveries that have ended, by state: delivered or failed.",
		}, []string{"state"}),
		inFlight: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_in_flight",
			Help: "Attempts of this node that run or whose results are not recorded yet.",
		}),
		pending: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_pending",
			Help: "Deliveries that are not finished, on all nodes, counted up to 10,000, every 10 seconds.",
		}),
		overdue: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_overdue_seconds",
			Help: "The wait of the attempt that has been due for the longest time; 0 if no attempt is due.",
		}),
	}
	for _, outcome := range []string{"delivered", "status", "unanswered", "disabled"} { // a rate needs an initial zero
		m.attempts.WithLabelValues(outcome)
	}
	m.countFinal(stateDelivered, 0)
	m.countFinal(stateFailed, 0)
	return m
}

// countAttempt counts an attempt by its outcome.
func (m metrics) countAttempt(o outcome) {
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
		return // the attempt does not count for the delivery
	}
	m.attempts.WithLabelValues(label).Inc()
}

// countFinal counts n deliveries that reached a final state.
func (m metrics) countFinal(state, n int) {
	m.deliveries.WithLabelValues(stateName(state)).Add(float64(n))
}
