package health

import (
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// An attempt is recent if it is one of the last recentAttempts attempts and at most recentTime old.
const (
	recentAttempts = 128
	recentTime     = 5 * time.Minute
)

// Origin describes the request of an attempt.
type Origin struct {
	LinePart
	Account    string
	Generation uint64 // the line's generation at the start of the attempt
	Job        bool   // probes cannot repeat jobs
}

// sample is the result of one attempt.
type sample struct {
	at        time.Time
	origin    Origin
	unproven  bool          // whether the request may have caused the failure
	separate  bool          // whether the failure does not count against the whole line
	success   float64       // 1 for an answer, 0 for a failure, 0.5 for half a failure
	firstByte time.Duration // time until the answer began; 0 without an answer
	cause     string        // cause of a failure
}

// Stats counts a line's attempts on this node and tracks the line's health. It is safe for
// concurrent use.
type Stats struct {
	// sound is true if the line is healthy, without doubts and without blocks. generation is a copy
	// of health.generation. Nearly all requests read both without the lock.
	sound      atomic.Bool
	generation atomic.Uint64
	doubtful   atomic.Bool // whether a doubt waits for a probe

	mu               sync.Mutex
	n                uint64 // number of attempts so far; the last recentAttempts of them are in ring
	ring             [recentAttempts]sample
	health           health
	halfOpenRequests int // number of running requests on a half-open line
}

// New returns the stats of a healthy line.
func New() *Stats {
	s := &Stats{}
	s.health.reset()
	s.health.usedByOthers = s.usedByOthers
	s.sound.Store(true)
	return s
}

// Sound reports whether the line is healthy, without doubts and without blocks.
func (s *Stats) Sound() bool { return s.sound.Load() }

// Generation returns the line's present generation. It increases with each change of state.
func (s *Stats) Generation() uint64 { return s.generation.Load() }

// SetServing sets the line's models and forms from the newest catalog.
func (s *Stats) SetServing(serving Serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health.serving = serving
}

// Admit admits a request, or returns the reason for refusing it. If reason is "", the request may
// begin, and its result belongs to the returned generation. A half-open line admits one request at
// a time and refuses others with StateHalfOpen, unless the line is their last resort. If isHalfOpen
// is true, the caller must call EndHalfOpen. An open circuit is half-open for exempt accounts. As a
// last resort, exempt accounts also ignore an explicit pause.
func (s *Stats) Admit(now func() time.Time, origin Origin, lastResort bool) (reason string, generation uint64, isHalfOpen bool) {
	if generation = s.generation.Load(); s.sound.Load() {
		return "", generation, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reason, exclusive := s.health.admit(now(), origin, lastResort)
	s.publish()
	switch {
	case reason != "":
		return reason, 0, false
	case !exclusive:
		return "", s.health.generation, false
	case s.halfOpenRequests > 0 && !lastResort:
		return StateHalfOpen, 0, false
	}
	s.halfOpenRequests++
	return "", s.health.generation, true
}

// Lacks grades the line's support for a request in its form.
func (s *Stats) Lacks(origin Origin) Lack {
	if s.sound.Load() {
		return LacksNothing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health.lacks(origin)
}

// publish updates sound, generation and doubtful. The caller must hold mu.
func (s *Stats) publish() {
	s.generation.Store(s.health.generation)
	sound := len(s.health.doubts) == 0
	for _, sub := range s.health.subjects {
		sound = sound && sub.state == healthy
	}
	s.sound.Store(sound)
	s.doubtful.Store(s.health.doubtful())
}

// Doubtful reports whether a part of the line waits for a probe.
func (s *Stats) Doubtful() bool { return s.doubtful.Load() }

// Wait returns the time until the next request for the model or the next probe, or 0 if the line
// takes requests for the model.
func (s *Stats) Wait(now time.Time, model string) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.health.subjectsOf(LinePart{Model: model}) {
		wait = max(wait, sub.probeWait(now))
	}
	return wait
}

// Outage describes why a line refuses a request.
type Outage struct {
	Cause     string        // the cause of the line's or part's state
	Wait      time.Duration // time until the next request or probe; 0 if unknown
	Untrusted bool          // whether the line's certificate is invalid
}

// Outage describes why the line refuses a request now.
func (s *Stats) Outage(now time.Time, origin Origin) Outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.health.subjectsOf(origin.LinePart) {
		if sub.state != healthy && (!sub.reporters.exempt(origin.Account) || sub.explicit) {
			return Outage{Cause: sub.cause, Wait: sub.probeWait(now), Untrusted: sub.untrusted}
		}
	}
	return Outage{Cause: s.health.line.cause}
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
	s.publish()
	return changes
}

// Clear removes all blocks from the line and returns the messages for the operator.
func (s *Stats) Clear(now time.Time) []Change {
	return s.change(func(h *health) []Change { return h.clear(now) })
}

// Probe is the target of a probe. If Form is empty, the probe may use any form of the model.
type Probe struct {
	LinePart
	LastForm wire.Form // the form of the model's last answer, or empty
	Number   int       // number of earlier probes, so that probes rotate
}

// Probes lists the due probes of a line.
type Probes struct {
	Whole      *Probe   // for the whole line, with the part of the last answer, or nil
	Parts      []Probe  // parts out of service
	Doubts     []Probe  // the parts in doubt
	LastAnswer LinePart // the part of the line's last answer; zero before the first
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

// RecordProbe records a probe of the whole line. generation is the line's generation when the probe
// began; f is nil if the line answered.
func (s *Stats) RecordProbe(now time.Time, generation uint64, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.recordProbe(now, generation, f) })
}

// RecordPartProbe records a probe of a part out of service.
func (s *Stats) RecordPartProbe(now time.Time, part LinePart, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.recordPartProbe(now, part, f) })
}

// RecordDoubtProbe records a probe of a doubtful part. generation is the line's generation when the
// probe began, and form is the form of the probe.
func (s *Stats) RecordDoubtProbe(now time.Time, generation uint64, part LinePart, form wire.Form, f *upstream.Failure) []Change {
	return s.change(func(h *health) []Change { return h.recordDoubtProbe(now, generation, part, form, f) })
}

// RecordAnswer records the beginning of an answer and returns the number of its sample.
func (s *Stats) RecordAnswer(now time.Time, origin Origin, firstByte time.Duration) (n uint64, changes []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.add(sample{at: now, origin: origin, success: 1, firstByte: max(firstByte, 1)})
	if changes = s.health.recordAnswer(now, origin); changes != nil || s.health.generation != s.generation.Load() {
		s.publish()
	}
	return n, changes
}

// RecordFailure records a failed attempt.
func (s *Stats) RecordFailure(now time.Time, origin Origin, f *upstream.Failure) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Health != upstream.HealthNone && f.Rejection == nil {
		o := sample{at: now, origin: origin}
		o.fail(f, s.health.isBlamed(now, origin.Account))
		s.add(o)
	}
	return s.applyFailure(now, origin, f)
}

// RecordBreak turns the recorded answer n into a failure.
func (s *Stats) RecordBreak(now time.Time, origin Origin, n uint64, f *upstream.Failure) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n+recentAttempts >= s.n {
		s.ring[n%recentAttempts].fail(f, s.health.isBlamed(now, origin.Account))
	}
	return s.applyFailure(now, origin, f)
}

// fail turns a sample into a failure. blamed is true if the account's failures are attributed to its
// own requests.
func (o *sample) fail(f *upstream.Failure, blamed bool) {
	o.success, o.cause, o.unproven = successOf(f.Health), f.Error(), f.Unproven || blamed
	switch f.Health {
	case upstream.HealthCool, upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		o.separate = true
	}
}

// applyFailure applies a failure to the line's health. The caller must hold mu.
func (s *Stats) applyFailure(now time.Time, origin Origin, f *upstream.Failure) []Change {
	changes := s.health.recordFailure(now, origin, f, func() (failureSum, int) { return s.recent(now) })
	s.publish()
	return changes
}

// add records a sample and returns its number. The caller must hold mu.
func (s *Stats) add(o sample) uint64 {
	n := s.n
	s.ring[n%recentAttempts] = o
	s.n++
	return n
}

// recent counts the attempts of the last tripTime that began in the line's present state, and adds up
// their failures. The caller must hold mu.
func (s *Stats) recent(now time.Time) (fails failureSum, attempts int) {
	for i := range min(s.n, recentAttempts) {
		if o := &s.ring[i]; !o.separate && o.origin.Generation >= s.health.line.began && now.Sub(o.at) <= tripTime {
			fails.add(o.origin.Account, 1-o.success, o.unproven)
			attempts++
		}
	}
	return fails, attempts
}

// usedByOthers reports whether accounts other than those of r used the line within recentTime. The
// caller must hold mu.
func (s *Stats) usedByOthers(now time.Time, r *reporters) bool {
	for i := range min(s.n, recentAttempts) {
		if o := &s.ring[i]; !r.accounts[o.origin.Account] && now.Sub(o.at) <= recentTime {
			return true
		}
	}
	return false
}

// successOf returns the success of a failed attempt with the effect h.
func successOf(h upstream.Health) float64 {
	if h == upstream.HealthHalf {
		return 0.5
	}
	return 0
}
