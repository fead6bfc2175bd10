package health

import (
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

const (
	// doubtStreak unproven failures in a row are enough for a probe, and so are
	// as many of the recent attempts as would open the circuit.
	doubtStreak = 2.0
	// doubtAgain is how long a probe's word on a model holds, so that nobody can
	// make the gateway probe without end.
	doubtAgain = time.Minute
)

// failureSum sums up failures by whose requests met them.
type failureSum struct {
	proven   map[string]float64 // no request has brought them about
	unproven map[string]float64 // a request of this account may have
}

// add counts a failure, by how much of one it is.
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

// alone is the account that met all of the failures but the odd one; empty: there
// is none.
func (b *failureSum) alone() string {
	all := b.all()
	for account, n := range b.proven {
		if account != "" && all-n-b.unproven[account] < doubtStreak {
			return account
		}
	}
	return ""
}

// counted is what stands against the line: the unproven failures of the account
// that has most of them do not, for it may have brought them about alone.
func (b *failureSum) counted() float64 {
	largest := 0.0
	for _, n := range b.unproven {
		largest = max(largest, n)
	}
	return b.all() - largest
}

// doubt is a question about a part of a line that is in service, which a probe
// answers: does it work?
type doubt struct {
	open    bool // the question is put
	circuit bool // failures put it: if the probe fails too, the circuit opens
	probing bool
	next    time.Time // not probed before
}

// suspect puts the question about a part; circuit says that failures did.
func (h *health) suspect(part LinePart, circuit bool) {
	if h.doubts == nil {
		h.doubts = map[LinePart]*doubt{}
	}
	if h.doubts[part] == nil {
		h.doubts[part] = &doubt{}
	}
	d := h.doubts[part]
	d.open, d.circuit = true, d.circuit || circuit
}

// dueDoubts returns what is in doubt and to be probed now; it counts as being
// probed. A line or model that was asked to be left alone for a while is.
func (h *health) dueDoubts(now time.Time) (due []Ask) {
	for part, d := range h.doubts {
		model := h.parts[LinePart{Model: part.Model}]
		switch {
		case d.probing || now.Before(d.next):
		case !d.open:
			delete(h.doubts, part)
		case h.state != cooling && (model == nil || !model.holds()):
			d.probing = true
			due = append(due, Ask{LinePart: part, Last: h.worked.forms[part.Model]})
		}
	}
	return due
}

// resolved takes in the probe of a part in doubt that began in a generation and
// asked in a form. What it met is proven, since no client had a hand in it.
func (h *health) resolved(now time.Time, generation uint64, part LinePart, form wire.Form, f *upstream.Failure) []Change {
	d := h.doubts[part]
	if d == nil || !d.probing {
		return nil
	}
	circuit := d.circuit
	*d = doubt{next: now.Add(doubtAgain)}
	switch {
	case generation < h.began:
		return nil
	case f == nil:
		h.streak = failureSum{}
		return nil
	}
	q := Origin{LinePart: LinePart{part.Model, form, part.Tools}, Generation: generation}
	switch f.Health {
	case upstream.HealthCredential:
		return h.withdraw(now, "", f)
	case upstream.HealthModel, upstream.HealthForm:
		return h.lose(now, h.missed(q, f), q, f)
	case upstream.HealthFail, upstream.HealthHalf:
		if circuit {
			return h.open(now, "", f.Error())
		}
		h.streak.add("", 1, false)
	case upstream.HealthCool: // it has not answered the question
		d.open, d.circuit = true, circuit
	}
	return nil
}
