package job

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tollgate/internal/catalog"
	"tollgate/internal/job/row"
)

type metrics struct {
	submissions *prometheus.CounterVec
	ends        *prometheus.CounterVec
	steps       *prometheus.CounterVec
	workers     prometheus.Gauge
	kept        prometheus.Gauge
	waiting     prometheus.Gauge
	queued      *prometheus.GaugeVec
	oldest      *prometheus.GaugeVec
	queues      map[string]queueMeasure // the queues in queued and oldest; only Measure uses it
}

func newMetrics(registry prometheus.Registerer) *metrics {
	with := promauto.With(registry)
	m := &metrics{
		submissions: with.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_job_submissions_total", Help: "Jobs that were accepted, by kind."}, []string{"kind"}),
		ends: with.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_job_ends_total", Help: "Jobs that ended, by kind and error code (empty: succeeded)."}, []string{"kind", "code"}),
		steps: with.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_job_steps_total", Help: "Steps of jobs on this node, by name."}, []string{"step"}),
		workers: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_job_running", Help: "Jobs processed by this node."}),
		kept: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_job_kept", Help: "Jobs of this node with results kept until the media store accepts them."}),
		waiting: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_job_waiting_clients", Help: "Clients of this node that wait for the result of their job."}),
		queued: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tollgate_job_queued",
			Help: "Queued jobs of a model on all nodes; the oldest 10,000 are counted every 10 seconds."},
			[]string{"model"}),
		oldest: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tollgate_job_oldest_queued_seconds", Help: "The wait of the oldest queued job; 0 if none waits."},
			[]string{"model"}),
	}
	for _, kind := range []catalog.Kind{catalog.KindImage, catalog.KindVideo} { // a rate needs an initial zero
		m.submissions.WithLabelValues(string(kind))
		m.ends.WithLabelValues(string(kind), "")
	}
	for _, step := range row.Steps() {
		m.steps.WithLabelValues(step)
	}
	return m
}

func (m *metrics) countSubmission(kind string) { m.submissions.WithLabelValues(kind).Inc() }
func (m *metrics) countEnd(kind, code string)  { m.ends.WithLabelValues(kind, code).Inc() }
func (m *metrics) countStep(name string)       { m.steps.WithLabelValues(name).Inc() }

// setQueues sets the metrics of the queues and deletes the metrics of former queues.
func (m *metrics) setQueues(queues map[string]queueMeasure) {
	for model := range m.queues {
		if _, ok := queues[model]; !ok {
			m.queued.DeleteLabelValues(model)
			m.oldest.DeleteLabelValues(model)
		}
	}
	m.queues = queues
	for model, q := range queues {
		m.queued.WithLabelValues(model).Set(float64(q.length))
		m.oldest.WithLabelValues(model).Set(q.oldest.Seconds())
	}
}
