package health

import (
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

const (
	// doubtStreak unproven failures in a row cause a probe, and so do as many unproven failures
	// among the recent attempts as would open the circuit.
	doubtStreak = 2.0
	// doubtAgain is the shortest time between two probes of the same part. It bounds the number of
	// probes caused by clients.
	doubtAgain = time.Minute
	// confirmAgain is the shortest time between two probes that decide about a block. It is shorter
	// than doubtAgain, because all other accounts may use the line until the probe ends. A refuted
	// account cannot cause another such probe.
	confirmAgain = 10 * time.Second
)

// failureSum adds up failures by account.
type failureSum struct {
	proven   map[string]float64 // failures not caused by a request
	unproven map[string]float64 // failures that a request of this account may have caused
}

// add adds a failure with its weight.
func (b *failureSum) add(account string, weight float64, unproven bool) {
	failures := &b.proven
	if unproven {
		failures = &b.unproven
	}
	switch {
	case weight == 0:
		return
	case *failures == nil:
		*failures = map[string]float64{}
	}
	(*failures)[account] += weight
}

// total returns the sum of all failures.
func (b *failureSum) total() float64 {
	sum := 0.0
	for _, n := range b.proven {
		sum += n
	}
	for _, n := range b.unproven {
		sum += n
	}
	return sum
}

// reporters returns the accounts with at least doubtStreak failures.
func (b *failureSum) reporters() (r reporters) {
	for _, failures := range [...]map[string]float64{b.proven, b.unproven} {
		for account := range failures {
			if b.proven[account]+b.unproven[account] >= doubtStreak {
				r.add(account)
			}
		}
	}
	return r
}

// counted returns the failures counted against the line. It omits the unproven failures of the
// account with the most of them, because the requests of one account may have caused all of these.
func (b *failureSum) counted() float64 {
	largest := 0.0
	for _, n := range b.unproven {
		largest = max(largest, n)
	}
	return b.total() - largest
}

// doubt is an open question whether a part of a line works. A probe answers it.
type doubt struct {
	open    bool // whether a probe must decide
	circuit bool // whether failures are the reason; then the circuit opens if the probe fails too
	urgent  bool // whether a block waits for the answer
	probing bool
	last    time.Time // time of the last answer; zero if none
}

// addDoubt requests a probe of a part. circuit is true if failures are the reason.
func (h *health) addDoubt(part LinePart, circuit bool) {
	if h.serving.Unprobed {
		return
	}
	if h.doubts == nil {
		h.doubts = map[LinePart]*doubt{}
	}
	if h.doubts[part] == nil {
		h.doubts[part] = &doubt{}
	}
	d := h.doubts[part]
	d.open, d.circuit = true, d.circuit || circuit
}

// addUrgentDoubt requests a probe of a part with an unconfirmed block.
func (h *health) addUrgentDoubt(part LinePart, circuit bool) {
	h.addDoubt(part, circuit)
	if d := h.doubts[part]; d != nil {
		d.urgent = true
	}
}

// wait returns the shortest time between two probes of the doubt.
func (d *doubt) wait() time.Duration {
	if d.urgent {
		return confirmAgain
	}
	return doubtAgain
}

// doubtful reports whether there is an open doubt without a running probe.
func (h *health) doubtful() bool {
	for _, d := range h.doubts {
		if d.open && !d.probing {
			return true
		}
	}
	return false
}

// dueDoubts returns the doubtful parts to probe now and marks them as being probed. A line or model
// with a confirmed pause is not probed before the end of the pause.
func (h *health) dueDoubts(now time.Time) (due []Probe) {
	for part, d := range h.doubts {
		switch {
		case !d.ready(now):
		case !d.open:
			delete(h.doubts, part)
		case h.dueDoubt(now, part, d):
			d.probing = true
			due = append(due, Probe{LinePart: part, Last: h.lastAnswer.forms[part.Model]})
		}
	}
	return due
}

// ready reports whether the doubt may be probed again.
func (d *doubt) ready(now time.Time) bool {
	return !d.probing && (d.last.IsZero() || now.Sub(d.last) >= d.wait())
}

// dueDoubt reports whether to probe a doubtful part now.
func (h *health) dueDoubt(now time.Time, part LinePart, d *doubt) bool {
	model := h.parts[LinePart{Model: part.Model}]
	return d.ready(now) && (h.state != cooling || !h.reporters.confirmed) && (model == nil || !model.active() || !model.reporters.confirmed)
}

// recordDoubtProbe records the result of a probe of a doubtful part. generation is the line's
// generation at the start of the probe, and form is the form of the probe. No client influences a
// probe, so its failure applies to all accounts.
func (h *health) recordDoubtProbe(now time.Time, generation uint64, part LinePart, form wire.Form, f *upstream.Failure) (changes []Change) {
	d := h.doubts[part]
	if d == nil || !d.probing {
		return nil
	}
	circuit := d.circuit
	*d = doubt{last: now}
	if generation >= h.began {
		q := Origin{LinePart: LinePart{part.Model, form, part.Tools}, Generation: generation}
		changes = h.applyProbe(now, q, part, circuit, f)
	}
	if h.awaitsProbe(part) || h.partAwaitsProbe(part) { // the probe did not decide about the block
		h.addUrgentDoubt(part, circuit)
	}
	return changes
}

// applyProbe applies the result of a probe to the line.
func (h *health) applyProbe(now time.Time, q Origin, part LinePart, circuit bool, f *upstream.Failure) []Change {
	switch {
	case f == nil || f.Health == upstream.HealthNone && f.Code != fault.ClientClosed:
		h.streak = failureSum{}
		return append(h.stateProbed(now, part), h.partAnswered(now, part, q)...)
	case f.Health == upstream.HealthCredential:
		return h.credentialsFailed(now, q, f)
	case f.MissesModel():
		return append(h.stateProbed(now, part), h.takeOut(now, h.missingPart(q, f), q, f)...)
	case h.awaitsProbe(part):
		return h.confirmState(now, f)
	case f.Health == upstream.HealthCool:
		if !h.confirmLimit(now, part, f) { // the probe does not decide
			h.addDoubt(part, circuit)
		}
	case f.Health == upstream.HealthNone:
	case circuit:
		return h.open(now, q, reportedBy(""), f.Error())
	default:
		h.streak.add("", 1, false)
	}
	return nil
}

// awaitsProbe reports whether the line's present state waits for a probe of the part.
func (h *health) awaitsProbe(part LinePart) bool {
	return h.state != healthy && h.state != halfOpen && !h.reporters.confirmed && !h.private && h.probePart == part
}

// partAwaitsProbe reports whether the block of the part waits for a probe.
func (h *health) partAwaitsProbe(part LinePart) bool {
	p := h.parts[part]
	return p != nil && p.out && !p.reporters.confirmed && !p.announced
}

// stateProbed records that the line answered the probe for its present state. If the state was
// announced to the operator, the line becomes half-open first.
func (h *health) stateProbed(now time.Time, part LinePart) []Change {
	switch {
	case !h.awaitsProbe(part):
		return nil
	case h.state == cooling: // only the reporters are limited
		h.limits.recordAnswer(h.reporters)
		h.explicit, h.private, h.probePart = false, true, LinePart{}
		return nil
	case h.announced != healthy:
		h.blame(now, h.reporters)
		h.enter(halfOpen, now, 0, h.cause)
		return nil
	}
	return h.dismiss(now)
}

// partAnswered records that the line answered a probe of a part in a form.
func (h *health) partAnswered(now time.Time, part LinePart, q Origin) (changes []Change) {
	for _, blocked := range [...]LinePart{{Model: q.Model}, {Model: q.Model, Form: q.Form}, part} {
		p := h.parts[blocked]
		if p == nil || !p.active() || p.reporters.confirmed || q.Generation < p.began {
			continue
		}
		if p.cools {
			p.limits.recordAnswer(p.reporters)
			p.explicit, p.private = false, true
			continue
		}
		h.blame(now, p.reporters)
		changes = append(changes, h.lift(now, blocked)...)
	}
	return changes
}

// confirmState records that the probe about the line's present state failed.
func (h *health) confirmState(now time.Time, f *upstream.Failure) []Change {
	limit := f.Health == upstream.HealthCool
	switch {
	case f.Health == upstream.HealthNone, h.state == credentialsOut, h.state == cooling && !limit: // not the same failure
		return nil
	case h.state == cooling:
		h.until, h.cause = latest(h.until, now.Add(min(f.RetryAfter, maxRetryAfter))), f.Error()
		h.reporters.confirm()
		return nil // a pause of seconds needs no message
	default:
		h.until = now.Add(h.wait)
	}
	h.cause, h.untrusted = f.Error(), f.Untrusted
	h.reporters.confirm()
	return h.announce(now)
}

// confirmLimit records a rate limit of a part's probe. It reports whether the part was cooling for
// some accounts and is now cooling for all.
func (h *health) confirmLimit(now time.Time, part LinePart, f *upstream.Failure) bool {
	p := h.parts[LinePart{Model: part.Model}]
	if p == nil || !p.cools || p.reporters.confirmed {
		return false
	}
	p.until, p.cause = latest(p.until, now.Add(min(f.RetryAfter, maxRetryAfter))), f.Error()
	p.reporters.confirm()
	return true
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
