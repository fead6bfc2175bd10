package health

import (
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// What counts as recent: the last so many attempts, no older than this.
const (
	recentAttempts = 128
	recentTime     = 5 * time.Minute
)

// Origin is what an attempt was made for.
type Origin struct {
	LinePart
	Account    string
	Generation uint64 // the line's when the attempt began
	Job        bool   // which no probe can repeat
}

// sample is how one attempt went.
type sample struct {
	at        time.Time
	origin    Origin
	unproven  bool          // the request may have brought its failure about
	apart     bool          // it says nothing about the line as a whole
	success   float64       // 1 answered, 0 failed, 0.5 half a failure
	firstByte time.Duration // until the answer began; 0 if it did not
	cause     string        // of a failure
}

// Stats count one line's attempts on this node and keep its health. They are
// safe for concurrent use.
type Stats struct {
	// sound tells that the line is healthy, beyond doubt, and whole, and
	// generation is its present one: both without a lock, for nearly all requests.
	sound      atomic.Bool
	generation atomic.Uint64
	doubtful   atomic.Bool // a question waits for a probe

	mu               sync.Mutex
	n                uint64 // attempts ever; the last recentAttempts of them are in ring
	ring             [recentAttempts]sample
	health           health
	halfOpenRequests int // requests that run while it is half-open
}

// New makes the stats of a line that nothing is held against.
func New() *Stats {
	s := &Stats{}
	s.health.usedByOthers = s.usedByOthers
	s.sound.Store(true)
	return s
}

// Sound tells that nothing at all is held against the line.
func (s *Stats) Sound() bool { return s.sound.Load() }

// Generation is the line's present one: what began in it counts.
func (s *Stats) Generation() uint64 { return s.generation.Load() }

// Serves tells what the line serves, by the newest catalog.
func (s *Stats) Serves(serving Serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health.serving = serving
}

// Refuses says why a request is not to be made of the line; empty: it is, and
// what becomes of it belongs to that generation of the line. While half-open it
// takes one request at a time: others are refused with StateHalfOpen unless they
// are its last resort. The same goes for accounts that are exempt from an open
// circuit. As a last resort they also pass over a pause that only other accounts
// have met.
func (s *Stats) Refuses(now func() time.Time, q Origin, lastResort bool) (why string, generation uint64, isHalfOpen bool) {
	if generation = s.generation.Load(); s.sound.Load() {
		return "", generation, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	why, alone := s.health.refuses(now(), q, lastResort)
	s.settle()
	switch {
	case why != "":
		return why, 0, false
	case !alone:
		return "", s.health.generation, false
	case s.halfOpenRequests > 0 && !lastResort:
		return StateHalfOpen, 0, false
	}
	s.halfOpenRequests++
	return "", s.health.generation, true
}

// Lacks says what keeps a request from the form that it would be made in.
func (s *Stats) Lacks(q Origin) Lack {
	if s.sound.Load() {
		return LacksNothing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health.lacks(q)
}

// settle brings sound and generation up to date. Callers hold mu.
func (s *Stats) settle() {
	s.generation.Store(s.health.generation)
	sound := s.health.state == healthy && len(s.health.doubts) == 0
	for _, p := range s.health.parts {
		sound = sound && !p.holds()
	}
	s.sound.Store(sound)
	s.doubtful.Store(s.health.doubtful())
}

// Doubtful reports whether something about the line waits for a probe.
func (s *Stats) Doubtful() bool { return s.doubtful.Load() }

// Left is how long the line waits until it is asked for a model or probed again;
// 0 when it waits for nothing.
func (s *Stats) Left(now time.Time, model string) (left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.health.parts[LinePart{Model: model}]; p != nil && p.holds() {
		left = p.until.Sub(now)
	}
	if s.health.state != healthy && s.health.state != halfOpen {
		left = max(left, s.health.until.Sub(now))
	}
	return max(left, 0)
}

// Outage is why a line refuses a request.
type Outage struct {
	Cause     string        // of the failure that is held against it
	Left      time.Duration // until the line is asked or probed again; 0 if that is not known
	Untrusted bool          // its certificate is not valid
}

// Why returns why the line refuses a request now.
func (s *Stats) Why(now time.Time, q Origin) Outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.health
	if h.state != healthy && !h.who.exempt(q.Account) || h.explicit {
		r := Outage{Cause: h.cause, Untrusted: h.untrusted}
		if h.state != halfOpen {
			r.Left = max(0, h.until.Sub(now))
		}
		return r
	}
	for _, part := range [...]LinePart{{Model: q.Model}, {Model: q.Model, Form: q.Form}} {
		if p := h.parts[part]; p != nil && p.holds() {
			return Outage{Cause: p.cause, Left: max(0, p.until.Sub(now))}
		}
	}
	return Outage{Cause: h.cause}
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

// Ask is what a probe asks for. Without a form it is the model in any: Last is the
// one in which it answered last, empty for none, and Turn counts the probes so
// far, which take turns.
type Ask struct {
	LinePart
	Last wire.Form
	Turn int
}

// Probes are what is to be probed of a line.
type Probes struct {
	Whole      *Ask     // the line as a whole, with what it answered last; nil: not it
	Parts      []Ask    // the parts that are out
	Doubts     []Ask    // the parts in doubt
	Worked     LinePart // what the line answered last; zero: nothing yet
	Generation uint64
}

// Due returns the probes that are due; they count as begun.
func (s *Stats) Due(now time.Time) (p Probes) {
	s.change(func(h *health) []Change {
		p = h.due(now)
		return nil
	})
	return p
}

// Probed takes in a probe of the whole line that began in a generation; f is nil
// when it went well.
func (s *Stats) Probed(now time.Time, generation uint64, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.probed(now, generation, f) })
}

// ProbedPart takes in a probe of a part that is out.
func (s *Stats) ProbedPart(now time.Time, part LinePart, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.probedPart(now, part, f) })
}

// Resolved takes in a probe of a part in doubt that began in a generation and
// asked in a form.
func (s *Stats) Resolved(now time.Time, generation uint64, part LinePart, form wire.Form, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.resolved(now, generation, part, form, f) })
}

// Answered records an answer that began, and returns its number.
func (s *Stats) Answered(now time.Time, origin Origin, firstByte time.Duration) (n uint64, changes []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.add(sample{at: now, origin: origin, success: 1, firstByte: max(firstByte, 1)})
	if changes = s.health.answered(now, origin); changes != nil || s.health.generation != s.generation.Load() {
		s.settle()
	}
	return n, changes
}

// Failed records a failed attempt.
func (s *Stats) Failed(now time.Time, origin Origin, f *upstream.Failure) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Health != upstream.HealthNone && f.Passed == nil {
		o := sample{at: now, origin: origin}
		o.fail(f, s.health.refutes(now, origin.Account))
		s.add(o)
	}
	return s.judge(now, origin, f)
}

// Broke turns the recorded answer of number n into a failure.
func (s *Stats) Broke(now time.Time, origin Origin, n uint64, f *upstream.Failure) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n+recentAttempts >= s.n {
		s.ring[n%recentAttempts].fail(f, s.health.refutes(now, origin.Account))
	}
	return s.judge(now, origin, f)
}

// fail makes a sample that of a failure; refuted says that it is known to be the
// account's own.
func (o *sample) fail(f *upstream.Failure, refuted bool) {
	o.success, o.cause, o.unproven = successOf(f.Health), f.Error(), f.Unproven || refuted
	switch f.Health {
	case upstream.HealthCool, upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		o.apart = true
	}
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

// recent counts the attempts since the line's present state began: those before it
// were judged already, or come too late. Callers hold mu.
func (s *Stats) recent(now time.Time) (fails failureSum, attempts int) {
	for i := range min(s.n, recentAttempts) {
		if o := &s.ring[i]; !o.apart && o.origin.Generation >= s.health.began && now.Sub(o.at) <= tripTime {
			fails.add(o.origin.Account, 1-o.success, o.unproven)
			attempts++
		}
	}
	return fails, attempts
}

// usedByOthers reports whether accounts other than some reporters have used the line
// lately. Callers hold mu.
func (s *Stats) usedByOthers(now time.Time, who *reporters) bool {
	for i := range min(s.n, recentAttempts) {
		if o := &s.ring[i]; !who.accounts[o.origin.Account] && now.Sub(o.at) <= recentTime {
			return true
		}
	}
	return false
}

// successOf is how much of a success an effect leaves.
func successOf(h upstream.Health) float64 {
	if h == upstream.HealthHalf {
		return 0.5
	}
	return 0
}
