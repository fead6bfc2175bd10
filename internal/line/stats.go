package line

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/upstream"
)

// What counts as recent: the last so many attempts, no older than this.
const (
	recentAttempts = 128
	recentTime     = 5 * time.Minute
)

// asked is what a line was asked for.
type origin struct {
	model      string
	account    string
	generation uint64 // the line's when the attempt began
	job        bool   // which no probe can repeat
}

// sample is how one attempt went.
type sample struct {
	at        time.Time
	origin    origin
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
	s := &stats{metrics: m.of(line)}
	s.sound.Store(true)
	return s
}

// refuses says why the line is not to be asked for a model; empty: it is, and
// what becomes of the request belongs to that generation of the line. While
// half-open it takes one request at a time: others are refused with stateHalfOpen
// unless they are its last resort.
func (s *stats) refuses(now func() time.Time, model string, lastResort bool) (why string, generation uint64, isHalfOpen bool) {
	if generation = s.generation.Load(); s.sound.Load() {
		return "", generation, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.health.refuses(now(), model); why != "" {
		return why, 0, false
	}
	if s.health.state == halfOpen {
		if s.halfOpenRequests > 0 && !lastResort {
			return stateHalfOpen, 0, false
		}
		s.halfOpenRequests++
		return "", s.health.generation, true
	}
	s.settle()
	return "", s.health.generation, false
}

// settle brings sound and generation up to date. Callers hold mu.
func (s *stats) settle() {
	s.generation.Store(s.health.generation)
	s.sound.Store(s.health.state == healthy && len(s.health.models) == 0 && len(s.health.doubts) == 0)
}

// left is how long the line waits until it is asked or probed again; 0 when it
// waits for nothing.
func (s *stats) left(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health.state == healthy || s.health.state == halfOpen {
		return 0
	}
	return max(s.health.until.Sub(now), 0)
}

// beginHalfOpen takes the place of a request on a half-open line.
func (s *stats) beginHalfOpen() {
	s.mu.Lock()
	s.halfOpenRequests++
	s.mu.Unlock()
}

// endHalfOpen gives the place of a request on a half-open line to another one.
func (s *stats) endHalfOpen() {
	s.mu.Lock()
	s.halfOpenRequests--
	s.mu.Unlock()
}

// change lets the line's health change under the lock and returns what the
// operator is to be told.
func (s *stats) change(f func(h *health) []change) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := f(&s.health)
	s.settle()
	return changes
}

// answered records an answer that began, and returns its number.
func (s *stats) answered(now time.Time, origin origin, firstByte time.Duration) (n uint64, changes []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.add(sample{at: now, origin: origin, success: 1, firstByte: max(firstByte, 1)})
	if changes = s.health.answered(now, origin.generation); changes != nil {
		s.settle()
	}
	return n, changes
}

// failed records a failed attempt.
func (s *stats) failed(now time.Time, origin origin, f *upstream.Failure) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Health != upstream.HealthNone {
		o := sample{at: now, origin: origin}
		o.fail(f)
		s.add(o)
	}
	return s.judge(now, origin, f)
}

// broke turns the recorded answer of number n into a failure.
func (s *stats) broke(now time.Time, origin origin, n uint64, f *upstream.Failure) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n+recentAttempts >= s.n {
		s.ring[n%recentAttempts].fail(f)
	}
	return s.judge(now, origin, f)
}

// fail makes a sample that of a failure.
func (o *sample) fail(f *upstream.Failure) {
	o.success, o.cause, o.unproven = successOf(f.Health), f.Error(), f.Unproven
	o.doubt = f.Unproven && (f.Health == upstream.HealthCredential || f.Health == upstream.HealthModel)
}

// judge lets the line's health take in a failure. Callers hold mu.
func (s *stats) judge(now time.Time, origin origin, f *upstream.Failure) []change {
	changes := s.health.failed(now, origin, f, func() (failureSum, int) { return s.recent(now) })
	s.settle()
	return changes
}

// add records a sample and returns its number. Callers hold mu.
func (s *stats) add(o sample) uint64 {
	n := s.n
	s.ring[n%recentAttempts] = o
	s.n++
	return n
}

// recent counts the attempts of the line's present generation: those of an earlier
// one were judged already, or come too late. Callers hold mu.
func (s *stats) recent(now time.Time) (fails failureSum, attempts int) {
	for i := range min(s.n, recentAttempts) {
		if o := &s.ring[i]; !o.doubt && o.origin.generation == s.health.generation && now.Sub(o.at) <= tripTime {
			fails.add(o.origin.account, 1-o.success, o.unproven)
			attempts++
		}
	}
	return fails, attempts
}

// report fills in what the stats know.
func (s *stats) report(now time.Time, status *Status) {
	status.InFlight = s.inFlight.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	var (
		good   float64
		begins []time.Duration
	)
	first := uint64(0)
	if s.n > recentAttempts {
		first = s.n - recentAttempts
	}
	for i := first; i < s.n; i++ { // oldest first, so that the last cause stays
		o := s.ring[i%recentAttempts]
		if now.Sub(o.at) > recentTime {
			continue
		}
		status.Attempts++
		good += o.success
		if o.firstByte > 0 {
			begins = append(begins, o.firstByte)
		}
		if o.cause != "" {
			status.Cause, status.CauseAt = o.cause, o.at.Unix()
		}
	}
	if status.Attempts > 0 {
		rate := good / float64(status.Attempts)
		status.SuccessRate = &rate
	}
	if len(begins) > 0 {
		slices.Sort(begins)
		ms := begins[len(begins)/2].Milliseconds()
		status.FirstByteMS = &ms
	}
	s.reportHealth(now, status)
}

// reportHealth fills in the line's health. Callers hold mu.
func (s *stats) reportHealth(now time.Time, status *Status) {
	s.health.refuses(now, "") // a pause that is over is over
	s.settle()
	h := &s.health
	if status.State = h.state.word(); h.state != healthy {
		status.Cause, status.CauseAt = h.cause, h.since.Unix()
		if h.state != halfOpen {
			status.CoolingUntil = upTo(h.until)
		}
	}
	for model, m := range h.models {
		status.ModelsOut = append(status.ModelsOut, ModelOut{Model: model, Cause: m.cause, Since: m.since.Unix(), Until: upTo(m.until)})
	}
	slices.SortFunc(status.ModelsOut, func(a, b ModelOut) int { return strings.Compare(a.Model, b.Model) })
}

// upTo rounds a time up to Unix seconds.
func upTo(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// successOf is how much of a success an effect leaves.
func successOf(h upstream.Health) float64 {
	if h == upstream.HealthHalf {
		return 0.5
	}
	return 0
}
