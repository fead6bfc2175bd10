// Package health owns the health of one line on one node: its recent attempts, the circuit,
// rate-limit pauses, the models and forms out of service, and the probes.
//
// Invariants:
//   - A failure or answer changes the state of a line, or of a part, only if the attempt began
//     after the state did.
//   - A block caused by requests applies only to the accounts of these requests, however many
//     accounts there are. It applies to all accounts only after the gateway's own probe fails in
//     the same way (reporters).
//   - A line or part out of service returns after a successful probe, an answer for another
//     account, or the operator's command.
//   - The state machine (health, doubt, block) uses neither locks nor clocks. Stats locks.
package health

import (
	"fmt"
	"maps"
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

// state is the state of a line; it decides whether requests may use the line.
type state int

// The states, from best to worst.
const (
	healthy  state = iota
	cooling        // after a rate limit, until a time
	halfOpen       // after a successful probe: one request at a time, if other lines can take the rest
	circuitOpen
	credentialsOut
)

// name returns the name of the state in Summary.State.
func (s state) name() string {
	switch s {
	case cooling:
		return StateCooling
	case halfOpen:
		return StateHalfOpen
	case circuitOpen:
		return StateCircuitOpen
	case credentialsOut:
		return StateCredentialsOut
	default:
		return StateInService
	}
}

// Serving describes a line's models and forms to its health.
type Serving struct {
	Models, Forms int  // number of models and forms
	Unprobeable   bool // whether no model of the line can be probed
}

// health is the state machine of one line on one node. Stats owns it.
type health struct {
	serving    Serving
	state      state
	until      time.Time // the end of a pause, or the time of the next probe
	since      time.Time // when the state began
	cause      string
	wait       time.Duration // time between probes
	returnedAt time.Time     // time of the line's last return to service
	streak     failureSum    // failures since the last answer
	limits     limits
	answers    int   // number of answers in the half-open state
	afterPause state // the state after cooling: healthy, or half-open
	probing    bool
	probes     int // number of probes of the whole line so far

	// reporters holds the accounts to which the present state applies.
	reporters reporters
	// probePart is the part to probe for the decision about reporters.
	probePart LinePart
	// explicit is true if the provider specified the length of a pause. Exempt accounts then use
	// the line only as a last resort.
	explicit bool
	// private is true for a pause that a probe refuted, so that it applies only to its reporters.
	private bool
	// untrusted is true if an invalid certificate opened the circuit.
	untrusted bool
	// announced is the state in the last message to the operator.
	announced state
	// blamed holds accounts with failures refuted by a probe or another account's answer. Until the
	// given time, an account's failures are attributed to its own requests.
	blamed map[string]time.Time

	// generation grows with each change of the line's state or of a part's state. began is the
	// generation of the present state. Attempts of earlier generations do not count.
	generation, began uint64

	// usedByOthers reports whether accounts besides r used the line within recentTime. If nil, this
	// is unknown.
	usedByOthers func(now time.Time, r *reporters) bool

	parts      map[LinePart]*block // the blocks on parts of the line
	doubts     map[LinePart]*doubt
	lastAnswer lastAnswer
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

// transition begins a state and keeps the streak of failures.
func (h *health) transition(next state, now time.Time, wait time.Duration, cause string) {
	h.state, h.since, h.until, h.cause = next, now, now.Add(wait), cause
	h.answers, h.probing, h.reporters, h.probePart = 0, false, reporters{}, LinePart{}
	h.explicit, h.private, h.untrusted = false, false, false
	h.generation++
	h.began = h.generation
}

// enter begins a state and a new streak of failures.
func (h *health) enter(next state, now time.Time, wait time.Duration, cause string) {
	h.transition(next, now, wait, cause)
	h.streak = failureSum{}
}

// admit returns the reason for refusing a request, or "". If exclusive is true, the request must be
// the only one on the line, unless the line is its last resort.
func (h *health) admit(now time.Time, origin Origin, lastResort bool) (reason string, exclusive bool) {
	h.endPauses(now)
	switch h.state {
	case cooling, circuitOpen, credentialsOut:
		if !h.reporters.exempt(origin.Account) || h.explicit && !lastResort {
			return h.state.name(), false
		}
		exclusive = h.state != cooling
	case halfOpen:
		exclusive = true
	}
	return h.partRefusal(origin, lastResort), exclusive
}

// recordAnswer records an answer.
func (h *health) recordAnswer(now time.Time, origin Origin) (changes []Change) {
	h.lastAnswer.record(origin)
	changes = h.liftParts(now, origin)
	if origin.Generation < h.began {
		return changes
	}
	h.streak = failureSum{}
	h.limits.n = 0
	switch h.state {
	case halfOpen:
		if h.answers++; h.answers >= halfOpenAnswers {
			changes = append(changes, h.restore(now)...)
		}
	case cooling: // the account was exempt from the pause
		h.limits.recordAnswer(h.reporters)
		h.transition(h.afterPause, now, 0, "")
	case circuitOpen, credentialsOut:
		changes = append(changes, h.dismiss(now)...)
	}
	return changes
}

// dismiss brings the line back into service after a probe or another account got an answer. The
// reporters' own requests then caused their failures.
func (h *health) dismiss(now time.Time) []Change {
	h.blame(now, h.reporters)
	h.wait = 0
	return h.restore(now)
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

// restore brings the line back into service.
func (h *health) restore(now time.Time) (changes []Change) {
	h.enter(healthy, now, 0, "")
	h.returnedAt = now
	if h.announced != healthy {
		changes = []Change{{State: StateInService}}
	}
	h.announced = healthy
	return changes
}

// announce returns the message to the operator about a line out of service. It does so once for
// each state, and only if the line is out for all accounts or no probe can decide.
func (h *health) announce(now time.Time) []Change {
	if h.announced == h.state || !h.reporters.confirmed && !h.unverifiable(now) {
		return nil
	}
	h.announced = h.state
	return []Change{{State: h.state.name(), Cause: h.cause}}
}

// unverifiable reports whether the line is out although no probe can confirm it. It returns false
// if only one account had the failures and other accounts use the line too.
func (h *health) unverifiable(now time.Time) bool {
	return h.serving.Unprobeable &&
		(h.state == credentialsOut || len(h.reporters.accounts) > 1 || h.usedByOthers == nil || !h.usedByOthers(now, &h.reporters))
}

// restrict applies the present state to the accounts in r. A probe decides about other accounts.
func (h *health) restrict(now time.Time, origin Origin, r reporters) []Change {
	h.reporters = r
	h.verify(origin)
	return h.announce(now)
}

// verify requests a probe to confirm the present state for all accounts.
func (h *health) verify(origin Origin) {
	if h.reporters.confirmed {
		return
	}
	h.probePart = LinePart{Model: origin.Model, Form: origin.Form}
	if origin.Job { // no probe can repeat a job
		h.probePart = LinePart{Model: h.lastAnswer.model, Form: h.lastAnswer.forms[h.lastAnswer.model]}
	}
	h.addUrgentDoubt(h.probePart, h.state == circuitOpen)
}

// recordFailure records a failed attempt. recent returns the failures and the number of attempts
// since the state began and within tripTime.
func (h *health) recordFailure(now time.Time, origin Origin, f *upstream.Failure, recent func() (fails failureSum,
	attempts int)) (changes []Change) {
	if origin.Generation < h.began {
		return nil
	}
	switch f.Health {
	case upstream.HealthNone:
		if f.Rejection != nil { // a rejection shows that the provider works
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
		h.untrusted = h.state == circuitOpen && f.Untrusted
	}
	return changes
}

// countFailure counts a failure. It opens the circuit after too many failures, unless the requests
// of a single account may have caused them. A probe then decides whether the circuit opens.
func (h *health) countFailure(now time.Time, origin Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	unproven := f.Unproven || h.isBlamed(now, origin.Account)
	if h.state >= circuitOpen { // an exempt account used the line
		if !unproven {
			h.reporters.add(origin.Account)
		}
		return h.announce(now)
	}
	h.streak.add(origin.Account, 1-successOf(f.Health), unproven)
	if h.state == halfOpen && !unproven && !h.reporters.accounts[origin.Account] {
		r := h.reporters
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
	again := h.state == halfOpen || h.state == circuitOpen
	switch {
	case h.wait == 0 || !again && now.Sub(h.returnedAt) >= openAgain:
		h.wait = openWait
	default:
		h.wait = min(2*h.wait, maxOpenWait)
	}
	h.enter(circuitOpen, now, h.wait, cause)
	return h.restrict(now, origin, r)
}

// credentialsFailed takes the line out of service after the provider refused its credential.
func (h *health) credentialsFailed(now time.Time, origin Origin, f *upstream.Failure) []Change {
	if h.state == credentialsOut {
		if h.reporters.add(origin.Account); h.reporters.confirmed {
			h.until = now.Add(h.wait)
		}
		return h.announce(now)
	}
	h.wait = accountWait
	h.enter(credentialsOut, now, h.wait, f.Error())
	return h.restrict(now, origin, reportedBy(origin.Account))
}

// clear brings the line back into service and removes all blocks.
func (h *health) clear(now time.Time) (changes []Change) {
	if h.announced != healthy {
		changes = append(changes, Change{State: StateInService})
	}
	for part, p := range h.parts {
		if p.out && p.announced {
			changes = append(changes, part.newChange(StateInService, ""))
		}
	}
	*h = health{generation: h.generation, serving: h.serving, lastAnswer: h.lastAnswer, usedByOthers: h.usedByOthers}
	h.enter(healthy, now, 0, "")
	h.returnedAt = now
	return changes
}

// due returns the due probes and marks them as running.
func (h *health) due(now time.Time) (p Probes) {
	h.endPauses(now)
	p.Generation, p.LastAnswer = h.generation, LinePart{Model: h.lastAnswer.model, Form: h.lastAnswer.forms[h.lastAnswer.model]}
	if h.state >= circuitOpen && (h.reporters.confirmed || h.serving.Unprobeable) {
		if h.probing || now.Before(h.until) {
			return p
		}
		h.probing = true
		p.Whole = &Probe{LinePart: p.LastAnswer, Number: h.probes}
		h.probes++
		return p // parts are probed after the line is back
	}
	for part, block := range h.parts {
		if block.dueAt(now) {
			block.probing = true
			p.Parts = append(p.Parts, Probe{LinePart: part, Number: block.probes, LastForm: h.lastAnswer.forms[part.Model]})
		}
	}
	p.Doubts = h.dueDoubts(now)
	return p
}

// recordProbe records a probe of the whole line. generation is the line's generation at the start
// of the probe; f is nil if the line answered.
func (h *health) recordProbe(now time.Time, generation uint64, f *upstream.Failure) []Change {
	if generation < h.began {
		return nil
	}
	switch {
	case f == nil:
		if h.state == credentialsOut {
			h.wait = 0
		}
		r := h.reporters
		h.enter(halfOpen, now, 0, h.cause)
		h.reporters.accounts = r.accounts // countFailure checks them while the line is half-open
	case f.Health == upstream.HealthCredential && h.state != credentialsOut:
		return h.credentialsFailed(now, Origin{}, f)
	default: // the state stays, so began keeps its value
		longest := maxOpenWait
		if h.state == credentialsOut {
			longest = maxAccountWait
		}
		h.wait = min(2*h.wait, longest)
		h.until, h.cause, h.probing = now.Add(max(h.wait, f.RetryAfter)), f.Error(), false
		h.reporters.confirm()
	}
	return nil
}
