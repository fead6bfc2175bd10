package line

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/money"
	"tollgate/internal/upstream"
)

// The values of the label outcome, besides the gateway's error codes.
const (
	outcomeOK       = "ok"
	outcomeRejected = "rejected" // passed on to the client with the provider's code
)

// metrics holds the tollgate_line_* metrics. The number of series is bounded, because labels are ids
// in the catalog or constants of the gateway.
type metrics struct {
	attempts  *prometheus.CounterVec
	breaks    *prometheus.CounterVec
	inFlight  *prometheus.GaugeVec
	firstByte *prometheus.HistogramVec
	busySkips *prometheus.CounterVec
	probes    *prometheus.CounterVec
	wentOut   *prometheus.CounterVec
	inService *prometheus.GaugeVec
	charged   *prometheus.CounterVec
	overHold  *prometheus.CounterVec
	cost      *prometheus.CounterVec

	implausibleCosts *prometheus.CounterVec
	ignoredFields    *prometheus.CounterVec
	gatewayCounts    *prometheus.CounterVec

	vectors []interface {
		DeletePartialMatch(prometheus.Labels) int
	}
}

// newMetrics creates the metrics and registers them. registry may be nil.
func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{}
	with := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := with.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"line"}, labels...))
		m.vectors = append(m.vectors, c)
		return c
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := with.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"line"})
		m.vectors = append(m.vectors, g)
		return g
	}
	m.attempts = counter("tollgate_line_attempts_total",
		"Attempts on a line by outcome: ok, rejected (the request itself), or the code of the failure.", "outcome")
	m.breaks = counter("tollgate_line_broken_total",
		"Answers that had begun on a line and broke off, by the code of the failure.", "outcome")
	m.inFlight = gauge("tollgate_line_in_flight", "Calls on a line whose answer is not closed yet.")
	m.firstByte = with.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tollgate_line_first_byte_seconds",
		Help:    "Time until an answer on a line had begun.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 16), // 10 ms to 5 min
	}, []string{"line"})
	m.vectors = append(m.vectors, m.firstByte)
	m.busySkips = counter("tollgate_line_busy_total", "Requests that passed a line over because all of its slots were taken.")
	m.probes = counter("tollgate_line_probes_total",
		"Probes of lines that were out of service, by outcome: ok or the code of the failure.", "outcome")
	m.ignoredFields = counter("tollgate_line_ignored_fields_total",
		"Fields of requests that a line did not get, since no reference documents them.")
	m.gatewayCounts = counter("tollgate_line_gateway_counts_total",
		"Answers of a line whose usage the gateway had to count, because the provider reported none that can be true.")
	m.wentOut = counter("tollgate_line_left_total",
		"How often a line, one of its models (model_out) or a model in one form (form_out) left service, by state.", "state")
	m.inService = gauge("tollgate_line_in_service",
		"1: requests may go to the line; 0: its circuit is open or its credentials are out. Drained and short pauses do not count.")
	m.charged = counter("tollgate_line_charged_usd_total", "US dollars charged for requests and jobs that a line answered.", "model")
	m.overHold = counter("tollgate_line_over_hold_usd_total", "US dollars of usage above the hold, which were not charged.", "model")
	m.cost = counter("tollgate_line_cost_usd_total",
		"Cost of a line in US dollars, as reported by the provider or computed from the cost in the catalog. Includes failed attempts.", "model")
	m.implausibleCosts = counter("tollgate_line_implausible_cost_total",
		"Costs that a line's provider reported and that cannot be true, so that they are recorded as unknown.")
	return m
}

// forLine returns the metrics of one line. It creates the usual series at zero, because a rate
// needs a counter before its first increment.
func (m *metrics) forLine(ln *catalog.Line) lineMetrics {
	line := ln.ID
	m.createModels(ln)
	m.inService.WithLabelValues(line).Set(1)
	m.busySkips.WithLabelValues(line)
	m.implausibleCosts.WithLabelValues(line)
	m.ignoredFields.WithLabelValues(line)
	m.gatewayCounts.WithLabelValues(line)
	for _, outcome := range []fault.Code{fault.UpstreamError, fault.UpstreamUnavailable} {
		m.attempts.WithLabelValues(line, string(outcome))
		m.breaks.WithLabelValues(line, string(outcome))
	}
	m.attempts.WithLabelValues(line, outcomeRejected)
	m.probes.WithLabelValues(line, outcomeOK)
	for _, state := range []string{health.StateCircuitOpen, health.StateCredentialsOut} {
		m.wentOut.WithLabelValues(line, state)
	}
	return lineMetrics{
		line:       line,
		metrics:    m,
		inFlight:   m.inFlight.WithLabelValues(line),
		okAttempts: m.attempts.WithLabelValues(line, outcomeOK),
		firstByte:  m.firstByte.WithLabelValues(line),
	}
}

// createModels creates the per-model series of a line at zero.
func (m *metrics) createModels(ln *catalog.Line) {
	for model := range ln.Models {
		m.charged.WithLabelValues(ln.ID, model)
		m.overHold.WithLabelValues(ln.ID, model)
		if ln.KnowsCost(model) { // for an unknown cost, zero would look like free of charge
			m.cost.WithLabelValues(ln.ID, model)
		}
	}
}

// updateModels creates the series of a line's new models and deletes the series of its removed
// models.
func (m *metrics) updateModels(old, ln *catalog.Line) {
	for model := range old.Models {
		if _, has := ln.Models[model]; !has {
			m.charged.DeleteLabelValues(ln.ID, model)
			m.overHold.DeleteLabelValues(ln.ID, model)
			m.cost.DeleteLabelValues(ln.ID, model)
		}
	}
	m.createModels(ln)
}

// forget deletes the metrics of a removed line. The line's running requests are no longer counted.
func (m *metrics) forget(line string) {
	for _, vector := range m.vectors {
		vector.DeletePartialMatch(prometheus.Labels{"line": line})
	}
}

// countProbe counts a probe.
func (m *metrics) countProbe(line string, f *upstream.Failure) {
	outcome := outcomeOK
	if f != nil {
		outcome = outcomeOf(f)
	}
	m.probes.WithLabelValues(line, outcome).Inc()
}

// countChange counts a change of a line or of a part.
func (m *metrics) countChange(line string, c health.Change) {
	if c.State != health.StateInService {
		m.wentOut.WithLabelValues(line, c.State).Inc()
	}
	if c.Model == "" {
		m.setInService(line, c.State == health.StateInService)
	}
}

// setInService sets whether a line is in service.
func (m *metrics) setInService(line string, inService bool) {
	value := 0.0
	if inService {
		value = 1
	}
	m.inService.WithLabelValues(line).Set(value)
}

// lineMetrics are the metrics of one line, looked up in advance.
type lineMetrics struct {
	line       string
	metrics    *metrics
	inFlight   prometheus.Gauge
	okAttempts prometheus.Counter
	firstByte  prometheus.Observer
}

// countAnswer counts the beginning of an answer.
func (m lineMetrics) countAnswer(firstByte time.Duration) {
	m.okAttempts.Inc()
	m.firstByte.Observe(firstByte.Seconds())
}

// addMargin adds the margin of a settlement to its model's counters.
func (m lineMetrics) addMargin(margin Margin) {
	add := func(counter *prometheus.CounterVec, a money.Amount) {
		if a > 0 {
			counter.WithLabelValues(m.line, margin.Model).Add(float64(a) / float64(money.USD))
		}
	}
	add(m.metrics.charged, margin.Charged)
	add(m.metrics.overHold, margin.Over)
	if margin.LineCost != nil {
		add(m.metrics.cost, *margin.LineCost)
	}
}

// countFailure counts a failed attempt.
func (m lineMetrics) countFailure(f *upstream.Failure) {
	m.metrics.attempts.WithLabelValues(m.line, outcomeOf(f)).Inc()
}

// countBreak counts a broken answer.
func (m lineMetrics) countBreak(f *upstream.Failure) {
	m.metrics.breaks.WithLabelValues(m.line, outcomeOf(f)).Inc()
}

// outcomeOf returns the outcome label of a failure, from a bounded set.
func outcomeOf(f *upstream.Failure) string {
	if f.Rejection != nil {
		return outcomeRejected
	}
	if _, ok := fault.Lookup(f.Code); ok || f.Code == fault.ClientClosed {
		return string(f.Code)
	}
	return outcomeRejected
}
