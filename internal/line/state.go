package line

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/upstream"
)

// What counts as recent: the last so many attempts, no older than this.
const (
	recentAttempts = 128
	recentTime     = 5 * time.Minute
)

// State is how a line is doing on this node.
type State struct {
	Line     string `json:"id"`
	Provider string `json:"provider"`
	// State is one of the words below; Cause says why if it is not in_service.
	State string `json:"state"`
	// CoolingUntil is when a line that is not in service is asked or probed
	// again, in Unix seconds; 0 when it waits for nothing.
	CoolingUntil int64 `json:"cooling_until,omitempty"`
	// ModelsOut are the models that are not asked for on this line.
	ModelsOut []ModelOut `json:"models_out,omitempty"`
	// InFlight counts calls whose answer is not closed yet.
	InFlight int64 `json:"in_flight"`
	// MaxConcurrent is the line's cap over all nodes, 0 for none; Granted is
	// how much of it this node has.
	MaxConcurrent int `json:"max_concurrent"`
	Granted       int `json:"granted,omitempty"`
	// Attempts counts the recent attempts that the rate and the time are of.
	Attempts int `json:"recent_attempts"`
	// SuccessRate is the share of them that brought an answer, 0 to 1; nil
	// without any.
	SuccessRate *float64 `json:"success_rate"`
	// FirstByteMS is the median time until an answer began; nil without any.
	FirstByteMS *int64 `json:"first_byte_ms"`
	// Cause is why the line is out of service, else why the latest failed
	// recent attempt failed; CauseAt is when that was, in Unix seconds, or 0.
	Cause   string `json:"cause,omitempty"`
	CauseAt int64  `json:"cause_at,omitempty"`
}

// ModelOut is a model that a line was found not to have.
type ModelOut struct {
	Model string `json:"model"`
	Cause string `json:"cause"`
	Since int64  `json:"since"` // Unix seconds
	Until int64  `json:"until"` // when it is probed again, Unix seconds
}

// The values of State.State, and of an alert's state.
const (
	stateInService      = "in_service"
	stateCooling        = "cooling"         // after a provider's rate limit
	stateCircuitOpen    = "circuit_open"    // it failed too often
	stateHalfOpen       = "half_open"       // a probe went well, a few requests decide
	stateCredentialsOut = "credentials_out" // the provider refused the credential or account
	stateDrained        = "drained"         // by the operator
	stateOutOfService   = "out_of_service"  // it cannot be used on this node
	stateDisabled       = "disabled"        // by the catalog
	stateModelOut       = "model_out"       // of one model on one line, in alerts
)

// causeDrained is the cause of stateDrained.
const causeDrained = "drained by the operator"

// States returns the state of every line of the current catalog on this node,
// in the order of the document.
func (l *Lines) States() []State {
	now := l.now()
	f := l.table(l.current())
	states := make([]State, 0, len(f.entries))
	for _, entry := range f.entries {
		states = append(states, l.state(now, entry))
	}
	return states
}

// state returns the state of one line.
func (l *Lines) state(now time.Time, entry *routingEntry) State {
	ln := entry.line
	state := State{Line: ln.ID, Provider: ln.Provider, State: stateInService, MaxConcurrent: ln.MaxConcurrent}
	if ln.MaxConcurrent > 0 {
		state.Granted = l.slots.Granted(ln.ID)
	}
	entry.stats.report(now, &state)
	why := ""
	switch {
	case !ln.Enabled:
		state.State = stateDisabled
	case ln.Out != "":
		state.State, why = stateOutOfService, ln.Out
	case entry.stats.drained.Load():
		state.State, why = stateDrained, causeDrained
	default:
		return state
	}
	state.CoolingUntil = 0
	if why != "" {
		state.Cause, state.CauseAt = why, 0
	}
	return state
}

// asked is what a line was asked for.
type asked struct {
	model      string
	account    string
	generation uint64 // the line's condition when the attempt began
	job        bool   // which no probe can repeat
}

// sample is how one attempt went.
type sample struct {
	at        time.Time
	asked     asked
	unproven  bool          // the request may have brought its failure about
	doubt     bool          // a probe decides what it means
	success   float64       // 1 answered, 0 failed, 0.5 half a failure
	firstByte time.Duration // until the answer began; 0 if it did not
	cause     string        // of a failure
}

// stats count one line's attempts on this node and keep its health.
type stats struct {
	inFlight atomic.Int64
	drained  atomic.Bool
	metrics  lineMetrics

	// sound tells that the line is healthy, beyond doubt, and has all its models,
	// and generation is its present one: both without a lock, for nearly all requests.
	sound      atomic.Bool
	generation atomic.Uint64

	mu               sync.Mutex
	n                uint64 // attempts ever; the last recentAttempts of them are in ring
	ring             [recentAttempts]sample
	health           health
	halfOpenRequests int // requests that run while it is half-open
}

// newStats makes the stats of a line.
func newStats(line string, m *metrics) *stats {
	t := &stats{metrics: m.of(line)}
	t.sound.Store(true)
	return t
}

// refuses says why the line is not to be asked for a model; empty: it is, and
// what becomes of the request belongs to that generation of the line. While
// half-open it takes one request at a time: others are refused with stateHalfOpen
// unless they press.
func (t *stats) refuses(now func() time.Time, model string, press bool) (why string, generation uint64, isHalfOpen bool) {
	if generation = t.generation.Load(); t.sound.Load() {
		return "", generation, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if why := t.health.refuses(now(), model); why != "" {
		return why, 0, false
	}
	if t.health.condition == halfOpen {
		if t.halfOpenRequests > 0 && !press {
			return stateHalfOpen, 0, false
		}
		t.halfOpenRequests++
		return "", t.health.generation, true
	}
	t.settle()
	return "", t.health.generation, false
}

// settle brings sound and generation up to date. Callers hold mu.
func (t *stats) settle() {
	t.generation.Store(t.health.generation)
	t.sound.Store(t.health.condition == healthy && len(t.health.models) == 0 && len(t.health.doubts) == 0)
}

// left is how long the line waits until it is asked or probed again; 0 when it
// waits for nothing.
func (t *stats) left(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.health.condition == healthy || t.health.condition == halfOpen {
		return 0
	}
	return max(t.health.until.Sub(now), 0)
}

// endHalfOpen gives the place of a request on a half-open line to another one.
func (t *stats) endHalfOpen() {
	t.mu.Lock()
	t.halfOpenRequests--
	t.mu.Unlock()
}

// change lets the line's health change under the lock and returns what the
// operator is to be told.
func (t *stats) change(f func(h *health) []change) []change {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes := f(&t.health)
	t.settle()
	return changes
}

// answered records an answer that began, and returns its number.
func (t *stats) answered(now time.Time, asked asked, firstByte time.Duration) (n uint64, changes []change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = t.add(sample{at: now, asked: asked, success: 1, firstByte: max(firstByte, 1)})
	if changes = t.health.answered(now, asked.generation); changes != nil {
		t.settle()
	}
	return n, changes
}

// failed records a failed attempt.
func (t *stats) failed(now time.Time, asked asked, f *upstream.Failure) []change {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.Health != upstream.HealthNone {
		o := sample{at: now, asked: asked}
		o.fail(f)
		t.add(o)
	}
	return t.judge(now, asked, f)
}

// broke turns the recorded answer of number n into a failure.
func (t *stats) broke(now time.Time, asked asked, n uint64, f *upstream.Failure) []change {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n+recentAttempts >= t.n {
		t.ring[n%recentAttempts].fail(f)
	}
	return t.judge(now, asked, f)
}

// fail makes a sample that of a failure.
func (o *sample) fail(f *upstream.Failure) {
	o.success, o.cause, o.unproven = successOf(f.Health), f.Error(), f.Unproven
	o.doubt = f.Unproven && (f.Health == upstream.HealthCredential || f.Health == upstream.HealthModel)
}

// judge lets the line's health take in a failure. Callers hold mu.
func (t *stats) judge(now time.Time, asked asked, f *upstream.Failure) []change {
	changes := t.health.failed(now, asked, f, func() (failureSum, int) { return t.recent(now) })
	t.settle()
	return changes
}

// add records a sample and returns its number. Callers hold mu.
func (t *stats) add(o sample) uint64 {
	n := t.n
	t.ring[n%recentAttempts] = o
	t.n++
	return n
}

// recent counts the attempts of the line's present generation: those of an earlier
// one were judged already, or come too late. Callers hold mu.
func (t *stats) recent(now time.Time) (fails failureSum, attempts int) {
	for i := range min(t.n, recentAttempts) {
		if o := &t.ring[i]; !o.doubt && o.asked.generation == t.health.generation && now.Sub(o.at) <= tripTime {
			fails.add(o.asked.account, 1-o.success, o.unproven)
			attempts++
		}
	}
	return fails, attempts
}

// report fills in what the stats know.
func (t *stats) report(now time.Time, s *State) {
	s.InFlight = t.inFlight.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	var (
		good   float64
		begins []time.Duration
	)
	first := uint64(0)
	if t.n > recentAttempts {
		first = t.n - recentAttempts
	}
	for i := first; i < t.n; i++ { // oldest first, so that the last cause stays
		o := t.ring[i%recentAttempts]
		if now.Sub(o.at) > recentTime {
			continue
		}
		s.Attempts++
		good += o.success
		if o.firstByte > 0 {
			begins = append(begins, o.firstByte)
		}
		if o.cause != "" {
			s.Cause, s.CauseAt = o.cause, o.at.Unix()
		}
	}
	if s.Attempts > 0 {
		rate := good / float64(s.Attempts)
		s.SuccessRate = &rate
	}
	if len(begins) > 0 {
		slices.Sort(begins)
		ms := begins[len(begins)/2].Milliseconds()
		s.FirstByteMS = &ms
	}
	t.reportHealth(now, s)
}

// reportHealth fills in the line's health. Callers hold mu.
func (t *stats) reportHealth(now time.Time, s *State) {
	t.health.refuses(now, "") // a pause that is over is over
	t.settle()
	h := &t.health
	if s.State = h.condition.state(); h.condition != healthy {
		s.Cause, s.CauseAt = h.cause, h.since.Unix()
		if h.condition != halfOpen {
			s.CoolingUntil = upTo(h.until)
		}
	}
	for model, m := range h.models {
		s.ModelsOut = append(s.ModelsOut, ModelOut{Model: model, Cause: m.cause, Since: m.since.Unix(), Until: upTo(m.until)})
	}
	slices.SortFunc(s.ModelsOut, func(a, b ModelOut) int { return strings.Compare(a.Model, b.Model) })
}

// upTo rounds a time up to Unix seconds.
func upTo(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// same tells whether a line of a newer catalog speaks with the same provider
// in the same name, so that what was learnt about it holds.
func same(a, b *catalog.Line) bool {
	return a.Provider == b.Provider && a.BaseURL == b.BaseURL && a.APIKey == b.APIKey
}

// score is how much of a success an effect leaves.
func successOf(h upstream.Health) float64 {
	if h == upstream.HealthHalf {
		return 0.5
	}
	return 0
}
