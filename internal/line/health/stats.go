package health

import (
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

// Origin is what an attempt was made for.
type Origin struct {
	Model      string
	Account    string
	Generation uint64 // the line's when the attempt began
	Job        bool   // which no probe can repeat
}

// sample is how one attempt went.
type sample struct {
	at        time.Time
	origin    Origin
	unproven  bool          // the request may have brought its failure about
	doubt     bool          // a probe decides what it means
	success   float64       // 1 answered, 0 failed, 0.5 half a failure
	firstByte time.Duration // until the answer began; 0 if it did not
	cause     string        // of a failure
}

// Stats count one line's attempts on this node and keep its health. They are
// safe for concurrent use.
type Stats struct {
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

// New makes the stats of a line that nothing is held against.
func New() *Stats {
	s := &Stats{}
	s.sound.Store(true)
	return s
}

// Sound tells that nothing at all is held against the line.
func (s *Stats) Sound() bool { return s.sound.Load() }

// Generation is the line's present one: what began in it counts.
func (s *Stats) Generation() uint64 { return s.generation.Load() }

// Refuses says why the line is not to be asked for a model; empty: it is, and
// what becomes of the request belongs to that generation of the line. While
// half-open it takes one request at a time: others are refused with stateHalfOpen
// unless they are its last resort.
func (s *Stats) Refuses(now func() time.Time, model string, lastResort bool) (why string, generation uint64, isHalfOpen bool) {
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
			return StateHalfOpen, 0, false
		}
		s.halfOpenRequests++
		return "", s.health.generation, true
	}
	s.settle()
	return "", s.health.generation, false
}

// settle brings sound and generation up to date. Callers hold mu.
func (s *Stats) settle() {
	s.generation.Store(s.health.generation)
	s.sound.Store(s.health.state == healthy && len(s.health.models) == 0 && len(s.health.doubts) == 0)
}

// Left is how long the line waits until it is asked or probed again; 0 when it
// waits for nothing.
func (s *Stats) Left(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health.state == healthy || s.health.state == halfOpen {
		return 0
	}
	return max(s.health.until.Sub(now), 0)
}

// BeginHalfOpen takes the place of a request on a half-open line.
func (s *Stats) BeginHalfOpen() {
	s.mu.Lock()
	s.halfOpenRequests++
	s.mu.Unlock()
}

// EndHalfOpen gives the place of a request on a half-open line to another one.
func (s *Stats) EndHalfOpen() {
	s.mu.Lock()
	s.halfOpenRequests--
	s.mu.Unlock()
}

// change lets the line's health change under the lock and returns what the
// operator is to be told.
func (s *Stats) change(f func(h *health) []Change) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := f(&s.health)
	s.settle()
	return changes
}

// Clear forgets all that is held against the line and returns what the operator
// is to be told.
func (s *Stats) Clear(now time.Time) []Change {
	return s.change(func(h *health) []Change { return h.clear(now) })
}

// Probes are what is to be probed of a line: the line as a whole, the models that
// are out on it, and those in doubt.
type Probes struct {
	Whole          bool
	Models, Doubts []string
	Generation     uint64 // of the line when the probes begin
}

// Due returns the probes that are due; they count as begun.
func (s *Stats) Due(now time.Time) (p Probes) {
	s.change(func(h *health) []Change {
		p.Whole, p.Models, p.Doubts = h.due(now)
		p.Generation = h.generation
		return nil
	})
	return p
}

// Probed takes in a probe of the whole line that began in a generation; f is nil
// when it went well.
func (s *Stats) Probed(now time.Time, generation uint64, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.probed(now, generation, f) })
}

// ProbedModel takes in a probe of a model that is out.
func (s *Stats) ProbedModel(now time.Time, model string, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.probedModel(now, model, f) })
}

// Resolved takes in a probe of a model in doubt that began in a generation.
func (s *Stats) Resolved(now time.Time, generation uint64, model string, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.resolved(now, generation, model, f) })
}

// Answered records an answer that began, and returns its number.
func (s *Stats) Answered(now time.Time, origin Origin, firstByte time.Duration) (n uint64, changes []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.add(sample{at: now, origin: origin, success: 1, firstByte: max(firstByte, 1)})
	if changes = s.health.answered(now, origin.Generation); changes != nil {
		s.settle()
	}
	return n, changes
}

// Failed records a failed attempt.
func (s *Stats) Failed(now time.Time, origin Origin, f *upstream.Failure) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Health != upstream.HealthNone {
		o := sample{at: now, origin: origin}
		o.fail(f)
		s.add(o)
	}
	return s.judge(now, origin, f)
}

// Broke turns the recorded answer of number n into a failure.
func (s *Stats) Broke(now time.Time, origin Origin, n uint64, f *upstream.Failure) []Change {
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
func (s *Stats) judge(now time.Time, origin Origin, f *upstream.Failure) []Change {
	changes := s.health.failed(now, origin, f, func() (failureSum, int) { return s.recent(now) })
	s.settle()
	return changes
}

// add records a sample and returns its number. Callers hold mu.
func (s *Stats) add(o sample) uint64 {
	n := s.n
	s.ring[n%recentAttempts] = o
	s.n++
	return n
}

// recent counts the attempts of the line's present generation: those of an earlier
// one were judged already, or come too late. Callers hold mu.
func (s *Stats) recent(now time.Time) (fails failureSum, attempts int) {
	for i := range min(s.n, recentAttempts) {
		if o := &s.ring[i]; !o.doubt && o.origin.Generation == s.health.generation && now.Sub(o.at) <= tripTime {
			fails.add(o.origin.Account, 1-o.success, o.unproven)
			attempts++
		}
	}
	return fails, attempts
}

// successOf is how much of a success an effect leaves.
func successOf(h upstream.Health) float64 {
	if h == upstream.HealthHalf {
		return 0.5
	}
	return 0
}
