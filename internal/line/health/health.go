// Package health owns how one line is doing on one node: what its recent
// attempts say, what opens its circuit, cools it or takes a model out, and what
// is to be probed.
//
// Invariants:
//   - What began before the present state of the line, or of a part of it, changes
//     nothing about that.
//   - What one account alone can have brought about takes no line out; a probe of
//     the gateway's own decides what it means.
//   - What one account alone has met keeps nobody else out for longer than another
//     one's request, or a probe, takes to find that it works.
//   - A line or part that is out returns by a probe that went well, another
//     account's answer, or the operator's word.
//   - The machine (health, doubt) decides and knows neither locks nor clocks; Stats
//     lock.
package health

import (
	"fmt"
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
	tripTime   = time.Minute // what is recent for that

	// An open circuit is probed after openWait, then after twice as long, up to
	// maxOpenWait. One that opens within openAgain of its last return goes on
	// where it stopped.
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

// state says whether a line may be asked.
type state int

// The states, from good to bad.
const (
	healthy  state = iota
	cooling        // until a time, after a rate limit
	halfOpen       // a probe went well: one request at a time, if others can take the rest
	circuitOpen
	credentialsOut
)

// word returns that of Status.State.
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

// Serving is what a line serves, as far as health has to know it.
type Serving struct {
	Models, Forms int // how many
}

// health is what one node thinks of one line. Its methods decide; they know
// neither locks nor clocks. Its owner is a stats.
type health struct {
	serving  Serving
	state    state
	until    time.Time // when a cooling line is asked again, and the others probed
	since    time.Time // when the state began
	cause    string
	wait     time.Duration // between probes
	returned time.Time     // when the line last came back into service
	streak   failureSum    // failures since the last answer
	limits   limits
	good     int   // answers since it is half-open
	after    state // what follows on cooling: healthy, or half-open
	probing  bool
	turn     int // probes of the whole line so far

	// by is the account that alone has brought the state about: others may try.
	// Empty: several have, or a probe met the same.
	by string
	// told says of a pause that the provider named its time: others than by are
	// left to try as a last resort alone.
	told bool
	// atOnce tells that the circuit is probed at once, since one account among
	// several opened it.
	atOnce bool
	// refuted is an account whose failures a probe, or others, did not meet: until
	// refutedUntil they count as what its requests may have brought about.
	refuted      string
	refutedUntil time.Time

	// generation grows with each change of the state, or of a part's; began is
	// what it was when the state began: what began earlier says nothing about it.
	generation, began uint64

	parts  map[LinePart]*hold // what is held against parts of it
	doubts map[LinePart]*doubt
	worked worked
}

// worked is what the line answered last, for probes to ask.
type worked struct {
	model string
	forms map[string]wire.Form // by model
}

// note remembers what the line has answered.
func (w *worked) note(q Origin) {
	if q.Form == "" || w.model == q.Model && w.forms[q.Model] == q.Form {
		return
	}
	if w.forms == nil {
		w.forms = map[string]wire.Form{}
	}
	w.model, w.forms[q.Model] = q.Model, q.Form
}

// Change is what an operator is told when a line, or a part of it, leaves or
// returns.
type Change struct {
	Model string    // empty: the whole line
	Form  wire.Form // empty: the model in all forms
	Tools bool      // requests with tools alone
	State string
	Cause string
}

// transition begins a state in which the streak of failures goes on.
func (h *health) transition(to state, now time.Time, wait time.Duration, cause string) {
	h.state, h.since, h.until, h.cause = to, now, now.Add(wait), cause
	h.good, h.probing, h.by, h.told, h.atOnce = 0, false, "", false, false
	h.generation++
	h.began = h.generation
}

// enter begins a state, and a new streak.
func (h *health) enter(to state, now time.Time, wait time.Duration, cause string) {
	h.transition(to, now, wait, cause)
	h.streak = failureSum{}
}

// refuses says why a request is not to be made of the line; empty: it is. alone
// says that it is to be the only one, as long as others can be made elsewhere;
// lastResort that this one cannot be.
func (h *health) refuses(now time.Time, q Origin, lastResort bool) (why string, alone bool) {
	h.thaw(now)
	switch h.state {
	case cooling, circuitOpen, credentialsOut:
		if !excepts(h.by, q.Account) || h.told && !lastResort {
			return h.state.word(), false
		}
		alone = h.state != cooling
	case halfOpen:
		alone = true
	}
	return h.refusesPart(q, lastResort), alone
}

// answered takes in an answer that began in a generation.
func (h *health) answered(now time.Time, q Origin) (changes []Change) {
	h.worked.note(q)
	changes = h.answeredPart(now, q)
	if q.Generation < h.began {
		return changes
	}
	h.streak = failureSum{}
	h.limits.lifted("")
	switch h.state {
	case halfOpen:
		if h.good++; h.good >= halfOpenAnswers {
			changes = append(changes, h.restore(now)...)
		}
	case cooling: // asked while it was: only one account had met the limit
		h.limits.lifted(h.by)
		h.transition(h.after, now, 0, "")
	case circuitOpen, credentialsOut:
		changes = append(changes, h.refute(now)...)
	}
	return changes
}

// refute brings the line back into service after it was found to work for others
// than the account that alone had met that it did not.
func (h *health) refute(now time.Time) []Change {
	h.refuted, h.refutedUntil, h.wait = h.by, now.Add(doubtAgain), 0
	return h.restore(now)
}

// refutes tells whether what an account meets is known to be its own.
func (h *health) refutes(now time.Time, account string) bool {
	return account != "" && account == h.refuted && now.Before(h.refutedUntil)
}

// restore brings the line back into service.
func (h *health) restore(now time.Time) []Change {
	h.enter(healthy, now, 0, "")
	h.returned = now
	return []Change{{State: StateInService}}
}

// failed takes in a failure of an attempt. recent says how much of the attempts
// since the state began, and no older than tripTime, failed.
func (h *health) failed(now time.Time, q Origin, f *upstream.Failure, recent func() (fails failureSum, attempts int)) (changes []Change) {
	if q.Generation < h.began {
		return nil
	}
	switch f.Health {
	case upstream.HealthNone:
		if f.Passed != nil { // it lives: it has an opinion about the request
			h.streak = failureSum{}
		}
	case upstream.HealthCool:
		return h.limited(now, q, f, recent)
	case upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		switch {
		case f.Unproven:
			h.suspect(h.missed(q, f), false)
		case f.Health == upstream.HealthCredential:
			return h.withdraw(now, q.Account, f)
		default:
			return h.lose(now, h.missed(q, f), q, f)
		}
	case upstream.HealthFail, upstream.HealthHalf:
		return h.count(now, q, f, recent)
	}
	return nil
}

// count counts a failure and opens the circuit when there were too many that
// one account's requests cannot have brought about. What they can is probed.
func (h *health) count(now time.Time, q Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	unproven := f.Unproven || h.refutes(now, q.Account)
	if h.state >= circuitOpen { // it was another account's to try
		if !unproven && h.by != q.Account {
			h.by = ""
		}
		return nil
	}
	h.streak.add(q.Account, 1-successOf(f.Health), unproven)
	if h.state == halfOpen && !unproven && (h.by == "" || h.by != q.Account) {
		by := q.Account
		if h.by != "" {
			by = "" // two have met it now
		}
		return h.open(now, by, f.Error())
	}
	if n := h.streak.counted(); n >= tripStreak {
		return h.open(now, h.streak.alone(), fmt.Sprintf("%g failures in a row; the last: %v", n, f))
	}
	fails, attempts := recent()
	if n := fails.counted(); trips(n, attempts) {
		return h.open(now, fails.alone(), fmt.Sprintf("%g of the last %d attempts failed; the last: %v", n, attempts, f))
	}
	if unproven && !q.Job && (h.streak.all() >= doubtStreak || trips(fails.all(), attempts)) {
		h.suspect(LinePart{Model: q.Model, Form: q.Form}, true)
	}
	return nil
}

// trips tells whether so many failures among the recent attempts open the
// circuit.
func trips(fails float64, attempts int) bool {
	return fails >= tripCount && fails >= tripShare*float64(attempts)
}

// open opens the circuit by the doing of one account alone, or several (empty).
func (h *health) open(now time.Time, by, cause string) []Change {
	again := h.state == halfOpen || h.state == circuitOpen
	switch {
	case h.wait == 0 || !again && now.Sub(h.returned) >= openAgain:
		h.wait = openWait
	default:
		h.wait = min(2*h.wait, maxOpenWait)
	}
	h.enter(circuitOpen, now, h.wait, cause)
	h.by = by
	if again {
		return nil // it had not returned
	}
	return []Change{{State: StateCircuitOpen, Cause: cause}}
}

// hasten lets a circuit that an account alone has opened be probed at once.
func (h *health) hasten(now time.Time, account string) {
	if h.state == circuitOpen && h.by != "" && h.by == account && !h.probing {
		h.atOnce, h.until = true, now
	}
}

// withdraw takes the line out because its credential or account does not work.
func (h *health) withdraw(now time.Time, by string, f *upstream.Failure) []Change {
	if h.state == credentialsOut {
		if h.by != by {
			h.by = ""
		}
		return nil
	}
	h.wait = accountWait
	h.enter(credentialsOut, now, h.wait, f.Error())
	h.by = by
	return []Change{{State: StateCredentialsOut, Cause: h.cause}}
}

// clear forgets all of it, as the operator asked: the line is in service.
func (h *health) clear(now time.Time) (changes []Change) {
	if h.state > cooling {
		changes = append(changes, Change{State: StateInService})
	}
	for part, p := range h.parts {
		if p.out {
			changes = append(changes, part.change(StateInService, ""))
		}
	}
	*h = health{generation: h.generation, serving: h.serving, worked: h.worked}
	h.enter(healthy, now, 0, "")
	h.returned = now
	return changes
}

// due says what is to be probed now. What it names counts as being probed.
func (h *health) due(now time.Time) (p Probes) {
	h.thaw(now)
	p.Generation, p.Worked = h.generation, LinePart{Model: h.worked.model, Form: h.worked.forms[h.worked.model]}
	if h.state >= circuitOpen {
		if h.probing || now.Before(h.until) {
			return p
		}
		h.probing = true
		p.Whole = &Ask{LinePart: p.Worked, Turn: h.turn}
		h.turn++
		return p // its parts are probed when it is back
	}
	for part, lost := range h.parts {
		if lost.out && !lost.probing && !now.Before(lost.until) {
			lost.probing = true
			p.Parts = append(p.Parts, Ask{LinePart: part, Turn: lost.turn, Last: h.worked.forms[part.Model]})
		}
	}
	p.Doubts = h.dueDoubts(now)
	return p
}

// probed takes in a probe of the whole line that began in a generation; f is nil
// when it went well.
func (h *health) probed(now time.Time, generation uint64, f *upstream.Failure) []Change {
	if generation < h.began {
		return nil
	}
	switch {
	case f == nil && h.atOnce:
		return h.refute(now)
	case f == nil:
		if h.state == credentialsOut {
			h.wait = 0
		}
		by := h.by
		h.enter(halfOpen, now, 0, h.cause)
		h.by = by
	case f.Health == upstream.HealthCredential && h.state != credentialsOut:
		return h.withdraw(now, "", f)
	default: // the state goes on, so what began in it stays told apart
		longest := maxOpenWait
		if h.state == credentialsOut {
			longest = maxAccountWait
		}
		if !h.atOnce {
			h.wait = min(2*h.wait, longest)
		}
		h.until, h.cause, h.probing, h.by, h.atOnce = now.Add(max(h.wait, f.RetryAfter)), f.Error(), false, "", false
	}
	return nil
}
