// Package health owns the health of one line on one node: its recent attempts, the circuit,
// rate-limit pauses, the models and forms out of service, and the probes.
//
// Invariants:
//   - A failure or answer changes the state of a line, or of a part, only if the attempt began
//     after the state began.
//   - A block caused by requests applies only to the accounts of these requests, however many
//     accounts there are. It applies to all accounts only after the gateway's own probe fails in
//     the same way (reporters).
//   - A line or part out of service returns after a successful probe, an answer for another
//     account, or the operator's command.
//   - The line and each of its parts is a subject, and all subjects have the same state machine. The
//     state machine uses neither locks nor clocks; Stats has the lock.
package health

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// The rules of a line's health (docs/operator.md, Lines).
const (
	// tripStreak failures in a row open the circuit. So do tripCount failures if they are at least
	// tripShare of the recent attempts. A half failure counts half.
	tripStreak = 5.0
	tripCount  = 5.0
	tripShare  = 0.2
	tripTime   = time.Minute // maximum age of recent attempts

	// The first probe of an open circuit comes after openWait, and the wait doubles up to
	// maxOpenWait. If the circuit opens again within openAgain after the line returned, the wait
	// continues from its last length.
	openWait    = 30 * time.Second
	maxOpenWait = 10 * time.Minute
	openAgain   = 5 * time.Minute
	// halfOpenAnswers good answers in a row close the circuit after a successful probe.
	halfOpenAnswers = 3

	// A rate limit cools the line for the time in Retry-After, at most maxRetryAfter. Without a
	// Retry-After, the time is minCool and doubles each time up to maxCool.
	maxRetryAfter = time.Minute
	minCool       = 5 * time.Second
	maxCool       = 30 * time.Second

	// Withdrawn credentials and missing models are probed after accountWait. The wait doubles up to
	// maxAccountWait.
	accountWait    = 5 * time.Minute
	maxAccountWait = time.Hour
)

// Serving describes a line's models and forms to its health.
type Serving struct {
	Models, Forms int  // number of models and forms
	Unprobeable   bool // whether no model of the line can be probed
}

// health is the state machine of one line on one node. Stats owns it.
type health struct {
	serving    Serving
	subjects   map[LinePart]*subject // the line, and the parts with a state
	line       *subject              // the subject of the whole line, also in subjects
	returnedAt time.Time             // time of the line's last return to service
	streak     failureSum            // the line's failures since the last answer
	// blamed holds accounts with failures refuted by a probe or another account's answer. Until the
	// given time, an account's failures are attributed to its own requests.
	blamed map[string]time.Time

	// generation grows with each change of the state of the line or a part.
	generation uint64

	// usedByOthers reports whether accounts besides r used the line within recentTime. If nil, this
	// is unknown.
	usedByOthers func(now time.Time, r *reporters) bool

	doubts     map[LinePart]*doubt
	lastAnswer lastAnswer
}

// reset makes the line healthy, without parts and doubts.
func (h *health) reset() {
	*h = health{generation: h.generation, serving: h.serving, lastAnswer: h.lastAnswer, usedByOthers: h.usedByOthers,
		line: &subject{}}
	h.subjects = map[LinePart]*subject{{}: h.line}
}

// lastAnswer holds the model and forms of the last answers, for probes.
type lastAnswer struct {
	model string
	forms map[string]wire.Form // by model
}

// record records the model and form of an answer.
func (a *lastAnswer) record(origin Origin) {
	if origin.Form == "" || a.model == origin.Model && a.forms[origin.Model] == origin.Form {
		return
	}
	if a.forms == nil {
		a.forms = map[string]wire.Form{}
	}
	a.model, a.forms[origin.Model] = origin.Model, origin.Form
}

// Change is a message to the operator that a line, or a part of it, went out of service or
// returned.
type Change struct {
	Model string    // empty for the whole line
	Form  wire.Form // all forms if empty
	Tools bool      // only for requests with tools
	State string
	Cause string
}

// admit returns the reason for refusing a request, or "". If exclusive is true, the request must be
// the only one on the line, unless the line is its last resort.
func (h *health) admit(now time.Time, origin Origin, lastResort bool) (reason string, exclusive bool) {
	h.endPauses(now)
	for s := range h.subjectsOf(origin.LinePart) {
		if s.refuses(origin.Account, lastResort) {
			return s.state.name(s.part), false
		}
	}
	return "", h.line.state >= halfOpen
}

// recordAnswer records an answer.
func (h *health) recordAnswer(now time.Time, origin Origin) (changes []Change) {
	h.lastAnswer.record(origin)
	if origin.Generation >= h.line.began {
		h.streak = failureSum{}
	}
	for s := range h.subjectsOf(origin.LinePart) {
		if origin.Generation >= s.began {
			changes = append(changes, h.applyAnswer(now, s)...)
		}
	}
	return changes
}

// blame attributes the failures of the accounts in r to their own requests, for doubtAgain.
func (h *health) blame(now time.Time, r reporters) {
	maps.DeleteFunc(h.blamed, func(_ string, until time.Time) bool { return !now.Before(until) })
	for account := range r.accounts {
		if h.blamed == nil {
			h.blamed = map[string]time.Time{}
		}
		if len(h.blamed) < maxReporters {
			h.blamed[account] = now.Add(doubtAgain)
		}
	}
}

// isBlamed reports whether an account's failures are attributed to its own requests.
func (h *health) isBlamed(now time.Time, account string) bool {
	until, refuted := h.blamed[account]
	return refuted && now.Before(until)
}

// announceLine returns the message to the operator about a line out of service. It returns nil unless
// the line is out for all accounts or no probe can decide.
func (h *health) announceLine(now time.Time) []Change {
	if !h.line.reporters.confirmed && !h.unverifiable(now) {
		return nil
	}
	return h.line.announce()
}

// unverifiable reports whether the line is out although no probe can confirm it. It returns false
// if only one account had the failures and other accounts use the line too.
func (h *health) unverifiable(now time.Time) bool {
	return h.serving.Unprobeable &&
		(h.line.state == credentialsOut || len(h.line.reporters.accounts) > 1 || h.usedByOthers == nil || !h.usedByOthers(now, &h.line.reporters))
}

// restrict applies the line's present state to the accounts in r. A probe decides about other accounts.
func (h *health) restrict(now time.Time, origin Origin, r reporters) []Change {
	h.line.reporters = r
	h.verify(h.line, origin)
	return h.announceLine(now)
}

// recordFailure records a failed attempt. recent returns the failures and the number of attempts
// since the state began and within tripTime.
func (h *health) recordFailure(now time.Time, origin Origin, f *upstream.Failure, recent func() (fails failureSum,
	attempts int)) (changes []Change) {
	if origin.Generation < h.line.began {
		return nil
	}
	switch f.Health {
	case upstream.HealthNone:
		if f.Rejection != nil && f.Status != 0 { // a rejection by the provider shows that it works
			h.streak = failureSum{}
		}
	case upstream.HealthCool:
		return h.rateLimited(now, origin, f, recent)
	case upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		switch {
		case f.Unproven || !origin.Job && h.isBlamed(now, origin.Account):
			h.addDoubt(h.missingPart(origin, f), false)
		case f.Health == upstream.HealthCredential:
			return h.credentialsFailed(now, origin, f)
		default:
			return h.takeOut(now, h.missingPart(origin, f), origin, f)
		}
	case upstream.HealthFail, upstream.HealthHalf:
		changes = h.countFailure(now, origin, f, recent)
		h.line.untrusted = h.line.state == circuitOpen && f.Untrusted
	}
	return changes
}

// countFailure counts a failure. It opens the circuit after too many failures, unless the requests
// of a single account may have caused them. A probe then decides whether the circuit opens.
func (h *health) countFailure(now time.Time, origin Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	unproven := f.Unproven || h.isBlamed(now, origin.Account)
	if h.line.state >= circuitOpen { // an exempt account used the line
		if !unproven {
			h.line.reporters.add(origin.Account)
		}
		return h.announceLine(now)
	}
	h.streak.add(origin.Account, 1-successOf(f.Health), unproven)
	if h.line.state == halfOpen && !unproven && !h.line.reporters.accounts[origin.Account] {
		r := h.line.reporters
		r.add(origin.Account)
		return h.open(now, origin, r, f.Error())
	}
	if n := h.streak.lineFailures(); n >= tripStreak {
		return h.open(now, origin, h.streak.reporters(), fmt.Sprintf("%g failures in a row; the last: %v", n, f))
	}
	fails, attempts := recent()
	if n := fails.lineFailures(); trips(n, attempts) {
		return h.open(now, origin, fails.reporters(), fmt.Sprintf("%g of the last %d attempts failed; the last: %v", n, attempts, f))
	}
	if unproven && !origin.Job && (h.streak.total() >= doubtStreak || trips(fails.total(), attempts)) {
		h.addDoubt(LinePart{Model: origin.Model, Form: origin.Form}, true)
	}
	return nil
}

// trips reports whether the failures among the recent attempts open the circuit.
func trips(fails float64, attempts int) bool {
	return fails >= tripCount && fails >= tripShare*float64(attempts)
}

// open opens the circuit for the accounts in r.
func (h *health) open(now time.Time, origin Origin, r reporters, cause string) []Change {
	again := h.line.state == halfOpen || h.line.state == circuitOpen
	switch {
	case h.line.wait == 0 || !again && now.Sub(h.returnedAt) >= openAgain:
		h.line.wait = openWait
	default:
		h.line.wait = min(2*h.line.wait, maxOpenWait)
	}
	h.enter(circuitOpen, now, h.line.wait, cause)
	return h.restrict(now, origin, r)
}

// credentialsFailed takes the line out of service after the provider refused its credential.
func (h *health) credentialsFailed(now time.Time, origin Origin, f *upstream.Failure) []Change {
	if h.line.state == credentialsOut {
		if h.line.reporters.add(origin.Account); h.line.reporters.confirmed {
			h.line.until = now.Add(h.line.wait)
		}
		return h.announceLine(now)
	}
	h.line.wait = accountWait
	h.enter(credentialsOut, now, h.line.wait, f.Error())
	return h.restrict(now, origin, reportedBy(origin.Account))
}

// clear brings the line back into service and removes all blocks. The first message is about the line.
func (h *health) clear(now time.Time) (changes []Change) {
	for _, part := range slices.SortedFunc(maps.Keys(h.subjects), LinePart.compare) {
		if h.subjects[part].announced != healthy {
			changes = append(changes, part.newChange(StateInService, ""))
		}
	}
	h.reset()
	h.enter(healthy, now, 0, "")
	h.returnedAt = now
	return changes
}

// due returns the due probes and marks them as running. Parts are probed after the line is back.
func (h *health) due(now time.Time) (p Probes) {
	h.endPauses(now)
	p.Generation, p.LastAnswer = h.generation, LinePart{Model: h.lastAnswer.model, Form: h.lastAnswer.forms[h.lastAnswer.model]}
	if h.line.isDecided(h.serving.Unprobeable) {
		if h.isDue(now, h.line) {
			p.Whole = &Probe{LinePart: p.LastAnswer, Number: h.line.beginProbe()}
		}
		return p
	}
	for part, s := range h.subjects {
		if h.isDue(now, s) {
			p.Parts = append(p.Parts, Probe{LinePart: part, Number: s.beginProbe(), LastForm: h.lastAnswer.forms[part.Model]})
		}
	}
	p.Doubts = h.dueDoubts(now)
	return p
}

// recordProbe records a probe of the whole line. generation is the line's generation at the start
// of the probe; f is nil if the line answered.
func (h *health) recordProbe(now time.Time, generation uint64, f *upstream.Failure) []Change {
	s := h.line
	switch {
	case generation < s.began:
	case f == nil:
		if s.state == credentialsOut {
			s.wait = 0
		}
		accounts := s.reporters.accounts
		h.enter(halfOpen, now, 0, s.cause)
		s.reporters.accounts = accounts // countFailure checks them while the line is half-open
	case f.Health == upstream.HealthCredential && s.state != credentialsOut:
		return h.credentialsFailed(now, Origin{}, f)
	default:
		s.postponeProbe(now, f)
	}
	return nil
}

// recordPartProbe records a probe of a part out of service.
func (h *health) recordPartProbe(now time.Time, part LinePart, f *upstream.Failure) []Change {
	switch s := h.subjects[part]; {
	case s == nil || !s.probing:
	case f == nil:
		return h.restore(now, s)
	default:
		s.postponeProbe(now, f)
	}
	return nil
}
