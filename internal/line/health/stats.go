package health

import (
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// Recent attempts are the last recentAttempts, at most recentTime old.
const (
	recentAttempts = 128
	recentTime     = 5 * time.Minute
)

// Origin describes the request of an attempt.
type Origin struct {
	LinePart
	Account    string
	Generation uint64 // the line's when the attempt began
	Job        bool   // probes cannot repeat jobs
}

// sample is the result of one attempt.
type sample struct {
	at        time.Time
	origin    Origin
	unproven  bool          // the request may have caused the failure
	apart     bool          // does not count against the line as a whole
	success   float64       // 1 answered, 0 failed, 0.5 half a failure
	firstByte time.Duration // until the answer began; 0 if it did not
	cause     string        // of a failure
}

// Stats count one line's attempts on this node and keep its health. They are
// safe for concurrent use.
type Stats struct {
	// sound is true if the line is healthy, without doubts and without holds. generation is the
	// present generation. Both are read without the lock, for nearly all requests.
	sound      atomic.Bool
	generation atomic.Uint64
	doubtful   atomic.Bool // a question waits for a probe

	mu               sync.Mutex
	n                uint64 // attempts ever; the last recentAttempts of them are in ring
	ring             [recentAttempts]sample
	health           health
	halfOpenRequests int // running requests of a half-open line
}

// New returns the stats of a healthy line.
func New() *Stats {
	s := &Stats{}
	s.health.usedByOthers = s.usedByOthers
	s.sound.Store(true)
	return s
}

// Sound reports whether the line is healthy, without doubts and without holds.
func (s *Stats) Sound() bool { return s.sound.Load() }

// Generation returns the line's present generation; later attempts count.
func (s *Stats) Generation() uint64 { return s.generation.Load() }

// Serves sets the line's models and forms from the newest catalog.
func (s *Stats) Serves(serving Serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health.serving = serving
}

// Refuses returns the reason for refusing a request. If it returns the empty string, the
// request may begin, and its result belongs to the returned generation. A half-open line takes one
// request at a time and refuses others with StateHalfOpen, unless the line is their last resort.
// The same applies to accounts that are exempt from an open circuit. As a last resort, exempt
// accounts also ignore an explicit pause.
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

// Lacks returns the line's lack for a request in its form.
func (s *Stats) Lacks(q Origin) Lack {
	if s.sound.Load() {
		return LacksNothing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health.lacks(q)
}

// settle updates sound and generation. Callers hold mu.
func (s *Stats) settle() {
	s.generation.Store(s.health.generation)
	sound := s.health.state == healthy && len(s.health.doubts) == 0
	for _, p := range s.health.parts {
		sound = sound && !p.holds()
	}
	s.sound.Store(sound)
	s.doubtful.Store(s.health.doubtful())
}

// Doubtful reports whether a part of the line waits for a probe.
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

// Outage is the reason for refusing a request.
type Outage struct {
	Cause     string        // the cause of the present hold
	Left      time.Duration // until the next request or probe; 0 if unknown
	Untrusted bool          // its certificate is not valid
}

// Why returns the present reason for refusing a request.
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

// BeginHalfOpen counts a request on a half-open line.
func (s *Stats) BeginHalfOpen() {
	s.mu.Lock()
	s.halfOpenRequests++
	s.mu.Unlock()
}

// EndHalfOpen ends a request on a half-open line.
func (s *Stats) EndHalfOpen() {
	s.mu.Lock()
	s.halfOpenRequests--
	s.mu.Unlock()
}

// change runs f on the line's health under the lock and returns the messages for the operator.
func (s *Stats) change(f func(h *health) []Change) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := f(&s.health)
	s.settle()
	return changes
}

// Clear removes all holds from the line and returns the messages for the operator.
func (s *Stats) Clear(now time.Time) []Change {
	return s.change(func(h *health) []Change { return h.clear(now) })
}

// Ask is the target of a probe. If Form is empty, the probe may use any form of the model: Last is
// the form of the model's last answer or empty, and Turn counts the probes so far, so that they
// take turns.
type Ask struct {
	LinePart
	Last wire.Form
	Turn int
}

// Probes lists the due probes of a line.
type Probes struct {
	Whole      *Ask     // the line as a whole, with the part of its last answer, or nil
	Parts      []Ask    // parts that are out
	Doubts     []Ask    // the parts in doubt
	Worked     LinePart // the part of the line's last answer; zero before the first
	Generation uint64
}

// Due returns the due probes and marks them as running.
func (s *Stats) Due(now time.Time) (p Probes) {
	s.change(func(h *health) []Change {
		p = h.due(now)
		return nil
	})
	return p
}

// Probed records a probe of the whole line. generation is the line's generation when the probe
// began; f is nil if the line answered.
func (s *Stats) Probed(now time.Time, generation uint64, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.probed(now, generation, f) })
}

// ProbedPart records a probe of a part that is out.
func (s *Stats) ProbedPart(now time.Time, part LinePart, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.probedPart(now, part, f) })
}

// Resolved records a probe of a doubtful part. generation is the line's generation when the probe
// began, and form is the form of the probe.
func (s *Stats) Resolved(now time.Time, generation uint64, part LinePart, form wire.Form, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.resolved(now, generation, part, form, f) })
}

// Answered records the begin of an answer and returns its number.
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

// Broke turns the recorded answer n into a failure.
func (s *Stats) Broke(now time.Time, origin Origin, n uint64, f *upstream.Failure) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n+recentAttempts >= s.n {
		s.ring[n%recentAttempts].fail(f, s.health.refutes(now, origin.Account))
	}
	return s.judge(now, origin, f)
}

// fail turns a sample into a failure; refuted is true if the account's own requests are known to
// cause its failures.
func (o *sample) fail(f *upstream.Failure, refuted bool) {
	o.success, o.cause, o.unproven = successOf(f.Health), f.Error(), f.Unproven || refuted
	switch f.Health {
	case upstream.HealthCool, upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		o.apart = true
	}
}

// judge applies a failure to the line's health. Callers hold mu.
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

// usedByOthers reports whether accounts outside who used the line within recentTime. Callers hold
// mu.
func (s *Stats) usedByOthers(now time.Time, who *reporters) bool {
	for i := range min(s.n, recentAttempts) {
		if o := &s.ring[i]; !who.accounts[o.origin.Account] && now.Sub(o.at) <= recentTime {
			return true
		}
	}
	return false
}

// successOf returns the success of an attempt with the effect h, 0 to 1.
func successOf(h upstream.Health) float64 {
	if h == upstream.HealthHalf {
		return 0.5
	}
	return 0
}
