// Package health owns the health of one line on one node: its recent attempts, the circuit,
// rate-limit pauses, the models and forms out of service, and the probes.
//
// Invariants:
//   - A failure or answer changes the state of a line, or of a part, only if its attempt began
//     after the state did.
//   - A block caused by requests applies only to the accounts of these requests, however many
//     accounts there are. It applies to all accounts only after the gateway's own probe fails in
//     the same way (reporters).
//   - A line or part out of service returns after a successful probe, an answer for another
//     account, or the operator's command.
//   - The state machine (health, doubt) decides and uses neither locks nor clocks; Stats locks.
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
	// tripStreak failures in a row open the circuit, and so do tripCount of the recent attempts if
	// they are tripShare of all of them. A half failure counts half.
	tripStreak = 5.0
	tripCount  = 5.0
	tripShare  = 0.2
	tripTime   = time.Minute // maximum age of recent attempts

	// The first probe of an open circuit comes after openWait, and the wait doubles up to
	// maxOpenWait. If the circuit opens again within openAgain of its last return, the wait continues
	// from its last length.
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
	halfOpen       // a probe succeeded: one request at a time, if other lines can take the rest
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
	Unprobed      bool // whether no model of the line can be probed
}

// health is the health of one line on one node. Its methods decide and use neither locks nor
// clocks; Stats owns it.
type health struct {
	serving  Serving
	state    state
	until    time.Time // the end of a pause, or the next probe
	since    time.Time // when the state began
	cause    string
	wait     time.Duration // time between probes
	returned time.Time     // time of the line's last return to service
	streak   failureSum    // failures since the last answer
	limits   limits
	good     int   // number of answers in the half-open state
	after    state // the state after cooling: healthy, or half-open
	probing  bool
	probes   int // number of probes of the whole line so far

	// reporters holds the accounts to which the present state applies.
	reporters reporters
	// probePart is the part to probe for the decision about reporters.
	probePart LinePart
	// explicit is true if the provider specified the length of a pause. Exempt accounts then use
	// the line only as a last resort.
	explicit bool
	// private is true for a pause that a probe did not confirm: it applies to its reporters only.
	private bool
	// untrusted is true if an invalid certificate opened the circuit.
	untrusted bool
	// announced is the state in the last message to the operator, or healthy if the operator last
	// read that the line is in service.
	announced state
	// blamed holds accounts with failures that a probe, or another account, did not have. Until the
	// given time, further failures are attributed to their requests.
	blamed map[string]time.Time

	// generation grows with each change of the line's state or of a part's state. began is the
	// generation of the present state; attempts from before it do not count.
	generation, began uint64

	// usedByOthers reports whether other accounts used the line within recentTime. If nil,
	// this is unknown.
	usedByOthers func(now time.Time, by *reporters) bool

	parts      map[LinePart]*block // the blocks on parts of the line
	doubts     map[LinePart]*doubt
	lastAnswer lastAnswer
}

// lastAnswer holds the model and forms of the last answers, for probes.
type lastAnswer struct {
	model string
	forms map[string]wire.Form // by model
}

// note records the model and form of an answer.
func (w *lastAnswer) note(q Origin) {
	if q.Form == "" || w.model == q.Model && w.forms[q.Model] == q.Form {
		return
	}
	if w.forms == nil {
		w.forms = map[string]wire.Form{}
	}
	w.model, w.forms[q.Model] = q.Model, q.Form
}

// Change is a message to the operator that a line, or a part of it, went out of service or
// returned.
type Change struct {
	Model string    // empty for the whole line
	Form  wire.Form // all forms if empty
	Tools bool      // requests with tools alone
	State string
	Cause string
}

// transition begins a state and keeps the streak of failures.
func (h *health) transition(to state, now time.Time, wait time.Duration, cause string) {
	h.state, h.since, h.until, h.cause = to, now, now.Add(wait), cause
	h.good, h.probing, h.reporters, h.probePart = 0, false, reporters{}, LinePart{}
	h.explicit, h.private, h.untrusted = false, false, false
	h.generation++
	h.began = h.generation
}

// enter begins a state and a new streak of failures.
func (h *health) enter(to state, now time.Time, wait time.Duration, cause string) {
	h.transition(to, now, wait, cause)
	h.streak = failureSum{}
}

// refuses returns the reason why the line refuses a request, or "". If alone is true, the request
// must be the only one on the line, unless the line is its last resort.
func (h *health) refuses(now time.Time, q Origin, lastResort bool) (why string, alone bool) {
	h.endPauses(now)
	switch h.state {
	case cooling, circuitOpen, credentialsOut:
		if !h.reporters.exempt(q.Account) || h.explicit && !lastResort {
			return h.state.name(), false
		}
		alone = h.state != cooling
	case halfOpen:
		alone = true
	}
	return h.refusesPart(q, lastResort), alone
}

// recordAnswer records an answer.
func (h *health) recordAnswer(now time.Time, q Origin) (changes []Change) {
	h.lastAnswer.note(q)
	changes = h.answeredPart(now, q)
	if q.Generation < h.began {
		return changes
	}
	h.streak = failureSum{}
	h.limits.n = 0
	switch h.state {
	case halfOpen:
		if h.good++; h.good >= halfOpenAnswers {
			changes = append(changes, h.restore(now)...)
		}
	case cooling: // the account was exempt from the pause
		h.limits.recordAnswer(h.reporters)
		h.transition(h.after, now, 0, "")
	case circuitOpen, credentialsOut:
		changes = append(changes, h.dismiss(now)...)
	}
	return changes
}

// dismiss brings the line back into service after an answer to a probe or to another account, which
// shows that the reporters' own requests caused their failures.
func (h *health) dismiss(now time.Time) []Change {
	h.blame(now, h.reporters)
	h.wait = 0
	return h.restore(now)
}

// blame attributes the failures of some accounts to their own requests, for doubtAgain.
func (h *health) blame(now time.Time, by reporters) {
	maps.DeleteFunc(h.blamed, func(_ string, until time.Time) bool { return !now.Before(until) })
	for account := range by.accounts {
		if h.blamed == nil {
			h.blamed = map[string]time.Time{}
		}
		if len(h.blamed) < maxReporters {
			h.blamed[account] = now.Add(doubtAgain)
		}
	}
}

// blames reports whether an account's failures are attributed to its own requests.
func (h *health) blames(now time.Time, account string) bool {
	until, refuted := h.blamed[account]
	return refuted && now.Before(until)
}

// restore brings the line back into service.
func (h *health) restore(now time.Time) (changes []Change) {
	h.enter(healthy, now, 0, "")
	h.returned = now
	if h.announced != healthy {
		changes = []Change{{State: StateInService}}
	}
	h.announced = healthy
	return changes
}

// announce returns the message to the operator about a line out of service, once for each state,
// and only if the line is out for all accounts or no probe can decide.
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
	return h.serving.Unprobed &&
		(h.state == credentialsOut || len(h.reporters.accounts) > 1 || h.usedByOthers == nil || !h.usedByOthers(now, &h.reporters))
}

// restrict applies the present state to some accounts. A probe decides about the others.
func (h *health) restrict(now time.Time, q Origin, by reporters) []Change {
	h.reporters = by
	h.verify(q)
	return h.announce(now)
}

// verify requests a probe to confirm the present state for all accounts.
func (h *health) verify(q Origin) {
	if h.reporters.confirmed {
		return
	}
	h.probePart = LinePart{Model: q.Model, Form: q.Form}
	if q.Job { // no probe can repeat a job
		h.probePart = LinePart{Model: h.lastAnswer.model, Form: h.lastAnswer.forms[h.lastAnswer.model]}
	}
	h.addUrgentDoubt(h.probePart, h.state == circuitOpen)
}

// recordFailure records a failed attempt. recent returns the failures and the number of attempts
// since the state began and within tripTime.
func (h *health) recordFailure(now time.Time, q Origin, f *upstream.Failure, recent func() (fails failureSum,
	attempts int)) (changes []Change) {
	if q.Generation < h.began {
		return nil
	}
	switch f.Health {
	case upstream.HealthNone:
		if f.Rejection != nil { // a rejection shows that the provider works
			h.streak = failureSum{}
		}
	case upstream.HealthCool:
		return h.rateLimited(now, q, f, recent)
	case upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		switch {
		case f.Unproven || !q.Job && h.blames(now, q.Account):
			h.addDoubt(h.missingPart(q, f), false)
		case f.Health == upstream.HealthCredential:
			return h.credentialsFailed(now, q, f)
		default:
			return h.takeOut(now, h.missingPart(q, f), q, f)
		}
	case upstream.HealthFail, upstream.HealthHalf:
		changes = h.count(now, q, f, recent)
		h.untrusted = h.state == circuitOpen && f.Untrusted
	}
	return changes
}

// count counts a failure. It opens the circuit after too many failures, unless the requests of a
// single account may have caused them. A probe then decides whether the circuit is open for all
// accounts.
func (h *health) count(now time.Time, q Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	unproven := f.Unproven || h.blames(now, q.Account)
	if h.state >= circuitOpen { // an exempt account used the line
		if !unproven {
			h.reporters.add(q.Account)
		}
		return h.announce(now)
	}
	h.streak.add(q.Account, 1-successOf(f.Health), unproven)
	if h.state == halfOpen && !unproven && !h.reporters.accounts[q.Account] {
		by := h.reporters
		by.add(q.Account)
		return h.open(now, q, by, f.Error())
	}
	if n := h.streak.counted(); n >= tripStreak {
		return h.open(now, q, h.streak.reporters(), fmt.Sprintf("%g failures in a row; the last: %v", n, f))
	}
	fails, attempts := recent()
	if n := fails.counted(); trips(n, attempts) {
		return h.open(now, q, fails.reporters(), fmt.Sprintf("%g of the last %d attempts failed; the last: %v", n, attempts, f))
	}
	if unproven && !q.Job && (h.streak.total() >= doubtStreak || trips(fails.total(), attempts)) {
		h.addDoubt(LinePart{Model: q.Model, Form: q.Form}, true)
	}
	return nil
}

// trips reports whether the failures among the recent attempts open the circuit.
func trips(fails float64, attempts int) bool {
	return fails >= tripCount && fails >= tripShare*float64(attempts)
}

// open opens the circuit for some accounts.
func (h *health) open(now time.Time, q Origin, by reporters, cause string) []Change {
	again := h.state == halfOpen || h.state == circuitOpen
	switch {
	case h.wait == 0 || !again && now.Sub(h.returned) >= openAgain:
		h.wait = openWait
	default:
		h.wait = min(2*h.wait, maxOpenWait)
	}
	h.enter(circuitOpen, now, h.wait, cause)
	return h.restrict(now, q, by)
}

// credentialsFailed takes the line out because its credential or account does not work.
func (h *health) credentialsFailed(now time.Time, q Origin, f *upstream.Failure) []Change {
	if h.state == credentialsOut {
		if h.reporters.add(q.Account); h.reporters.confirmed {
			h.until = now.Add(h.wait)
		}
		return h.announce(now)
	}
	h.wait = accountWait
	h.enter(credentialsOut, now, h.wait, f.Error())
	return h.restrict(now, q, reportedBy(q.Account))
}

// clear brings the line back into service and removes all blocks.
func (h *health) clear(now time.Time) (changes []Change) {
	if h.announced != healthy {
		changes = append(changes, Change{State: StateInService})
	}
	for part, p := range h.parts {
		if p.out && p.announced {
			changes = append(changes, part.change(StateInService, ""))
		}
	}
	*h = health{generation: h.generation, serving: h.serving, lastAnswer: h.lastAnswer, usedByOthers: h.usedByOthers}
	h.enter(healthy, now, 0, "")
	h.returned = now
	return changes
}

// due returns the due probes and marks them as running.
func (h *health) due(now time.Time) (p Probes) {
	h.endPauses(now)
	p.Generation, p.LastAnswer = h.generation, LinePart{Model: h.lastAnswer.model, Form: h.lastAnswer.forms[h.lastAnswer.model]}
	if h.state >= circuitOpen && (h.reporters.confirmed || h.serving.Unprobed) {
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
			p.Parts = append(p.Parts, Probe{LinePart: part, Number: block.probes, Last: h.lastAnswer.forms[part.Model]})
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
		by := h.reporters
		h.enter(halfOpen, now, 0, h.cause)
		h.reporters.accounts = by.accounts // kept for a line without probes: the accounts with failures
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
