package health

import (
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// LinePart is what of a line can cool, or be out, by itself: a model, or a model in
// one form.
type LinePart struct {
	Model string
	Form  wire.Form // empty: in all of them
	Tools bool      // for requests with tools alone
}

// hold is what is held against a part of a line. One that holds no longer is
// kept for a while: the next pause is longer if it follows soon.
type hold struct {
	out          bool // until a probe went well, or an answer came
	cools        bool // until the time until
	cause        string
	since, until time.Time
	wait         time.Duration // between probes
	who          reporters     // the accounts for which it holds
	explicit     bool          // of a pause: see health.explicit
	private      bool          // of a pause: see health.private
	announced    bool          // the operator was told that the part is out
	limits       limits
	began        uint64 // the line's generation then: what began earlier says nothing about it
	probing      bool
	turn         int // probes so far
}

// holds tells whether the part is not to be asked.
func (p *hold) holds() bool { return p.out || p.cools }

// dueAt reports whether a part that is out is to be probed.
func (p *hold) dueAt(now time.Time) bool {
	return p.out && p.announced && !p.probing && !now.Before(p.until)
}

// thaw ends the pauses that are over.
func (h *health) thaw(now time.Time) {
	if h.state == cooling && !now.Before(h.until) {
		h.transition(h.after, now, 0, "")
	}
	for _, p := range h.parts {
		p.cools = p.cools && now.Before(p.until)
	}
}

// refusesPart says why a part is not to be asked for; empty: it is.
func (h *health) refusesPart(q Origin, lastResort bool) string {
	for _, part := range [...]LinePart{{Model: q.Model}, {Model: q.Model, Form: q.Form}} {
		switch p := h.parts[part]; {
		case p == nil || !p.holds() || p.who.exempt(q.Account) && (!p.cools || !p.explicit || lastResort):
		case p.cools:
			return StateCooling
		case part.Form != "":
			return StateFormOut
		default:
			return StateModelOut
		}
	}
	return ""
}

// Lack says how little of a model a line has in a form.
type Lack int

// From what is best to ask to what is not asked at all.
const (
	LacksNothing Lack = iota
	LacksTools        // of a request with tools: another form is better
	LacksForm         // it is out
)

// lacks says what keeps a request from a form.
func (h *health) lacks(q Origin) Lack {
	part := LinePart{Model: q.Model, Form: q.Form}
	if p := h.parts[part]; p != nil && p.out && !p.who.exempt(q.Account) {
		return LacksForm
	}
	part.Tools = true
	if p := h.parts[part]; q.Tools && p != nil && p.out && !p.who.exempt(q.Account) {
		return LacksTools
	}
	return LacksNothing
}

// answeredPart takes in an answer: of a part that held when it was asked for, it
// lifts what holds.
func (h *health) answeredPart(now time.Time, q Origin) (changes []Change) {
	if len(h.parts) == 0 {
		return nil
	}
	for _, part := range [...]LinePart{{Model: q.Model}, {Model: q.Model, Form: q.Form}} {
		if p := h.parts[part]; p != nil && q.Generation >= p.began {
			if p.holds() && p.who.exempt(q.Account) {
				p.limits.lifted(p.who)
			}
			p.limits.n = 0
			changes = append(changes, h.lift(now, part)...)
		}
	}
	return changes
}

// lift ends what holds a part back. That there was something is kept, so that
// late failures do not bring it back.
func (h *health) lift(now time.Time, part LinePart) (changes []Change) {
	p := h.parts[part]
	if p.out && p.announced {
		changes = []Change{part.change(StateInService, "")}
	}
	if p.holds() {
		h.generation++
		*p = hold{began: h.generation, limits: p.limits}
	}
	p.until = now
	return changes
}

// change is that of a part, for the operator.
func (p LinePart) change(state, cause string) Change {
	return Change{Model: p.Model, Form: p.Form, Tools: p.Tools, State: state, Cause: cause}
}

// part returns what is held against a part of the line, with a new generation if
// that is something new; nil: what has been met began before it, and is no news.
func (h *health) part(part LinePart, q Origin) *hold {
	p := h.parts[part]
	switch {
	case p == nil:
		p = &hold{who: reportedBy(q.Account)}
		if h.parts == nil {
			h.parts = map[LinePart]*hold{}
		}
		h.parts[part] = p
	case q.Generation < p.began:
		return nil
	case !p.holds():
		p.who = reportedBy(q.Account)
	default:
		p.who.add(q.Account)
	}
	return p
}

// limits are the rate limits that a line or model has met since the last answer.
type limits struct {
	n       int
	refuted map[string]bool // accounts that met some while others were answered
}

// met takes in a rate limit and returns for how long to leave the line or model
// alone. explicit is true if the provider named the time of the first limit since an
// answer: accounts that are exempt then use the line only as a last resort. It is
// false for accounts whose limits were refuted, and for later limits, so that no
// accounts can prolong the pause of others.
func (l *limits) met(q Origin, f *upstream.Failure) (pause time.Duration, explicit bool) {
	if pause = min(f.RetryAfter, maxRetryAfter); pause > 0 {
		explicit = l.n == 0 && !l.refuted[q.Account]
	} else {
		pause = min(minCool<<min(l.n, 3), maxCool)
	}
	l.n++
	return pause, explicit
}

// lifted takes in an answer while a pause held for some accounts.
func (l *limits) lifted(who reporters) {
	l.n = 0
	for account := range who.accounts {
		if l.refuted == nil || len(l.refuted) >= maxReporters {
			l.refuted = map[string]bool{}
		}
		l.refuted[account] = true
	}
}

// limited cools the model that met a rate limit: the line, where the limit is the
// account's, other models are limited too, or there is no other. An overload that
// comes back is a failure as well.
func (h *health) limited(now time.Time, q Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	if h.state >= circuitOpen {
		return nil
	}
	h.forgetPauses(now)
	whole := f.AllModels || h.serving.Models <= 1
	p := h.parts[LinePart{Model: q.Model}]
	again := h.limits.n > 0 || p != nil && p.limits.n > 0 && q.Generation >= p.began
	if again && (f.Status == 503 || f.Status == 529) {
		if changes := h.count(now, q, f, recent); h.state >= circuitOpen {
			return changes
		}
	}
	if whole {
		h.cool(now, q, f)
		return nil // a pause of seconds is not worth a message
	}
	if p != nil && p.out {
		return nil
	}
	if p = h.part(LinePart{Model: q.Model}, q); p == nil {
		return nil
	}
	h.generation++
	pause, explicit := p.limits.met(q, f)
	p.until, p.since, p.cause, p.cools, p.explicit, p.private, p.began = now.Add(pause), now, f.Error(), true, explicit, false, h.generation
	for part, other := range h.parts {
		if part.Model != q.Model && other.cools && now.Before(other.until) {
			h.cool(now, q, f)
			h.who.join(other.who)
			h.askAboutPause(q)
			return nil
		}
	}
	if !q.Job && !p.who.confirmed && len(p.who.accounts) > 1 {
		h.urge(LinePart{Model: q.Model}, false)
	}
	return nil
}

// askAboutPause has a probe decide about a pause of the line that several accounts
// have met. One account alone pauses the line for itself, which needs no probe; so a
// real rate limit costs one probe a pause at most.
func (h *health) askAboutPause(q Origin) {
	if !q.Job && len(h.who.accounts) > 1 {
		h.verify(q)
	}
}

// cool leaves the line alone for a while.
func (h *health) cool(now time.Time, q Origin, f *upstream.Failure) {
	pause, explicit := h.limits.met(q, f)
	who := reportedBy(q.Account)
	switch h.state {
	case cooling: // met by an account that was left to try
		who.join(h.who)
	case halfOpen:
		h.after = halfOpen
	default:
		h.after = healthy
	}
	h.transition(cooling, now, pause, f.Error())
	h.who, h.explicit = who, explicit
	h.askAboutPause(q)
}

// forgetPauses drops what is remembered of pauses long over.
func (h *health) forgetPauses(now time.Time) {
	for part, p := range h.parts {
		if !p.holds() && now.Sub(p.until) >= openAgain {
			delete(h.parts, part)
		}
	}
}

// lose takes a part out that the line does not have. A model that is out in every
// form of the line is out.
func (h *health) lose(now time.Time, part LinePart, q Origin, f *upstream.Failure) []Change {
	if part.Form != "" && h.serving.Forms <= 1 {
		if part.Tools {
			return nil // there is no other form to turn to
		}
		part.Form = ""
	}
	p := h.part(part, q)
	if p == nil || p.out && (p.announced || !p.who.confirmed) {
		return nil
	}
	h.generation++
	*p = hold{out: true, cause: f.Error(), since: now, until: now.Add(accountWait), wait: accountWait, who: p.who, began: h.generation}
	if !p.who.confirmed && !q.Job && !f.Added && !h.serving.Unprobed {
		h.urge(part, false)
		return nil
	}
	p.announced = true // also where no probe can decide
	if part.Form != "" && h.formsOut(part.Model) >= h.serving.Forms {
		for other := range h.parts {
			if other.Model == part.Model {
				delete(h.parts, other)
			}
		}
		return h.lose(now, LinePart{Model: part.Model}, q, f)
	}
	if part.Form == "" {
		return []Change{part.change(StateModelOut, f.Error())}
	}
	return []Change{part.change(StateFormOut, f.Error())}
}

// formsOut counts the forms in which a model is out.
func (h *health) formsOut(model string) (n int) {
	for part, p := range h.parts {
		if part.Model == model && part.Form != "" && !part.Tools && p.out && p.announced {
			n++
		}
	}
	return n
}

// missed is the part that a failure of a request says the line lacks.
func (h *health) missed(q Origin, f *upstream.Failure) LinePart {
	if f.MissesForm() && q.Form != "" {
		return LinePart{q.Model, q.Form, f.Tools}
	}
	return LinePart{Model: q.Model}
}

// probedPart takes in a probe of a part that is out.
func (h *health) probedPart(now time.Time, part LinePart, f *upstream.Failure) []Change {
	p := h.parts[part]
	switch {
	case p == nil || !p.probing:
		return nil
	case f == nil:
		return h.lift(now, part)
	}
	p.wait = min(2*p.wait, maxAccountWait)
	p.until, p.cause, p.probing = now.Add(p.wait), f.Error(), false
	p.who.confirm()
	p.turn++
	return nil
}
