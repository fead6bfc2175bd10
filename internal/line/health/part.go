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
	by           string        // the account that alone has met it; empty: others have too, or a probe
	told         bool          // of a pause: see health.told
	limits       limits
	began        uint64 // the line's generation then: what began earlier says nothing about it
	probing      bool
	turn         int // probes so far
}

// holds tells whether the part is not to be asked.
func (p *hold) holds() bool { return p.out || p.cools }

// excepts tells whether a hold that one account alone has met leaves another one
// to try: what one account's requests have caused, another's may lift.
func excepts(by, account string) bool { return by != "" && account != "" && account != by }

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
		case p == nil || !p.holds() || excepts(p.by, q.Account) && (!p.cools || !p.told || lastResort):
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
	if p := h.parts[part]; p != nil && p.out && !excepts(p.by, q.Account) {
		return LacksForm
	}
	part.Tools = true
	if p := h.parts[part]; q.Tools && p != nil && p.out {
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
			by := ""
			if p.holds() && excepts(p.by, q.Account) {
				by = p.by
			}
			p.limits.lifted(by)
			changes = append(changes, h.lift(now, part)...)
		}
	}
	return changes
}

// lift ends what holds a part back. That there was something is kept, so that
// late failures do not bring it back.
func (h *health) lift(now time.Time, part LinePart) (changes []Change) {
	p := h.parts[part]
	if p.out {
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
		p = &hold{by: q.Account}
		if h.parts == nil {
			h.parts = map[LinePart]*hold{}
		}
		h.parts[part] = p
	case q.Generation < p.began:
		return nil
	case !p.holds():
		p.by = q.Account
	case p.by != q.Account:
		p.by = ""
	}
	return p
}

// limits are the rate limits that a line or model has met since the last answer.
type limits struct {
	n       int
	last    string // the account that met the latest
	refuted string // one that met some while others were answered
}

// met takes in a rate limit and returns for how long to leave the line or model
// alone, and whether that is the provider's own word on the time, which others
// than the account that met it pass over as a last resort alone. Of an account that
// meets limits again and again it is not.
func (l *limits) met(q Origin, f *upstream.Failure) (pause time.Duration, told bool) {
	if pause = min(f.RetryAfter, maxRetryAfter); pause > 0 {
		told = (l.n == 0 || l.last != q.Account) && l.refuted != q.Account
	} else {
		pause = min(minCool<<min(l.n, 3), maxCool)
	}
	l.n++
	l.last = q.Account
	return pause, told
}

// lifted takes in an answer; by is the account alone for which a pause held, empty
// for all or none.
func (l *limits) lifted(by string) {
	l.n = 0
	if by != "" {
		l.refuted = by
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
	pause, told := p.limits.met(q, f)
	p.until, p.since, p.cause, p.cools, p.told, p.began = now.Add(pause), now, f.Error(), true, told, h.generation
	for part, other := range h.parts {
		if part.Model != q.Model && other.cools && now.Before(other.until) {
			h.cool(now, q, f)
			if other.by != q.Account {
				h.by = ""
			}
			break
		}
	}
	return nil
}

// cool leaves the line alone for a while.
func (h *health) cool(now time.Time, q Origin, f *upstream.Failure) {
	pause, told := h.limits.met(q, f)
	by := q.Account
	switch h.state {
	case cooling: // met by an account that was left to try
		if h.by != q.Account {
			by = ""
		}
	case halfOpen:
		h.after = halfOpen
	default:
		h.after = healthy
	}
	h.transition(cooling, now, pause, f.Error())
	h.by, h.told = by, told
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
	if p == nil || p.out {
		return nil
	}
	h.generation++
	*p = hold{out: true, cause: f.Error(), since: now, until: now.Add(accountWait), wait: accountWait, by: p.by, began: h.generation}
	if part.Tools {
		p.by = "" // it only says which form comes first
	}
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
		if part.Model == model && part.Form != "" && !part.Tools && p.out {
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
	p.until, p.cause, p.probing, p.by = now.Add(p.wait), f.Error(), false, ""
	p.turn++
	return nil
}
