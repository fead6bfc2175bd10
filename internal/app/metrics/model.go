package metrics

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// codeRejected is the label for every error code from a provider.
const codeRejected = "rejected"

// models are the tollgate_model_* metrics: one set of series for each model of the newest catalog,
// and one with an empty model for all other requests. The next scrape deletes the series of a
// removed model.
type models struct {
	requests   *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	charged    *prometheus.CounterVec
	firstToken *prometheus.HistogramVec

	table atomic.Pointer[modelTable]

	mu      sync.Mutex
	current func() *catalog.Snapshot // under mu; nil if there are no models yet
}

// modelTable are the series of one catalog's models. It never changes.
type modelTable struct {
	revision int64
	byID     map[string]*modelSeries
	other    *modelSeries // for models outside the catalog
}

// modelSeries are the series of one model.
type modelSeries struct {
	model                      string
	ended                      prometheus.Counter // without a code
	prompt, cached, completion prometheus.Counter
	charged                    prometheus.Counter
	firstToken                 prometheus.Observer
}

func newModels() *models {
	m := &models{
		requests: counters("tollgate_model_requests_total",
			"Requests and jobs that have ended or were refused, by model and error code (empty for success).", "model", "code"),
		tokens: counters("tollgate_model_tokens_total",
			"Charged tokens by kind: prompt, cached (prompt tokens from a cache) and completion.", "model", "kind"),
		charged: counters("tollgate_model_charged_usd_total", "US dollars charged for requests and jobs.", "model"),
		firstToken: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tollgate_model_first_token_seconds", Help: "Time from the first byte of a request to the first byte of its streamed answer.",
			Buckets: []float64{.05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 10, 20, 60, 180}}, []string{"model"}),
	}
	m.table.Store(&modelTable{revision: -1, other: m.series("")})
	return m
}

// series creates the series of a model. The series of the usual codes begin at zero.
func (m *models) series(model string) *modelSeries {
	for _, code := range []fault.Code{fault.UpstreamError, fault.UpstreamUnavailable} {
		m.requests.WithLabelValues(model, string(code))
	}
	return &modelSeries{
		model: model, ended: m.requests.WithLabelValues(model, ""),
		prompt: m.tokens.WithLabelValues(model, "prompt"), cached: m.tokens.WithLabelValues(model, "cached"),
		completion: m.tokens.WithLabelValues(model, "completion"),
		charged:    m.charged.WithLabelValues(model), firstToken: m.firstToken.WithLabelValues(model),
	}
}

// follow lets the series follow a catalog.
func (m *models) follow(current func() *catalog.Snapshot) {
	m.mu.Lock()
	m.current = current
	m.mu.Unlock()
	m.refresh()
}

// refresh returns the table of the newest catalog.
func (m *models) refresh() *modelTable {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.table.Load()
	if m.current == nil || m.current().Revision == before.revision {
		return before
	}
	s := m.current()
	now := &modelTable{revision: s.Revision, byID: make(map[string]*modelSeries, len(s.Models())), other: before.other}
	for _, model := range s.Models() {
		if now.byID[model.ID] = before.byID[model.ID]; now.byID[model.ID] == nil {
			now.byID[model.ID] = m.series(model.ID)
		}
	}
	for id := range before.byID {
		if now.byID[id] == nil {
			m.forget(id)
		}
	}
	m.table.Store(now)
	return now
}

// forget drops the series of a model.
func (m *models) forget(model string) {
	labels := prometheus.Labels{"model": model}
	m.requests.DeletePartialMatch(labels)
	m.tokens.DeletePartialMatch(labels)
	m.charged.DeletePartialMatch(labels)
	m.firstToken.DeletePartialMatch(labels)
}

// seriesOf returns the series of a model, or the series without a model if the catalog does not
// have it.
func (m *models) seriesOf(model string) *modelSeries {
	if model == "" {
		return m.table.Load().other
	}
	if s := m.table.Load().byID[model]; s != nil {
		return s
	}
	t := m.refresh()
	return cmp.Or(t.byID[model], t.other)
}

// ended counts an ended request without waiting.
func (m *models) ended(e books.EndedRequest) {
	s := m.seriesOf(e.Model)
	if e.Code == "" {
		s.ended.Inc()
	} else {
		m.requests.WithLabelValues(s.model, codeOf(e.Code)).Inc()
	}
	add(s.prompt, e.Tokens.Prompt)
	add(s.cached, e.Tokens.Cached)
	add(s.completion, e.Tokens.Completion)
	if e.Charged > 0 {
		s.charged.Add(float64(e.Charged) / float64(money.USD))
	}
}

func add(to prometheus.Counter, n int64) {
	if n > 0 {
		to.Add(float64(n))
	}
}

// codeOf maps an error code to a bounded set of labels, because a rejection carries the provider's
// own code.
func codeOf(code string) string {
	known := code == string(fault.ClientClosed)
	if !known {
		_, known = fault.Lookup(fault.Code(code))
	}
	if known || slices.ContainsFunc(fault.JobTable(), func(r fault.JobRow) bool { return string(r.Code) == code }) {
		return code
	}
	return codeRejected
}

// recordFirstToken records the time to the first token of a streamed answer.
func (m *models) recordFirstToken(model string, duration time.Duration) {
	m.seriesOf(model).firstToken.Observe(duration.Seconds())
}

// Describe implements prometheus.Collector.
func (m *models) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector for the models of the newest catalog.
func (m *models) Collect(to chan<- prometheus.Metric) {
	m.refresh()
	for _, c := range m.all() {
		c.Collect(to)
	}
}

func (m *models) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.tokens, m.charged, m.firstToken}
}
