package health

import (
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// LinePart is a model of a line, in all forms or in one form. It can be cooling or out while the
// rest of the line is in service. The zero value is the whole line.
type LinePart struct {
	Model string
	Form  wire.Form // empty for all forms
	Tools bool      // only requests with tools
}

// block is the reason to refuse requests for a part of a line. The record of an ended block is kept
// for a while, because the next pause is longer if it follows soon.
type block struct {
	out          bool // refuses requests until a successful probe or an answer
	cooling      bool // refuses requests until the time in until
	cause        string
	since, until time.Time
	wait         time.Duration // time between probes
	reporters    reporters     // the blocked accounts
	explicit     bool          // see health.explicit
	private      bool          // see health.private
	announced    bool          // whether the operator got a message that the part is out
	limits       limits
	began        uint64 // generation at the start of the block; earlier attempts do not count
	probing      bool
	probes       int // number of probes so far
}

// active reports whether the part refuses requests.
func (p *block) active() bool { return p.out || p.cooling }

// dueAt reports whether a part is out and due for a probe.
func (p *block) dueAt(now time.Time) bool {
	return p.out && p.announced && !p.probing && !now.Before(p.until)
}

// endPauses ends expired pauses.
func (h *health) endPauses(now time.Time) {
	if h.state == cooling && !now.Before(h.until) {
		h.transition(h.afterPause, now, 0, "")
	}
	for _, p := range h.parts {
		p.cooling = p.cooling && now.Before(p.until)
	}
}

// partRefusal returns the reason for refusing a request because of its model or form, or "".
func (h *health) partRefusal(origin Origin, lastResort bool) string {
	for _, part := range [...]LinePart{{Model: origin.Model}, {Model: origin.Model, Form: origin.Form}} {
		switch p := h.parts[part]; {
		case p == nil || !p.active() || p.reporters.exempt(origin.Account) && (!p.cooling || !p.explicit || lastResort):
		case p.cooling:
			return StateCooling
		case part.Form != "":
			return StateFormOut
		default:
			return StateModelOut
		}
	}
	return ""
}

// Lack is a grade of a line's support for a model in a form.
type Lack int

// The grades, from full support to none.
const (
	LacksNothing Lack = iota
	LacksTools        // the form lacks tools, so a request with tools should use another form
	LacksForm         // the form is out
)

// lacks grades the line's support for a request in its form.
func (h *health) lacks(origin Origin) Lack {
	part := LinePart{Model: origin.Model, Form: origin.Form}
	if p := h.parts[part]; p != nil && p.out && !p.reporters.exempt(origin.Account) {
		return LacksForm
	}
	part.Tools = true
	if p := h.parts[part]; origin.Tools && p != nil && p.out && !p.reporters.exempt(origin.Account) {
		return LacksTools
	}
	return LacksNothing
}

// liftParts lifts the blocks on the parts of an answered request, if the request began after the
// blocks.
func (h *health) liftParts(now time.Time, origin Origin) (changes []Change) {
	if len(h.parts) == 0 {
		return nil
	}
	for _, part := range [...]LinePart{{Model: origin.Model}, {Model: origin.Model, Form: origin.Form}} {
		if p := h.parts[part]; p != nil && origin.Generation >= p.began {
			if p.active() && p.reporters.exempt(origin.Account) {
				p.limits.recordAnswer(p.reporters)
			}
			p.limits.n = 0
			changes = append(changes, h.lift(now, part)...)
		}
	}
	return changes
}

// lift ends the block on a part. It keeps a record of the block, so that late failures do not bring
// the block back.
func (h *health) lift(now time.Time, part LinePart) (changes []Change) {
	p := h.parts[part]
	if p.out && p.announced {
		changes = []Change{part.newChange(StateInService, "")}
	}
	if p.active() {
		h.generation++
		*p = block{began: h.generation, limits: p.limits}
	}
	p.until = now
	return changes
}

// newChange returns the message to the operator about a part.
func (p LinePart) newChange(state, cause string) Change {
	return Change{Model: p.Model, Form: p.Form, Tools: p.Tools, State: state, Cause: cause}
}

// blockFor returns the block on a part for a failed request, and adds the request's account to the
// reporters. It returns nil if the request began before the block.
func (h *health) blockFor(part LinePart, origin Origin) *block {
	p := h.parts[part]
	switch {
	case p == nil:
		p = &block{reporters: reportedBy(origin.Account)}
		if h.parts == nil {
			h.parts = map[LinePart]*block{}
		}
		h.parts[part] = p
	case origin.Generation < p.began:
		return nil
	case !p.active():
		p.reporters = reportedBy(origin.Account)
	default:
		p.reporters.add(origin.Account)
	}
	return p
}

// limits counts the rate limits of a line or model.
type limits struct {
	n      int             // number since the last answer
	blamed map[string]bool // accounts with limits that other accounts did not have
}

// add records a rate limit and returns the length of the pause. explicit is true if the provider
// specified the length (see health.explicit). It is false for later limits and for accounts with
// refuted limits, so that no account can prolong the pause of others.
func (l *limits) add(origin Origin, f *upstream.Failure) (pause time.Duration, explicit bool) {
	if pause = min(f.RetryAfter, maxRetryAfter); pause > 0 {
		explicit = l.n == 0 && !l.blamed[origin.Account]
	} else {
		pause = min(minCool<<min(l.n, 3), maxCool)
	}
	l.n++
	return pause, explicit
}

// recordAnswer records an answer during a pause of the accounts in r.
func (l *limits) recordAnswer(r reporters) {
	l.n = 0
	for account := range r.accounts {
		if l.blamed == nil || len(l.blamed) >= maxReporters {
			l.blamed = map[string]bool{}
		}
		l.blamed[account] = true
	}
}

// rateLimited cools the rate-limited model. It cools the whole line if the limit concerns the
// provider account, if another model is limited too, or if the line has only one model. A repeated
// overload also counts as a failure.
func (h *health) rateLimited(now time.Time, origin Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	if h.state >= circuitOpen {
		return nil
	}
	h.deleteOldPauses(now)
	whole := f.AllModels || h.serving.Models <= 1
	p := h.parts[LinePart{Model: origin.Model}]
	again := h.limits.n > 0 || p != nil && p.limits.n > 0 && origin.Generation >= p.began
	if again && (f.Status == 503 || f.Status == 529) {
		if changes := h.countFailure(now, origin, f, recent); h.state >= circuitOpen {
			return changes
		}
	}
	if whole {
		h.cool(now, origin, f)
		return nil // a pause of seconds needs no message
	}
	if p != nil && p.out {
		return nil
	}
	if p = h.blockFor(LinePart{Model: origin.Model}, origin); p == nil {
		return nil
	}
	h.generation++
	pause, explicit := p.limits.add(origin, f)
	p.until, p.since, p.cause, p.cooling, p.explicit, p.private, p.began = now.Add(pause), now, f.Error(), true, explicit, false, h.generation
	for part, other := range h.parts {
		if part.Model != origin.Model && other.cooling && now.Before(other.until) {
			h.cool(now, origin, f)
			h.reporters.join(other.reporters)
			h.verifyPause(origin)
			return nil
		}
	}
	if !origin.Job && !p.reporters.confirmed && len(p.reporters.accounts) > 1 {
		h.addUrgentDoubt(LinePart{Model: origin.Model}, false)
	}
	return nil
}

// verifyPause requests a probe for a pause of the line if several accounts were limited. A pause of
// one account needs no probe, because it does not affect other accounts.
func (h *health) verifyPause(origin Origin) {
	if !origin.Job && len(h.reporters.accounts) > 1 {
		h.verify(origin)
	}
}

// cool pauses the line.
func (h *health) cool(now time.Time, origin Origin, f *upstream.Failure) {
	pause, explicit := h.limits.add(origin, f)
	r := reportedBy(origin.Account)
	switch h.state {
	case cooling: // an exempt account was limited too
		r.join(h.reporters)
	case halfOpen:
		h.afterPause = halfOpen
	default:
		h.afterPause = healthy
	}
	h.transition(cooling, now, pause, f.Error())
	h.reporters, h.explicit = r, explicit
	h.verifyPause(origin)
}

// deleteOldPauses deletes records of pauses that ended at least openAgain ago.
func (h *health) deleteOldPauses(now time.Time) {
	for part, p := range h.parts {
		if !p.active() && now.Sub(p.until) >= openAgain {
			delete(h.parts, part)
		}
	}
}

// takeOut blocks a missing part. If a model is out in every form of the line, takeOut blocks the
// model in all forms.
func (h *health) takeOut(now time.Time, part LinePart, origin Origin, f *upstream.Failure) []Change {
	if part.Form != "" && h.serving.Forms <= 1 {
		if part.Tools {
			return nil // there is no other form
		}
		part.Form = ""
	}
	p := h.blockFor(part, origin)
	if p == nil || p.out && (p.announced || !p.reporters.confirmed) {
		return nil
	}
	h.generation++
	*p = block{out: true, cause: f.Error(), since: now, until: now.Add(accountWait), wait: accountWait,
		reporters: p.reporters, began: h.generation}
	if !p.reporters.confirmed && !origin.Job && !f.AddedField && !h.serving.Unprobeable {
		h.addUrgentDoubt(part, false)
		return nil
	}
	p.announced = true // announced even if no probe can decide
	if part.Form != "" && h.formsOut(part.Model) >= h.serving.Forms {
		for other := range h.parts {
			if other.Model == part.Model {
				delete(h.parts, other)
			}
		}
		return h.takeOut(now, LinePart{Model: part.Model}, origin, f)
	}
	if part.Form == "" {
		return []Change{part.newChange(StateModelOut, f.Error())}
	}
	return []Change{part.newChange(StateFormOut, f.Error())}
}

// formsOut returns the number of forms in which the model is out.
func (h *health) formsOut(model string) (n int) {
	for part, p := range h.parts {
		if part.Model == model && part.Form != "" && !part.Tools && p.out && p.announced {
			n++
		}
	}
	return n
}

// missingPart returns the part that is missing according to a failure.
func (h *health) missingPart(origin Origin, f *upstream.Failure) LinePart {
	if f.MissesForm() && origin.Form != "" {
		return LinePart{origin.Model, origin.Form, f.Tools}
	}
	return LinePart{Model: origin.Model}
}

// recordPartProbe records a probe of a part out of service.
func (h *health) recordPartProbe(now time.Time, part LinePart, f *upstream.Failure) []Change {
	p := h.parts[part]
	switch {
	case p == nil || !p.probing:
		return nil
	case f == nil:
		return h.lift(now, part)
	}
	p.wait = min(2*p.wait, maxAccountWait)
	p.until, p.cause, p.probing = now.Add(p.wait), f.Error(), false
	p.reporters.confirm()
	p.probes++
	return nil
}
