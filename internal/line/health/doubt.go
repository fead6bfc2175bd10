package health

import (
	"iter"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

const (
	// doubtStreak failures in a row cause a probe if the last one is unproven. So do recent failures
	// that would open the circuit if they were proven.
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
func (s *failureSum) add(account string, weight float64, unproven bool) {
	failures := &s.proven
	if unproven {
		failures = &s.unproven
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
func (s *failureSum) total() float64 {
	sum := 0.0
	for _, n := range s.proven {
		sum += n
	}
	for _, n := range s.unproven {
		sum += n
	}
	return sum
}

// reporters returns the accounts with at least doubtStreak failures.
func (s *failureSum) reporters() (r reporters) {
	for _, failures := range [...]map[string]float64{s.proven, s.unproven} {
		for account := range failures {
			if s.proven[account]+s.unproven[account] >= doubtStreak {
				r.add(account)
			}
		}
	}
	return r
}

// lineFailures adds up the failures counted against the line. It omits the unproven failures of the
// account with the most unproven failures, because this account's requests may have caused them.
func (s *failureSum) lineFailures() float64 {
	largest := 0.0
	for _, n := range s.unproven {
		largest = max(largest, n)
	}
	return s.total() - largest
}

// doubt is an open question whether a part of a line works. A probe answers it.
type doubt struct {
	open      bool // whether a probe must decide
	circuit   bool // whether failures are the reason; then the circuit opens if the probe fails too
	urgent    bool // whether a block waits for the probe
	probing   bool
	lastProbe time.Time // end of the last probe, or zero
}

// addDoubt requests a probe of a part. circuit is true if failures are the reason.
func (h *health) addDoubt(part LinePart, circuit bool) {
	if h.serving.Unprobeable {
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
		case h.isDoubtDue(now, part, d):
			d.probing = true
			due = append(due, Probe{LinePart: part, LastForm: h.lastAnswer.forms[part.Model]})
		}
	}
	return due
}

// ready reports whether the doubt may be probed again.
func (d *doubt) ready(now time.Time) bool {
	return !d.probing && (d.lastProbe.IsZero() || now.Sub(d.lastProbe) >= d.wait())
}

// isDoubtDue reports whether to probe a doubtful part now.
func (h *health) isDoubtDue(now time.Time, part LinePart, d *doubt) bool {
	model := h.subjects[LinePart{Model: part.Model}]
	return d.ready(now) && (h.line.state != cooling || !h.line.reporters.confirmed) &&
		(model == nil || !model.blocks() || !model.reporters.confirmed)
}

// recordDoubtProbe records the result of probing a doubtful part. generation is the line's
// generation at the start of the probe, and form is the form of the probe. A failure applies to all
// accounts, because no client influences a probe.
func (h *health) recordDoubtProbe(now time.Time, generation uint64, part LinePart, form wire.Form, f *upstream.Failure) (changes []Change) {
	d := h.doubts[part]
	if d == nil || !d.probing {
		return nil
	}
	circuit := d.circuit
	*d = doubt{lastProbe: now}
	if generation >= h.line.began {
		origin := Origin{LinePart: LinePart{part.Model, form, part.Tools}, Generation: generation}
		changes = h.applyProbe(now, origin, part, circuit, f)
	}
	for s := range h.doubtedSubjects(part) {
		if s.awaitsProbe(part) { // the probe did not decide about the state
			h.addUrgentDoubt(part, circuit)
		}
	}
	return changes
}

// doubtedSubjects yields the subjects whose state may wait for the probe of a part.
func (h *health) doubtedSubjects(part LinePart) iter.Seq[*subject] {
	return func(yield func(*subject) bool) {
		if s := h.subjects[part]; yield(h.line) && s != nil && s != h.line {
			yield(s)
		}
	}
}

// applyProbe applies the result of a probe to the line.
func (h *health) applyProbe(now time.Time, origin Origin, part LinePart, circuit bool, f *upstream.Failure) (changes []Change) {
	switch {
	case f == nil || f.Health == upstream.HealthNone && f.Code != fault.ClientClosed:
		h.streak = failureSum{}
		return append(h.refuteLine(now, part), h.refuteParts(now, part, origin)...)
	case f.Health == upstream.HealthCredential:
		return h.credentialsFailed(now, origin, f)
	case f.MissesModel():
		return append(h.refuteLine(now, part), h.takeOut(now, h.missingPart(origin, f), origin, f)...)
	case h.line.awaitsProbe(part):
		return h.line.confirm(now, f)
	case f.Health == upstream.HealthCool:
		model := h.subjects[LinePart{Model: part.Model}]
		if model == nil || model.state != cooling || model.reporters.confirmed { // the probe does not decide
			h.addDoubt(part, circuit)
			return nil
		}
		return model.confirm(now, f)
	case f.Health == upstream.HealthNone:
	case circuit:
		return h.open(now, origin, reportedBy(""), f.Error())
	default:
		h.streak.add("", 1, false)
	}
	return nil
}

// refuteLine records that the line answered the probe for its present state.
func (h *health) refuteLine(now time.Time, part LinePart) []Change {
	if !h.line.awaitsProbe(part) {
		return nil
	}
	return h.refute(now, h.line)
}

// refuteParts records that the line answered a probe of a part.
func (h *health) refuteParts(now time.Time, part LinePart, origin Origin) (changes []Change) {
	for _, blocked := range [...]LinePart{{Model: origin.Model}, {Model: origin.Model, Form: origin.Form}, part} {
		if s := h.subjects[blocked]; s != nil && !s.isLine() && s.blocks() && !s.reporters.confirmed && origin.Generation >= s.began {
			changes = append(changes, h.refute(now, s)...)
		}
	}
	return changes
}
