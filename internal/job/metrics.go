package job

import (
	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/catalog"
	"tollgate/internal/job/row"
)

// metrics are what operators watch of jobs.
type metrics struct {
	submissions *prometheus.CounterVec
	ends        *prometheus.CounterVec
	steps       *prometheus.CounterVec
	workers     prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		submissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_job_submissions_total", Help: "Jobs that were accepted, by kind."}, []string{"kind"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_job_ends_total", Help: "Jobs that ended, by kind and error code (empty: succeeded)."}, []string{"kind", "code"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_job_steps_total", Help: "Steps of jobs on this node, by name."}, []string{"step"}),
		workers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_job_running", Help: "Jobs that this node looks after."}),
	}
	for _, kind := range []catalog.Kind{catalog.KindImage, catalog.KindVideo} { // a rate needs a zero to begin with
		m.submissions.WithLabelValues(string(kind))
		m.ends.WithLabelValues(string(kind), "")
	}
	for _, step := range row.Steps() {
		m.steps.WithLabelValues(step)
	}
	if registry != nil {
		registry.MustRegister(m.submissions, m.ends, m.steps, m.workers)
	}
	return m
}

func (m *metrics) submitted(kind string)   { m.submissions.WithLabelValues(kind).Inc() }
func (m *metrics) ended(kind, code string) { m.ends.WithLabelValues(kind, code).Inc() }
func (m *metrics) step(name string)        { m.steps.WithLabelValues(name).Inc() }
