package health

import (
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// LinePart is a part of a line that can be cooling, or out, separately: a model, or a model in one
// form.
type LinePart struct {
	Model string
	Form  wire.Form // empty for all forms
	Tools bool      // only requests with tools
}

// block is the reason to refuse requests for a part of a line. An expired block is kept for a
// while, because a pause that follows soon is longer.
type block struct {
	out          bool // until a successful probe or an answer
	cools        bool // until the time in until
	cause        string
	since, until time.Time
	wait         time.Duration // time between probes
	reporters    reporters     // the blocked accounts
	explicit     bool          // see health.explicit
	private      bool          // see health.private
	announced    bool          // whether the operator got a message that the part is out
	limits       limits
	began        uint64 // the line's generation at the beginning; earlier attempts do not count
	probing      bool
	probes       int // number of probes so far
}

// active reports whether the part refuses requests.
func (p *block) active() bool { return p.out || p.cools }

// dueAt reports whether a part is out and due for a probe.
func (p *block) dueAt(now time.Time) bool {
	return p.out && p.announced && !p.probing && !now.Before(p.until)
}

// endPauses ends expired pauses.
func (h *health) endPauses(now time.Time) {
	if h.state == cooling && !now.Before(h.until) {
		h.transition(h.after, now, 0, "")
	}
	for _, p := range h.parts {
		p.cools = p.cools && now.Before(p.until)
	}
}

// refusesPart returns the reason why a part that the request uses refuses it, or "".
func (h *health) refusesPart(q Origin, lastResort bool) string {
	for _, part := range [...]LinePart{{Model: q.Model}, {Model: q.Model, Form: q.Form}} {
		switch p := h.parts[part]; {
		case p == nil || !p.active() || p.reporters.exempt(q.Account) && (!p.cools || !p.explicit || lastResort):
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

// Lack grades a line's support for a model in a form.
type Lack int

// The grades, from full support to none.
const (
	LacksNothing Lack = iota
	LacksTools        // the form lacks tools, so a request with tools should use another form
	LacksForm         // the form is out
)

// lacks returns the line's lack for a request in its form.
func (h *health) lacks(q Origin) Lack {
	part := LinePart{Model: q.Model, Form: q.Form}
	if p := h.parts[part]; p != nil && p.out && !p.reporters.exempt(q.Account) {
		return LacksForm
	}
	part.Tools = true
	if p := h.parts[part]; q.Tools && p != nil && p.out && !p.reporters.exempt(q.Account) {
		return LacksTools
	}
	return LacksNothing
}

// answeredPart lifts the blocks on the parts used by an answered request, if the request began
// after the blocks.
func (h *health) answeredPart(now time.Time, q Origin) (changes []Change) {
	if len(h.parts) == 0 {
		return nil
	}
	for _, part := range [...]LinePart{{Model: q.Model}, {Model: q.Model, Form: q.Form}} {
		if p := h.parts[part]; p != nil && q.Generation >= p.began {
			if p.active() && p.reporters.exempt(q.Account) {
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
		changes = []Change{part.change(StateInService, "")}
	}
	if p.active() {
		h.generation++
		*p = block{began: h.generation, limits: p.limits}
	}
	p.until = now
	return changes
}

// change returns the message to the operator about a part.
func (p LinePart) change(state, cause string) Change {
	return Change{Model: p.Model, Form: p.Form, Tools: p.Tools, State: state, Cause: cause}
}

// blockFor returns the block on a part, for a failure of q. It adds q's account to the reporters.
// It returns nil if q began before the block.
func (h *health) blockFor(part LinePart, q Origin) *block {
	p := h.parts[part]
	switch {
	case p == nil:
		p = &block{reporters: reportedBy(q.Account)}
		if h.parts == nil {
			h.parts = map[LinePart]*block{}
		}
		h.parts[part] = p
	case q.Generation < p.began:
		return nil
	case !p.active():
		p.reporters = reportedBy(q.Account)
	default:
		p.reporters.add(q.Account)
	}
	return p
}

// limits counts the rate limits of a line or model since its last answer.
type limits struct {
	n      int
	blamed map[string]bool // accounts with limits that other accounts did not have
}

// add records a rate limit and returns the length of the pause. explicit is true if the provider
// specified the length and this is the first limit since an answer; exempt accounts then use the
// line only as a last resort. It is false for accounts with refuted limits and for later limits, so
// that no account can prolong the pause of others.
func (l *limits) add(q Origin, f *upstream.Failure) (pause time.Duration, explicit bool) {
	if pause = min(f.RetryAfter, maxRetryAfter); pause > 0 {
		explicit = l.n == 0 && !l.blamed[q.Account]
	} else {
		pause = min(minCool<<min(l.n, 3), maxCool)
	}
	l.n++
	return pause, explicit
}

// recordAnswer records an answer during a pause of the accounts in by.
func (l *limits) recordAnswer(by reporters) {
	l.n = 0
	for account := range by.accounts {
		if l.blamed == nil || len(l.blamed) >= maxReporters {
			l.blamed = map[string]bool{}
		}
		l.blamed[account] = true
	}
}

// rateLimited cools the rate-limited model. It cools the whole line if the limit concerns the
// provider account, if another model is limited too, or if the line has only one model. A repeated
// overload also counts as a failure.
func (h *health) rateLimited(now time.Time, q Origin, f *upstream.Failure, recent func() (failureSum, int)) []Change {
	if h.state >= circuitOpen {
		return nil
	}
	h.deleteOldPauses(now)
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
		return nil // a pause of seconds needs no message
	}
	if p != nil && p.out {
		return nil
	}
	if p = h.blockFor(LinePart{Model: q.Model}, q); p == nil {
		return nil
	}
	h.generation++
	pause, explicit := p.limits.add(q, f)
	p.until, p.since, p.cause, p.cools, p.explicit, p.private, p.began = now.Add(pause), now, f.Error(), true, explicit, false, h.generation
	for part, other := range h.parts {
		if part.Model != q.Model && other.cools && now.Before(other.until) {
			h.cool(now, q, f)
			h.reporters.join(other.reporters)
			h.verifyPause(q)
			return nil
		}
	}
	if !q.Job && !p.reporters.confirmed && len(p.reporters.accounts) > 1 {
		h.addUrgentDoubt(LinePart{Model: q.Model}, false)
	}
	return nil
}

// verifyPause requests a probe about a pause of the line with several accounts. A pause of one
// account concerns only this account and needs no probe, so a real rate limit costs at most one
// probe for each pause.
func (h *health) verifyPause(q Origin) {
	if !q.Job && len(h.reporters.accounts) > 1 {
		h.verify(q)
	}
}

// cool pauses the line.
func (h *health) cool(now time.Time, q Origin, f *upstream.Failure) {
	pause, explicit := h.limits.add(q, f)
	by := reportedBy(q.Account)
	switch h.state {
	case cooling: // an exempt account was limited too
		by.join(h.reporters)
	case halfOpen:
		h.after = halfOpen
	default:
		h.after = healthy
	}
	h.transition(cooling, now, pause, f.Error())
	h.reporters, h.explicit = by, explicit
	h.verifyPause(q)
}

// deleteOldPauses deletes records of pauses that ended at least openAgain ago.
func (h *health) deleteOldPauses(now time.Time) {
	for part, p := range h.parts {
		if !p.active() && now.Sub(p.until) >= openAgain {
			delete(h.parts, part)
		}
	}
}

// takeOut records a missing part. If a model is out in every form of the line, the whole model is
// out.
func (h *health) takeOut(now time.Time, part LinePart, q Origin, f *upstream.Failure) []Change {
	if part.Form != "" && h.serving.Forms <= 1 {
		if part.Tools {
			return nil // there is no other form
		}
		part.Form = ""
	}
	p := h.blockFor(part, q)
	if p == nil || p.out && (p.announced || !p.reporters.confirmed) {
		return nil
	}
	h.generation++
	*p = block{out: true, cause: f.Error(), since: now, until: now.Add(accountWait), wait: accountWait,
		reporters: p.reporters, began: h.generation}
	if !p.reporters.confirmed && !q.Job && !f.Added && !h.serving.Unprobed {
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
		return h.takeOut(now, LinePart{Model: part.Model}, q, f)
	}
	if part.Form == "" {
		return []Change{part.change(StateModelOut, f.Error())}
	}
	return []Change{part.change(StateFormOut, f.Error())}
}

// formsOut returns the number of forms without the model.
func (h *health) formsOut(model string) (n int) {
	for part, p := range h.parts {
		if part.Model == model && part.Form != "" && !part.Tools && p.out && p.announced {
			n++
		}
	}
	return n
}

// missingPart returns the part that is missing according to a failure.
func (h *health) missingPart(q Origin, f *upstream.Failure) LinePart {
	if f.MissesForm() && q.Form != "" {
		return LinePart{q.Model, q.Form, f.Tools}
	}
	return LinePart{Model: q.Model}
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
