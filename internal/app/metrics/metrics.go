// Package metrics owns the process's figures in the Prometheus format, including the figures of
// packages that only report them through functions. Lines, jobs and webhooks register their own
// metrics.
//
// Invariants: labels have few values chosen by us, never a caller's word, an account or a key.
// Usual series exist with zero from the start. Counting a request never waits.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Metrics are the figures of a process. They are safe for concurrent use.
type Metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.CounterVec
	durations    *prometheus.HistogramVec
	admitted     prometheus.Histogram
	batches      prometheus.Histogram
	commits      prometheus.Histogram
	held         *prometheus.GaugeVec
	holds        *prometheus.GaugeVec
	excess       prometheus.Counter
	swept        *prometheus.CounterVec
	unswept      prometheus.Gauge
	damaged      prometheus.Counter
	jumps        *prometheus.CounterVec
	delayed      *prometheus.CounterVec
	leftOut      *prometheus.CounterVec
	unknownUsage *prometheus.CounterVec
	models       *models
	spans        *prometheus.CounterVec
}

// Kinds of holds.
const (
	kindRequest = "request"
	kindJob     = "job"
)

// New registers all metrics.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: counters("tollgate_requests_total", "Answered requests by endpoint and HTTP status; status 0 if the connection ended earlier.",
			"endpoint", "status"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tollgate_request_seconds", Help: "Time from the first byte of a request to the last byte of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}},
			[]string{"endpoint"}),
		admitted: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tollgate_admission_seconds", Help: "Time to reserve money in the database.", Buckets: commitBuckets()}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tollgate_batch_operations", Help: "Operations in one commit of the ledger.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tollgate_batch_seconds", Help: "Time from the beginning of a batch of the ledger to its commit.", Buckets: commitBuckets()}),
		held:   gauges("tollgate_held_usd", "US dollars on hold on all nodes, for requests and for jobs; read every 15 seconds.", "kind"),
		holds:  gauges("tollgate_open_holds", "Open holds on all nodes, of requests and of jobs; read every 15 seconds.", "kind"),
		models: newModels(),
		spans: counters("tollgate_trace_spans_total",
			"Spans of traces by outcome: sent, or dropped because the collector was too slow or not reachable.", "outcome"),
		excess: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tollgate_charge_over_hold_usd_total", Help: "US dollars of usage above the hold, which were not charged."}),
		swept: counters("tollgate_swept_holds_total",
			"Holds of dead nodes that were ended; charged is true if their progress was charged.", "charged"),
		unswept: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_unswept_holds", Help: "Holds of dead nodes that the last sweep could not end."}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tollgate_damaged_holds_total", Help: "Holds moved to quarantine because rows of their accounts are damaged."}),
		jumps: counters("tollgate_clock_jumps_total",
			"Jumps by a second or more of the database's clock (on SQLite, of this machine's clock), by direction.", "direction"),
		delayed: counters("tollgate_wrong_keys_delayed_total",
			"Wrong keys and operator tokens from addresses with many of them. The answer is delayed, or the connection is closed.",
			"secret"),
		leftOut: counters("tollgate_request_log_left_out_total",
			"Refused requests that the request log counts in another request's row, by whether their caller is known.",
			"caller"),
		unknownUsage: counters("tollgate_unknown_usage_total",
			"Unknown members of a line's usage with a count. The provider may bill them in addition.", "line", "member"),
	}
	for _, direction := range []string{"ahead", "back"} { // a rate needs a first value of zero
		m.jumps.WithLabelValues(direction)
	}
	for _, charged := range []string{"true", "false"} {
		m.swept.WithLabelValues(charged)
	}
	m.spans.WithLabelValues("sent")
	m.spans.WithLabelValues("dropped")
	for _, kind := range []string{kindRequest, kindJob} {
		m.held.WithLabelValues(kind)
		m.holds.WithLabelValues(kind)
	}
	build := gauges("tollgate_build_info", "Always 1; the label has the version.", "version")
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.requests, m.durations, m.admitted, m.batches, m.commits, m.held, m.holds, m.excess, m.swept, m.unswept,
		m.damaged, m.jumps, m.delayed, m.leftOut, m.unknownUsage, m.models, m.spans, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// commitBuckets returns the buckets for durations that depend on commits.
func commitBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// Registry returns the registry for packages with their own metrics.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Endpoints creates the series of endpoints, so that rates include the first count.
func (m *Metrics) Endpoints(all []string) {
	for _, endpoint := range all {
		m.durations.WithLabelValues(endpoint)
		for _, status := range []string{"200", "502", "503"} {
			m.requests.WithLabelValues(endpoint, status)
		}
	}
}

// Request counts an answered request.
func (m *Metrics) Request(endpoint string, status int, duration time.Duration) {
	m.requests.WithLabelValues(endpoint, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(endpoint).Observe(duration.Seconds())
}

// ClockJumped counts a jump of the database's clock, ahead or back.
func (m *Metrics) ClockJumped(direction string) { m.jumps.WithLabelValues(direction).Inc() }

// Database shows the connections to the database.
func (m *Metrics) Database(connections func() store.Connections) {
	state := func(name string, seriesOf func(store.Connections) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_database_connections", Help: "Connections to the database by state: in_use or idle.",
			ConstLabels: prometheus.Labels{"state": name}}, func() float64 { return float64(seriesOf(connections())) })
	}
	m.registry.MustRegister(
		state("in_use", func(c store.Connections) int { return c.InUse }),
		state("idle", func(c store.Connections) int { return c.Idle }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "tollgate_database_waits_total", Help: "Waits for a database connection because all were in use."},
			func() float64 { return float64(connections().Waits) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "tollgate_database_wait_seconds_total", Help: "Total time of the waits for a database connection."},
			func() float64 { return connections().WaitTime.Seconds() }),
	)
}

// Media shows whether the media store is down on this node.
func (m *Metrics) Media(down func() (since time.Time, down bool)) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tollgate_media_store_down", Help: "1 if the media store does not accept files from this node, else 0."},
		func() float64 {
			if _, isDown := down(); isDown {
				return 1
			}
			return 0
		}))
}

// Spans returns a function that counts spans of traces with an outcome: sent or dropped.
func (m *Metrics) Spans(outcome string) func(spans int) {
	spans := m.spans.WithLabelValues(outcome)
	return func(n int) { spans.Add(float64(n)) }
}

// Delays returns a function that counts delayed answers to wrong secrets of a kind.
func (m *Metrics) Delays(secret string) func() { return m.delayed.WithLabelValues(secret).Inc }

// Follow makes the metrics by model follow a catalog.
func (m *Metrics) Follow(current func() *catalog.Snapshot) { m.models.follow(current) }

// UnknownUsage counts an unknown member of a line's usage.
func (m *Metrics) UnknownUsage(line, member string) {
	m.unknownUsage.WithLabelValues(line, member).Inc()
}

// FirstToken records the time to the first token of a model's streamed answer.
func (m *Metrics) FirstToken(model string, duration time.Duration) {
	m.models.recordFirstToken(model, duration)
}

func (m *Metrics) setHeld(requests, jobs ledger.OpenHolds) {
	for kind, h := range map[string]ledger.OpenHolds{kindRequest: requests, kindJob: jobs} {
		m.held.WithLabelValues(kind).Set(float64(h.Amount) / float64(money.USD))
		m.holds.WithLabelValues(kind).Set(float64(h.Holds))
	}
}

// Ledger returns the observer of the books. The counter of usage above holds is a float, because
// Prometheus has no other type; the exact figure is on the receipt.
func (m *Metrics) Ledger() ledger.Observer {
	leftOut := map[bool]prometheus.Counter{true: m.leftOut.WithLabelValues("known"), false: m.leftOut.WithLabelValues("unknown")}
	return ledger.Observer{
		Batch: func(operations int, duration time.Duration) {
			m.batches.Observe(float64(operations))
			m.commits.Observe(duration.Seconds())
		},
		Ended:       m.models.ended,
		Admitted:    func(waited time.Duration, _ bool) { m.admitted.Observe(waited.Seconds()) },
		OverHold:    func(excess money.Amount) { m.excess.Add(float64(excess) / float64(money.USD)) },
		Swept:       func(charged bool) { m.swept.WithLabelValues(strconv.FormatBool(charged)).Inc() },
		Unswept:     func(holds int) { m.unswept.Set(float64(holds)) },
		Held:        m.setHeld,
		Quarantined: m.damaged.Inc,
		Unlogged:    func(known bool) { leftOut[known].Inc() },
	}
}
