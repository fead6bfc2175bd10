package health

import (
	"time"

	"tollgate/internal/upstream"
)

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
	isOut := func(tools bool) bool {
		s := h.subjects[LinePart{Model: origin.Model, Form: origin.Form, Tools: tools}]
		return s != nil && s.state == missing && !s.reporters.exempt(origin.Account)
	}
	switch {
	case isOut(false):
		return LacksForm
	case origin.Tools && isOut(true):
		return LacksTools
	}
	return LacksNothing
}

// limits counts the rate limits of a line or model.
type limits struct {
	n      int             // number since the last answer
	blamed map[string]bool // accounts with limits that other accounts did not have
}

// add records a rate limit and returns the length of the pause. explicit is true if the provider
// specified the length (see subject.explicit). explicit is false for later limits and for accounts with
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
	if h.line.state >= circuitOpen {
		return nil
	}
	h.deleteOldParts(now)
	model := h.subjects[LinePart{Model: origin.Model}]
	isLate := model != nil && origin.Generation < model.began
	again := h.line.limits.n > 0 || model != nil && model.limits.n > 0 && !isLate
	if again && (f.Status == 503 || f.Status == 529) {
		if changes := h.countFailure(now, origin, f, recent); h.line.state >= circuitOpen {
			return changes
		}
	}
	switch {
	case f.AllModels || h.serving.Models <= 1:
		h.cool(now, h.line, origin, f)
		h.verifyPause(h.line, origin)
		return nil // a pause of seconds needs no message
	case model != nil && model.state == missing, isLate:
		return nil
	}
	model = h.subject(LinePart{Model: origin.Model})
	h.cool(now, model, origin, f)
	for part, other := range h.subjects {
		if part.Model != origin.Model && part.Model != "" && other.state == cooling && now.Before(other.until) {
			h.cool(now, h.line, origin, f)
			h.line.reporters.join(other.reporters)
			h.verifyPause(h.line, origin)
			return nil
		}
	}
	h.verifyPause(model, origin)
	return nil
}

// deleteOldParts deletes parts that have been healthy for openAgain.
func (h *health) deleteOldParts(now time.Time) {
	for part, s := range h.subjects {
		if !s.isLine() && s.state == healthy && now.Sub(s.until) >= openAgain {
			delete(h.subjects, part)
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
	s := h.subject(part)
	if origin.Generation < s.began {
		return nil
	}
	r := reporters{}
	if s.state == missing {
		r = s.reporters
	}
	r.add(origin.Account)
	if s.state == missing && (s.announced == missing || !r.confirmed) {
		s.reporters = r
		return nil
	}
	h.transition(s, missing, now, accountWait, f.Error())
	s.wait, s.reporters = accountWait, r
	if !r.confirmed && !origin.Job && !f.AddedField && !h.serving.Unprobeable {
		h.verify(s, origin)
		return nil
	}
	s.unverifiable = !r.confirmed
	if changes := s.announce(); part.Form == "" || h.formsOut(part.Model) < h.serving.Forms {
		return changes
	}
	for other := range h.subjects {
		if other.Model == part.Model {
			delete(h.subjects, other)
		}
	}
	return h.takeOut(now, LinePart{Model: part.Model}, origin, f)
}

// formsOut returns the number of forms in which the model is out.
func (h *health) formsOut(model string) (n int) {
	for part, s := range h.subjects {
		if part.Model == model && part.Form != "" && !part.Tools && s.announced == missing {
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
