package health

import (
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

const (
	// doubtStreak unproven failures in a row are enough for a probe, and so are
	// as many of the recent attempts as would open the circuit.
	doubtStreak = 2.0
	// doubtAgain is the shortest time between two probes of the same question. It bounds the number
	// of probes that clients can cause.
	doubtAgain = time.Minute
	// confirmAgain is the shortest time between two probes that decide about a hold. It is less
	// than doubtAgain, because all other accounts may use the line until the probe is done. A
	// refuted account cannot cause another such probe.
	confirmAgain = 10 * time.Second
)

// failureSum adds up failures by account.
type failureSum struct {
	proven   map[string]float64 // not caused by a request
	unproven map[string]float64 // a request of this account may have caused them
}

// add adds a failure with its weight.
func (b *failureSum) add(account string, weight float64, unproven bool) {
	of := &b.proven
	if unproven {
		of = &b.unproven
	}
	switch {
	case weight == 0:
		return
	case *of == nil:
		*of = map[string]float64{}
	}
	(*of)[account] += weight
}

// all is all failures.
func (b *failureSum) all() float64 {
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

// counted returns the failures that count against the line. It leaves out the unproven failures of
// the account with the most of them, because the requests of one account may have caused all of
// these.
func (b *failureSum) counted() float64 {
	largest := 0.0
	for _, n := range b.unproven {
		largest = max(largest, n)
	}
	return b.all() - largest
}

// doubt is an open question whether a part of a line works. A probe answers it.
type doubt struct {
	open    bool // the question is put
	circuit bool // asked after failures: the circuit opens if the probe fails too
	urgent  bool // a hold waits for the answer
	probing bool
	last    time.Time // when it was answered last; zero if never
}

// suspect asks for a probe of a part. circuit is true if failures are the reason.
func (h *health) suspect(part LinePart, circuit bool) {
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

// urge asks for a probe of a part with an unconfirmed hold.
func (h *health) urge(part LinePart, circuit bool) {
	h.suspect(part, circuit)
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

// doubtful reports whether a question is open without a running probe.
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
func (h *health) dueDoubts(now time.Time) (due []Ask) {
	for part, d := range h.doubts {
		switch {
		case !d.ready(now):
		case !d.open:
			delete(h.doubts, part)
		case h.dueDoubt(now, part, d):
			d.probing = true
			due = append(due, Ask{LinePart: part, Last: h.worked.forms[part.Model]})
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
	return d.ready(now) && (h.state != cooling || !h.who.confirmed) && (model == nil || !model.holds() || !model.who.confirmed)
}

// resolved records the result of a probe of a doubtful part. generation is the line's generation
// when the probe began, and form is the form of the probe. No client influences a probe, so its
// failure holds for all accounts.
func (h *health) resolved(now time.Time, generation uint64, part LinePart, form wire.Form, f *upstream.Failure) (changes []Change) {
	d := h.doubts[part]
	if d == nil || !d.probing {
		return nil
	}
	circuit := d.circuit
	*d = doubt{last: now}
	if generation >= h.began {
		q := Origin{LinePart: LinePart{part.Model, form, part.Tools}, Generation: generation}
		changes = h.resolve(now, q, part, circuit, f)
	}
	if h.waitsFor(part) || h.waitsForPart(part) { // the probe did not decide about the hold
		h.urge(part, circuit)
	}
	return changes
}

// resolve applies the result of the probe.
func (h *health) resolve(now time.Time, q Origin, part LinePart, circuit bool, f *upstream.Failure) []Change {
	switch {
	case f == nil || f.Health == upstream.HealthNone && f.Code != fault.ClientClosed:
		h.streak = failureSum{}
		return append(h.works(now, part), h.worksIn(now, part, q)...)
	case f.Health == upstream.HealthCredential:
		return h.withdraw(now, q, f)
	case f.MissesModel():
		return append(h.works(now, part), h.lose(now, h.missed(q, f), q, f)...)
	case h.waitsFor(part):
		return h.meets(now, f)
	case f.Health == upstream.HealthCool:
		if !h.meetsLimit(now, part, f) { // the question is not answered
			h.suspect(part, circuit)
		}
	case f.Health == upstream.HealthNone:
	case circuit:
		return h.open(now, q, reportedBy(""), f.Error())
	default:
		h.streak.add("", 1, false)
	}
	return nil
}

// waitsFor reports whether the line's present state waits for a probe of the part.
func (h *health) waitsFor(part LinePart) bool {
	return h.state != healthy && h.state != halfOpen && !h.who.confirmed && !h.private && h.asks == part
}

// waitsForPart reports whether something held against the part waits for a probe.
func (h *health) waitsForPart(part LinePart) bool {
	p := h.parts[part]
	return p != nil && p.out && !p.who.confirmed && !p.announced
}

// works records that the line answered the probe for its present state. If the operator was told of
// the state, the line becomes half-open first.
func (h *health) works(now time.Time, part LinePart) []Change {
	switch {
	case !h.waitsFor(part):
		return nil
	case h.state == cooling: // the limit is the reporters' own
		h.limits.lifted(h.who)
		h.explicit, h.private, h.asks = false, true, LinePart{}
		return nil
	case h.announced != healthy:
		h.excuse(now, h.who)
		h.enter(halfOpen, now, 0, h.cause)
		return nil
	}
	return h.refute(now)
}

// worksIn records that the line answered a probe of a part in a form.
func (h *health) worksIn(now time.Time, part LinePart, q Origin) (changes []Change) {
	for _, held := range [...]LinePart{{Model: q.Model}, {Model: q.Model, Form: q.Form}, part} {
		p := h.parts[held]
		if p == nil || !p.holds() || p.who.confirmed || q.Generation < p.began {
			continue
		}
		if p.cools {
			p.limits.lifted(p.who)
			p.explicit, p.private = false, true
			continue
		}
		h.excuse(now, p.who)
		changes = append(changes, h.lift(now, held)...)
	}
	return changes
}

// meets records the failure of the probe for the line's present state.
func (h *health) meets(now time.Time, f *upstream.Failure) []Change {
	limit := f.Health == upstream.HealthCool
	switch {
	case f.Health == upstream.HealthNone, h.state == credentialsOut, h.state == cooling && !limit: // not the same failure
		return nil
	case h.state == cooling:
		h.until, h.cause = later(h.until, now.Add(min(f.RetryAfter, maxRetryAfter))), f.Error()
		h.who.confirm()
		return nil // a pause of seconds is not worth a message
	default:
		h.until = now.Add(h.wait)
	}
	h.cause, h.untrusted = f.Error(), f.Untrusted
	h.who.confirm()
	return h.announce(now)
}

// meetsLimit records a rate limit of a part's probe. It reports whether the part cooled for some
// accounts and now cools for all.
func (h *health) meetsLimit(now time.Time, part LinePart, f *upstream.Failure) bool {
	p := h.parts[LinePart{Model: part.Model}]
	if p == nil || !p.cools || p.who.confirmed {
		return false
	}
	p.until, p.cause = later(p.until, now.Add(min(f.RetryAfter, maxRetryAfter))), f.Error()
	p.who.confirm()
	return true
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
