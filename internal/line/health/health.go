// Package health owns how one line is doing on one node: what its recent
// attempts say, what opens its circuit, cools it or takes a model out, and what
// is to be probed.
//
// Invariants:
//   - What began in a former generation of the line changes nothing.
//   - What one account alone can have brought about takes no line out; a probe of
//     the gateway's own decides what it means.
//   - A line that is out returns by a probe that went well, or the operator's word.
//   - The machine (health, doubt) decides and knows neither locks nor clocks; Stats
//     lock.
package health

import (
	"fmt"
	"time"

	"tollgate/internal/upstream"
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

// health is what one node thinks of one line. Its methods decide; they know
// neither locks nor clocks. Its owner is a stats.
type health struct {
	state      state
	until      time.Time // when a cooling line is asked again, and the others probed
	since      time.Time // when the state began
	cause      string
	wait       time.Duration // between probes
	returned   time.Time     // when the line last came back into service
	streak     failureSum    // failures since the last answer
	cools      int           // rate limits since the last answer
	good       int           // answers since it is half-open
	after      state         // what follows on cooling: healthy, or half-open
	generation uint64        // grows with each change of the state: what began in an earlier one says nothing about this
	probing    bool

	models map[string]*modelHealth // the models that are out on this line
	doubts map[string]*doubt       // by the model that a probe is to ask for
}

// modelHealth is a model that the line does not have.
type modelHealth struct {
	cause        string
	since, until time.Time
	wait         time.Duration
	probing      bool
}

// Change is what an operator is told when a line, or a model on it, leaves or
// returns.
type Change struct {
	Model string // empty: the whole line
	State string
	Cause string
}

// transition begins a state in which the streak of failures goes on.
func (h *health) transition(to state, now time.Time, wait time.Duration, cause string) {
	h.state, h.since, h.until, h.cause = to, now, now.Add(wait), cause
	h.good, h.probing = 0, false
	h.generation++
}

// enter begins a state, and a new streak.
func (h *health) enter(to state, now time.Time, wait time.Duration, cause string) {
	h.transition(to, now, wait, cause)
	h.streak = failureSum{}
}

// refuses says why a model is not to be asked for on the line; empty: it is.
func (h *health) refuses(now time.Time, model string) string {
	if h.state == cooling && !now.Before(h.until) {
		h.transition(h.after, now, 0, "")
	}
	switch h.state {
	case cooling, circuitOpen, credentialsOut:
		return h.state.word()
	}
	if h.models[model] != nil {
		return StateModelOut
	}
	return ""
}

// answered takes in an answer that began in a generation.
func (h *health) answered(now time.Time, generation uint64) (changes []Change) {
	if generation != h.generation {
		return nil
	}
	h.streak, h.cools = failureSum{}, 0
	if h.state == halfOpen {
		if h.good++; h.good >= halfOpenAnswers {
			return h.restore(now)
		}
	}
	return nil
}

// restore brings the line back into service.
func (h *health) restore(now time.Time) []Change {
	h.enter(healthy, now, 0, "")
	h.returned = now
	return []Change{{State: StateInService}}
}

// failed takes in a failure of an attempt. recent says how much of the attempts
// of this generation, and no older than tripTime, failed.
func (h *health) failed(now time.Time, q Origin, f *upstream.Failure, recent func() (fails failureSum, attempts int)) (changes []Change) {
	if q.Generation != h.generation {
		return nil
	}
	switch f.Health {
	case upstream.HealthNone:
		if f.Passed != nil { // it lives: it has an opinion about the request
			h.streak = failureSum{}
		}
	case upstream.HealthCool:
		return h.limited(now, q, f, recent)
	case upstream.HealthCredential, upstream.HealthModel:
		switch {
		case f.Unproven:
			h.suspect(q.Model, false)
		case f.Health == upstream.HealthCredential:
			return h.withdraw(now, f)
		default:
			return h.lose(now, q.Model, f)
		}
	case upstream.HealthFail, upstream.HealthHalf:
		return h.count(now, q, f, recent)
	}
	return nil
}

// count counts a failure and opens the circuit when there were too many that
// one account's requests cannot have brought about. What they can is probed.
func (h *health) count(now time.Time, q Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	h.streak.add(q.Account, 1-successOf(f.Health), f.Unproven)
	if h.state == halfOpen && !f.Unproven {
		return h.open(now, f.Error())
	}
	if n := h.streak.counted(); n >= tripStreak {
		return h.open(now, fmt.Sprintf("%g failures in a row; the last: %v", n, f))
	}
	fails, attempts := recent()
	if n := fails.counted(); trips(n, attempts) {
		return h.open(now, fmt.Sprintf("%g of the last %d attempts failed; the last: %v", n, attempts, f))
	}
	if f.Unproven && !q.Job && (h.streak.all() >= doubtStreak || trips(fails.all(), attempts)) {
		h.suspect(q.Model, true)
	}
	return nil
}

// trips tells whether so many failures among the recent attempts open the
// circuit.
func trips(fails float64, attempts int) bool {
	return fails >= tripCount && fails >= tripShare*float64(attempts)
}

// open opens the circuit.
func (h *health) open(now time.Time, cause string) []Change {
	again := h.state == halfOpen || h.state == circuitOpen
	switch {
	case h.wait == 0 || !again && now.Sub(h.returned) >= openAgain:
		h.wait = openWait
	default:
		h.wait = min(2*h.wait, maxOpenWait)
	}
	h.enter(circuitOpen, now, h.wait, cause)
	if again {
		return nil // it had not returned
	}
	return []Change{{State: StateCircuitOpen, Cause: cause}}
}

// limited cools the line after a rate limit. An overload that comes back is a
// failure as well.
func (h *health) limited(now time.Time, q Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	if h.cools > 0 && (f.Status == 503 || f.Status == 529) {
		if changes := h.count(now, q, f, recent); h.state == circuitOpen {
			return changes
		}
	}
	pause := min(f.RetryAfter, maxRetryAfter)
	if pause <= 0 {
		pause = min(minCool<<min(h.cools, 3), maxCool)
	}
	h.after = healthy
	if h.state == halfOpen {
		h.after = halfOpen
	}
	h.transition(cooling, now, pause, f.Error())
	h.cools++
	return nil // a pause of seconds is not worth a message
}

// withdraw takes the line out because its credential or account does not work.
func (h *health) withdraw(now time.Time, f *upstream.Failure) []Change {
	h.wait = accountWait
	h.enter(credentialsOut, now, h.wait, f.Error())
	return []Change{{State: StateCredentialsOut, Cause: h.cause}}
}

// lose takes a model out that the line does not have.
func (h *health) lose(now time.Time, model string, f *upstream.Failure) []Change {
	if h.models[model] != nil {
		return nil
	}
	if h.models == nil {
		h.models = map[string]*modelHealth{}
	}
	h.models[model] = &modelHealth{cause: f.Error(), since: now, until: now.Add(accountWait), wait: accountWait}
	return []Change{{Model: model, State: StateModelOut, Cause: f.Error()}}
}

// clear forgets all of it, as the operator asked: the line is in service.
func (h *health) clear(now time.Time) (changes []Change) {
	if h.state > cooling {
		changes = append(changes, Change{State: StateInService})
	}
	for model := range h.models {
		changes = append(changes, Change{Model: model, State: StateInService})
	}
	generation := h.generation
	*h = health{generation: generation}
	h.enter(healthy, now, 0, "")
	h.returned = now
	return changes
}

// due says what is to be probed now: the line as a whole, the models that are
// out on it, and those in doubt. What it names counts as being probed.
func (h *health) due(now time.Time) (whole bool, models, doubts []string) {
	if h.state >= circuitOpen {
		if h.probing || now.Before(h.until) {
			return false, nil, nil
		}
		h.probing = true
		return true, nil, nil // its models are probed when it is back
	}
	for model, m := range h.models {
		if !m.probing && !now.Before(m.until) {
			m.probing = true
			models = append(models, model)
		}
	}
	return false, models, h.dueDoubts(now)
}

// probed takes in a probe of the whole line that began in a generation; f is nil
// when it went well.
func (h *health) probed(now time.Time, generation uint64, f *upstream.Failure) []Change {
	if generation != h.generation {
		return nil
	}
	switch {
	case f == nil:
		if h.state == credentialsOut {
			h.wait = 0
		}
		h.enter(halfOpen, now, 0, h.cause)
	case f.Health == upstream.HealthCredential && h.state != credentialsOut:
		return h.withdraw(now, f)
	default: // the state goes on, so what began in it stays told apart
		longest := maxOpenWait
		if h.state == credentialsOut {
			longest = maxAccountWait
		}
		h.wait = min(2*h.wait, longest)
		h.until, h.cause, h.probing = now.Add(max(h.wait, f.RetryAfter)), f.Error(), false
	}
	return nil
}

// probedModel takes in a probe of a model that is out.
func (h *health) probedModel(now time.Time, model string, f *upstream.Failure) []Change {
	m := h.models[model]
	switch {
	case m == nil || !m.probing:
		return nil
	case f == nil:
		delete(h.models, model)
		return []Change{{Model: model, State: StateInService}}
	}
	m.wait = min(2*m.wait, maxAccountWait)
	m.until, m.cause, m.probing = now.Add(m.wait), f.Error(), false
	return nil
}
