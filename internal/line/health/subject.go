package health

import (
	"cmp"
	"iter"
	"strconv"
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

// compare orders parts: the whole line first, then by model, form and tools.
func (p LinePart) compare(q LinePart) int {
	return cmp.Or(cmp.Compare(p.Model, q.Model), cmp.Compare(p.Form, q.Form),
		cmp.Compare(strconv.FormatBool(p.Tools), strconv.FormatBool(q.Tools)))
}

// newChange returns the message to the operator about a line or part.
func (p LinePart) newChange(state, cause string) Change {
	return Change{Model: p.Model, Form: p.Form, Tools: p.Tools, State: state, Cause: cause}
}

// state decides whether requests may use a line or part.
type state int

// The states, from best to worst. A line is never missing. A part is never halfOpen, circuitOpen or
// credentialsOut.
const (
	healthy  state = iota
	cooling        // after a rate limit, until a time
	halfOpen       // after a successful probe: one request at a time, if other lines can take the rest
	circuitOpen
	credentialsOut
	missing // the provider lacks the model or form
)

// name returns the name of the state in Summary.State, and in messages about a part.
func (s state) name(part LinePart) string {
	switch s {
	case cooling:
		return StateCooling
	case halfOpen:
		return StateHalfOpen
	case circuitOpen:
		return StateCircuitOpen
	case credentialsOut:
		return StateCredentialsOut
	case missing:
		if part.Form != "" {
			return StateFormOut
		}
		return StateModelOut
	default:
		return StateInService
	}
}

// subject is the whole line or one part of it, with its state. A healthy part is kept for a while,
// because the next pause is longer if it follows soon, and late failures must not bring a block back.
type subject struct {
	part         LinePart
	state        state
	since, until time.Time // beginning of the state; end of a pause, or time of the next probe
	cause        string
	wait         time.Duration // time between probes
	limits       limits
	answers      int   // number of answers in the half-open state
	afterPause   state // the state after cooling: healthy, or half-open
	probing      bool
	probes       int // number of probes so far

	// reporters holds the accounts to which the state applies.
	reporters reporters
	// probePart is the part to probe for the decision about reporters.
	probePart LinePart
	// unverifiable is true if no probe can decide about reporters.
	unverifiable bool
	// explicit is true if the provider specified the length of a pause. Exempt accounts then use
	// the subject only as a last resort.
	explicit bool
	// private is true for a pause refuted by a probe. Such a pause applies only to its reporters.
	private bool
	// untrusted is true if an invalid certificate opened the circuit.
	untrusted bool
	// announced is the state in the last message to the operator.
	announced state
	// began is the generation at the start of the state. Attempts of earlier generations do not
	// count.
	began uint64
}

// isLine reports whether the subject is the whole line.
func (s *subject) isLine() bool { return s.part == LinePart{} }

// blocks reports whether the state refuses the requests of some accounts.
func (s *subject) blocks() bool { return s.state != healthy && s.state != halfOpen }

// refuses reports whether the state refuses a request of an account.
func (s *subject) refuses(account string, lastResort bool) bool {
	return s.blocks() && (!s.reporters.exempt(account) || s.explicit && !lastResort)
}

// isOut reports whether the operator sees the subject as out of service or cooling.
func (s *subject) isOut() bool {
	if s.state == cooling {
		return !s.private
	}
	return s.state != healthy && s.announced != healthy
}

// awaitsProbe reports whether a probe of the part decides to whom the state applies.
func (s *subject) awaitsProbe(part LinePart) bool {
	return s.blocks() && !s.reporters.confirmed && !s.private && !s.unverifiable && s.probePart == part
}

// probeWait returns the time until the subject may take requests or a probe, or 0.
func (s *subject) probeWait(now time.Time) time.Duration {
	if !s.blocks() {
		return 0
	}
	return max(0, s.until.Sub(now))
}

// subjectsOf yields the known subjects that a request depends on: the line, its model and its form.
func (h *health) subjectsOf(part LinePart) iter.Seq[*subject] {
	return func(yield func(*subject) bool) {
		if !yield(h.line) || len(h.subjects) == 1 || part.Model == "" {
			return
		}
		if s := h.subjects[LinePart{Model: part.Model}]; s != nil && !yield(s) {
			return
		}
		if s := h.subjects[LinePart{Model: part.Model, Form: part.Form}]; part.Form != "" && s != nil {
			yield(s)
		}
	}
}

// subject returns a line or part, and adds an unknown part.
func (h *health) subject(part LinePart) *subject {
	s := h.subjects[part]
	if s == nil {
		s = &subject{part: part}
		h.subjects[part] = s
	}
	return s
}

// transition begins a state. The line keeps its streak of failures.
func (h *health) transition(s *subject, next state, now time.Time, wait time.Duration, cause string) {
	s.state, s.since, s.until, s.cause = next, now, now.Add(wait), cause
	s.answers, s.probing, s.reporters, s.probePart = 0, false, reporters{}, LinePart{}
	s.unverifiable, s.explicit, s.private, s.untrusted = false, false, false, false
	h.generation++
	s.began = h.generation
}

// enter begins a state of the line and a new streak of failures.
func (h *health) enter(next state, now time.Time, wait time.Duration, cause string) {
	h.transition(h.line, next, now, wait, cause)
	h.streak = failureSum{}
}

// endPauses ends expired pauses.
func (h *health) endPauses(now time.Time) {
	for _, s := range h.subjects {
		if s.state == cooling && !now.Before(s.until) {
			h.transition(s, s.afterPause, now, 0, "")
		}
	}
}

// restore brings a subject back into service.
func (h *health) restore(now time.Time, s *subject) (changes []Change) {
	if s.isLine() {
		h.enter(healthy, now, 0, "")
		h.returnedAt = now
	} else {
		h.transition(s, healthy, now, 0, "")
	}
	if s.announced != healthy {
		changes = []Change{s.part.newChange(StateInService, "")}
	}
	s.announced = healthy
	return changes
}

// dismiss brings a subject back into service after a probe or another account got an answer. The
// reporters' own requests then caused their failures.
func (h *health) dismiss(now time.Time, s *subject) []Change {
	h.blame(now, s.reporters)
	s.wait = 0
	return h.restore(now, s)
}

// applyAnswer records an answer of a request that depends on the subject and began in its state.
func (h *health) applyAnswer(now time.Time, s *subject) []Change {
	s.limits.n = 0
	switch s.state {
	case halfOpen:
		if s.answers++; s.answers >= halfOpenAnswers {
			return h.restore(now, s)
		}
	case cooling: // the account was exempt from the pause
		s.limits.recordAnswer(s.reporters)
		h.transition(s, s.afterPause, now, 0, "")
	case circuitOpen, credentialsOut, missing:
		return h.dismiss(now, s)
	}
	return nil
}

// announce returns the message to the operator about a subject out of service, once for each state.
func (s *subject) announce() []Change {
	if s.announced == s.state {
		return nil
	}
	s.announced = s.state
	return []Change{s.part.newChange(s.state.name(s.part), s.cause)}
}

// cool pauses a subject after a rate limit.
func (h *health) cool(now time.Time, s *subject, origin Origin, f *upstream.Failure) {
	pause, explicit := s.limits.add(origin, f)
	r := reportedBy(origin.Account)
	switch s.state {
	case cooling: // an exempt account was limited too
		r.join(s.reporters)
	case halfOpen:
		s.afterPause = halfOpen
	default:
		s.afterPause = healthy
	}
	h.transition(s, cooling, now, pause, f.Error())
	s.reporters, s.explicit = r, explicit
}

// verify requests a probe to confirm the present state for all accounts.
func (h *health) verify(s *subject, origin Origin) {
	if s.reporters.confirmed {
		return
	}
	switch s.probePart = s.part; {
	case !s.isLine():
	case origin.Job: // no probe can repeat a job
		s.probePart = LinePart{Model: h.lastAnswer.model, Form: h.lastAnswer.forms[h.lastAnswer.model]}
	default:
		s.probePart = LinePart{Model: origin.Model, Form: origin.Form}
	}
	h.addUrgentDoubt(s.probePart, s.state == circuitOpen)
}

// verifyPause requests a probe for a pause if several accounts were limited. A pause of one account
// needs no probe, because it does not affect other accounts.
func (h *health) verifyPause(s *subject, origin Origin) {
	if !origin.Job && len(s.reporters.accounts) > 1 {
		h.verify(s, origin)
	}
}

// refute records that the line answered a probe of the subject. If the state of the line was announced
// to the operator, the line becomes half-open first.
func (h *health) refute(now time.Time, s *subject) []Change {
	switch {
	case s.state == cooling: // only the reporters are limited
		s.limits.recordAnswer(s.reporters)
		s.explicit, s.private, s.probePart = false, true, LinePart{}
		return nil
	case s.isLine() && s.announced != healthy:
		h.blame(now, s.reporters)
		h.enter(halfOpen, now, 0, s.cause)
		return nil
	}
	return h.dismiss(now, s)
}

// confirm records that a probe of the subject failed. The same failure confirms the state for all
// accounts.
func (s *subject) confirm(now time.Time, f *upstream.Failure) []Change {
	limit := f.Health == upstream.HealthCool
	switch {
	case f.Health == upstream.HealthNone, s.state == credentialsOut, s.state == cooling && !limit: // another failure
		return nil
	case s.state == cooling:
		s.until, s.cause = latest(s.until, now.Add(min(f.RetryAfter, maxRetryAfter))), f.Error()
		s.reporters.confirm()
		return nil // a pause of seconds needs no message
	}
	s.until = now.Add(s.wait)
	s.cause, s.untrusted = f.Error(), f.Untrusted
	s.reporters.confirm()
	return s.announce()
}

// isDue reports whether a subject out of service is due for a probe. Without a decision about its
// reporters, the probe of a doubt comes first.
func (h *health) isDue(now time.Time, s *subject) bool {
	return s.isDecided(h.serving.Unprobeable) && !s.probing && !now.Before(s.until)
}

// isDecided reports whether a subject is out of service and no probe of a doubt can change that.
func (s *subject) isDecided(unprobeable bool) bool {
	return s.state > halfOpen && (s.reporters.confirmed || s.unverifiable || unprobeable)
}

// beginProbe marks a subject as being probed and returns the number of earlier probes.
func (s *subject) beginProbe() int {
	s.probing = true
	s.probes++
	return s.probes - 1
}

// postponeProbe records a failed probe of a subject out of service. The state stays, so began keeps its
// value.
func (s *subject) postponeProbe(now time.Time, f *upstream.Failure) {
	longest := maxAccountWait
	if s.state == circuitOpen {
		longest = maxOpenWait
	}
	s.wait = min(2*s.wait, longest)
	s.until, s.cause, s.probing = now.Add(max(s.wait, f.RetryAfter)), f.Error(), false
	s.reporters.confirm()
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
