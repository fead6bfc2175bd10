// Package health owns the health of one line on one node: its recent attempts, the circuit,
// rate-limit pauses, the models and forms that are out, and the probes.
//
// Invariants:
//   - A failure or answer changes the state of a line, or of a part, only if its attempt began
//     after the state did.
//   - A hold that requests have caused applies only to the accounts of these requests, however many
//     accounts there are. It applies to all accounts only after the gateway's own probe meets the
//     same failure (reporters).
//   - A line or part that is out returns by a good probe, by another account's answer, or by the
//     operator's command.
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
	// tripStreak failures in a row open the circuit, and so do tripCount of the
	// recent attempts if they are tripShare of them. A half failure counts half.
	tripStreak = 5.0
	tripCount  = 5.0
	tripShare  = 0.2
	tripTime   = time.Minute // the age limit of the recent attempts

	// The first probe of an open circuit comes after openWait, and the wait doubles up to
	// maxOpenWait. If the circuit opens again within openAgain of its last return, the wait goes on
	// from its last length.
	openWait    = 30 * time.Second
	maxOpenWait = 10 * time.Minute
	openAgain   = 5 * time.Minute
	// halfOpenAnswers good answers in a row close the circuit after a good probe.
	halfOpenAnswers = 3

	// A rate limit cools the line for as long as the provider asks, at most
	// maxRetryAfter, else for minCool and twice as long each time up to maxCool.
	maxRetryAfter = time.Minute
	minCool       = 5 * time.Second
	maxCool       = 30 * time.Second

	// Withdrawn credentials and missing models are probed after accountWait,
	// then after twice as long, up to maxAccountWait.
	accountWait    = 5 * time.Minute
	maxAccountWait = time.Hour
)

// state is the state of a line; it decides whether requests may use the line.
type state int

// The states, from good to bad.
const (
	healthy  state = iota
	cooling        // until a time, after a rate limit
	halfOpen       // a probe went well: one request at a time, if others can take the rest
	circuitOpen
	credentialsOut
)

// word returns the name of the state in Summary.State.
func (s state) word() string {
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
	Models, Forms int  // how many
	Unprobed      bool // no model of the line can be probed
}

// health is the state of one line on one node. Its methods decide and use neither locks nor clocks;
// Stats owns it.
type health struct {
	serving  Serving
	state    state
	until    time.Time // the end of a pause, or the next probe
	since    time.Time // when the state began
	cause    string
	wait     time.Duration // between probes
	returned time.Time     // when the line last came back into service
	streak   failureSum    // failures since the last answer
	limits   limits
	good     int   // answers in the half-open state
	after    state // the state after cooling: healthy, or half-open
	probing  bool
	turn     int // probes of the whole line so far

	// who has the accounts of the present state.
	who reporters
	// asks is the part to probe for the decision about who.
	asks LinePart
	// explicit is true if the provider named the time of a pause. Exempt accounts then use the line
	// only as a last resort.
	explicit bool
	// private is true of a pause that a probe did not meet: it applies to its reporters only.
	private bool
	// untrusted is true if an invalid certificate opened the circuit.
	untrusted bool
	// announced is the state in the last message to the operator, or healthy if the operator
	// believes the line to be in service.
	announced state
	// refuted has the accounts whose failures a probe, or another account, did not meet. Until the
	// given time, their own requests may have caused their failures.
	refuted map[string]time.Time

	// generation grows with each change of the line's state or of a part's state. began is the
	// generation of the present state; attempts from before it do not count.
	generation, began uint64

	// usedByOthers reports whether accounts outside who used the line within recentTime. If nil,
	// this is unknown.
	usedByOthers func(now time.Time, who *reporters) bool

	parts  map[LinePart]*hold // the holds on parts of the line
	doubts map[LinePart]*doubt
	worked worked
}

// worked is the model and form of the last answers, for probes.
type worked struct {
	model string
	forms map[string]wire.Form // by model
}

// note records the model and form of an answer.
func (w *worked) note(q Origin) {
	if q.Form == "" || w.model == q.Model && w.forms[q.Model] == q.Form {
		return
	}
	if w.forms == nil {
		w.forms = map[string]wire.Form{}
	}
	w.model, w.forms[q.Model] = q.Model, q.Form
}

// Change is a message to the operator that a line, or a part of it, is out or has returned.
type Change struct {
	Model string    // empty: the whole line
	Form  wire.Form // all forms if empty
	Tools bool      // requests with tools alone
	State string
	Cause string
}

// transition begins a state and keeps the streak of failures.
func (h *health) transition(to state, now time.Time, wait time.Duration, cause string) {
	h.state, h.since, h.until, h.cause = to, now, now.Add(wait), cause
	h.good, h.probing, h.who, h.asks = 0, false, reporters{}, LinePart{}
	h.explicit, h.private, h.untrusted = false, false, false
	h.generation++
	h.began = h.generation
}

// enter begins a state and a new streak of failures.
func (h *health) enter(to state, now time.Time, wait time.Duration, cause string) {
	h.transition(to, now, wait, cause)
	h.streak = failureSum{}
}

// refuses returns the reason why the line refuses a request, or the empty string. If alone is true,
// the request must be the only one on the line, unless it has no other line (lastResort).
func (h *health) refuses(now time.Time, q Origin, lastResort bool) (why string, alone bool) {
	h.thaw(now)
	switch h.state {
	case cooling, circuitOpen, credentialsOut:
		if !h.who.exempt(q.Account) || h.explicit && !lastResort {
			return h.state.word(), false
		}
		alone = h.state != cooling
	case halfOpen:
		alone = true
	}
	return h.refusesPart(q, lastResort), alone
}

// answered records an answer.
func (h *health) answered(now time.Time, q Origin) (changes []Change) {
	h.worked.note(q)
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
		h.limits.lifted(h.who)
		h.transition(h.after, now, 0, "")
	case circuitOpen, credentialsOut:
		changes = append(changes, h.refute(now)...)
	}
	return changes
}

// refute brings the line back into service after an answer to a probe or to another account: the
// reporters' requests caused their own failures.
func (h *health) refute(now time.Time) []Change {
	h.excuse(now, h.who)
	h.wait = 0
	return h.restore(now)
}

// excuse records the accounts of refuted failures for doubtAgain.
func (h *health) excuse(now time.Time, who reporters) {
	maps.DeleteFunc(h.refuted, func(_ string, until time.Time) bool { return !now.Before(until) })
	for account := range who.accounts {
		if h.refuted == nil {
			h.refuted = map[string]time.Time{}
		}
		if len(h.refuted) < maxReporters {
			h.refuted[account] = now.Add(doubtAgain)
		}
	}
}

// refutes reports whether an account's failures are attributed to its own requests.
func (h *health) refutes(now time.Time, account string) bool {
	until, refuted := h.refuted[account]
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

// announce returns the message to the operator about a line that is out: once for each state, and
// only if the line is out for all accounts or no probe can decide.
func (h *health) announce(now time.Time) []Change {
	if h.announced == h.state || !h.who.confirmed && !h.unverifiable(now) {
		return nil
	}
	h.announced = h.state
	return []Change{{State: h.state.word(), Cause: h.cause}}
}

// unverifiable reports whether the line is out although no probe can confirm it. It is false if
// only one account has met the failures and other accounts use the line too.
func (h *health) unverifiable(now time.Time) bool {
	return h.serving.Unprobed &&
		(h.state == credentialsOut || len(h.who.accounts) > 1 || h.usedByOthers == nil || !h.usedByOthers(now, &h.who))
}

// hold applies the present state to the accounts in who. A probe decides about the other accounts.
func (h *health) hold(now time.Time, q Origin, who reporters) []Change {
	h.who = who
	h.verify(q)
	return h.announce(now)
}

// verify asks for a probe to confirm the present state for all accounts.
func (h *health) verify(q Origin) {
	if h.who.confirmed {
		return
	}
	h.asks = LinePart{Model: q.Model, Form: q.Form}
	if q.Job { // no probe can repeat a job
		h.asks = LinePart{Model: h.worked.model, Form: h.worked.forms[h.worked.model]}
	}
	h.urge(h.asks, h.state == circuitOpen)
}

// failed records a failed attempt. recent returns the failures and the number of attempts since the
// state began and within tripTime.
func (h *health) failed(now time.Time, q Origin, f *upstream.Failure, recent func() (fails failureSum, attempts int)) (changes []Change) {
	if q.Generation < h.began {
		return nil
	}
	switch f.Health {
	case upstream.HealthNone:
		if f.Passed != nil { // the provider is alive: it rejected the request
			h.streak = failureSum{}
		}
	case upstream.HealthCool:
		return h.limited(now, q, f, recent)
	case upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		switch {
		case f.Unproven || !q.Job && h.refutes(now, q.Account):
			h.suspect(h.missed(q, f), false)
		case f.Health == upstream.HealthCredential:
			return h.withdraw(now, q, f)
		default:
			return h.lose(now, h.missed(q, f), q, f)
		}
	case upstream.HealthFail, upstream.HealthHalf:
		changes = h.count(now, q, f, recent)
		h.untrusted = h.state == circuitOpen && f.Untrusted
	}
	return changes
}

// count counts a failure. It opens the circuit after too many failures that the requests of one
// account cannot have caused. A probe then decides whether the circuit is open for all accounts.
func (h *health) count(now time.Time, q Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	unproven := f.Unproven || h.refutes(now, q.Account)
	if h.state >= circuitOpen { // an exempt account tried the line
		if !unproven {
			h.who.add(q.Account)
		}
		return h.announce(now)
	}
	h.streak.add(q.Account, 1-successOf(f.Health), unproven)
	if h.state == halfOpen && !unproven && !h.who.accounts[q.Account] {
		who := h.who
		who.add(q.Account)
		return h.open(now, q, who, f.Error())
	}
	if n := h.streak.counted(); n >= tripStreak {
		return h.open(now, q, h.streak.reporters(), fmt.Sprintf("%g failures in a row; the last: %v", n, f))
	}
	fails, attempts := recent()
	if n := fails.counted(); trips(n, attempts) {
		return h.open(now, q, fails.reporters(), fmt.Sprintf("%g of the last %d attempts failed; the last: %v", n, attempts, f))
	}
	if unproven && !q.Job && (h.streak.all() >= doubtStreak || trips(fails.all(), attempts)) {
		h.suspect(LinePart{Model: q.Model, Form: q.Form}, true)
	}
	return nil
}

// trips reports whether the failures among the recent attempts open the circuit.
func trips(fails float64, attempts int) bool {
	return fails >= tripCount && fails >= tripShare*float64(attempts)
}

// open opens the circuit for the accounts in who.
func (h *health) open(now time.Time, q Origin, who reporters, cause string) []Change {
	again := h.state == halfOpen || h.state == circuitOpen
	switch {
	case h.wait == 0 || !again && now.Sub(h.returned) >= openAgain:
		h.wait = openWait
	default:
		h.wait = min(2*h.wait, maxOpenWait)
	}
	h.enter(circuitOpen, now, h.wait, cause)
	return h.hold(now, q, who)
}

// withdraw takes the line out because its credential or account does not work.
func (h *health) withdraw(now time.Time, q Origin, f *upstream.Failure) []Change {
	if h.state == credentialsOut {
		if h.who.add(q.Account); h.who.confirmed {
			h.until = now.Add(h.wait)
		}
		return h.announce(now)
	}
	h.wait = accountWait
	h.enter(credentialsOut, now, h.wait, f.Error())
	return h.hold(now, q, reportedBy(q.Account))
}

// clear brings the line back into service and removes all holds.
func (h *health) clear(now time.Time) (changes []Change) {
	if h.announced != healthy {
		changes = append(changes, Change{State: StateInService})
	}
	for part, p := range h.parts {
		if p.out && p.announced {
			changes = append(changes, part.change(StateInService, ""))
		}
	}
	*h = health{generation: h.generation, serving: h.serving, worked: h.worked, usedByOthers: h.usedByOthers}
	h.enter(healthy, now, 0, "")
	h.returned = now
	return changes
}

// due returns the probes to make now and marks them as running.
func (h *health) due(now time.Time) (p Probes) {
	h.thaw(now)
	p.Generation, p.Worked = h.generation, LinePart{Model: h.worked.model, Form: h.worked.forms[h.worked.model]}
	if h.state >= circuitOpen && (h.who.confirmed || h.serving.Unprobed) {
		if h.probing || now.Before(h.until) {
			return p
		}
		h.probing = true
		p.Whole = &Ask{LinePart: p.Worked, Turn: h.turn}
		h.turn++
		return p // its parts are probed when it is back
	}
	for part, lost := range h.parts {
		if lost.dueAt(now) {
			lost.probing = true
			p.Parts = append(p.Parts, Ask{LinePart: part, Turn: lost.turn, Last: h.worked.forms[part.Model]})
		}
	}
	p.Doubts = h.dueDoubts(now)
	return p
}

// probed records a probe of the whole line. generation is the line's generation when the probe
// began; f is nil if the line answered.
func (h *health) probed(now time.Time, generation uint64, f *upstream.Failure) []Change {
	if generation < h.began {
		return nil
	}
	switch {
	case f == nil:
		if h.state == credentialsOut {
			h.wait = 0
		}
		who := h.who
		h.enter(halfOpen, now, 0, h.cause)
		h.who.accounts = who.accounts // for a line without probes: these accounts have met the failures
	case f.Health == upstream.HealthCredential && h.state != credentialsOut:
		return h.withdraw(now, Origin{}, f)
	default: // the state goes on, so began keeps its value
		longest := maxOpenWait
		if h.state == credentialsOut {
			longest = maxAccountWait
		}
		h.wait = min(2*h.wait, longest)
		h.until, h.cause, h.probing = now.Add(max(h.wait, f.RetryAfter)), f.Error(), false
		h.who.confirm()
	}
	return nil
}
