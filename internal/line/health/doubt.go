package health

import (
	"time"

	"tollgate/internal/upstream"
)

const (
	// doubtStreak unproven failures in a row are enough for a probe, and so are
	// as many of the recent attempts as would open the circuit.
	doubtStreak = 2.0
	// doubtAgain is how long a probe's word on a model holds, so that nobody can
	// make the gateway probe without end.
	doubtAgain = time.Minute
)

// failureSum sums up failures by who may have brought them about.
type failureSum struct {
	proven   float64            // no request has
	unproven map[string]float64 // a request of this account may have
}

// add counts a failure, by how much of one it is.
func (b *failureSum) add(account string, weight float64, unproven bool) {
	switch {
	case weight == 0:
	case !unproven:
		b.proven += weight
	default:
		if b.unproven == nil {
			b.unproven = map[string]float64{}
		}
		b.unproven[account] += weight
	}
}

// all is all failures.
func (b *failureSum) all() float64 {
	sum := b.proven
	for _, n := range b.unproven {
		sum += n
	}
	return sum
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

// doubt is a question about a model on a line that is in service, which a probe
// answers: does it work?
type doubt struct {
	open    bool // the question is put
	circuit bool // failures put it: if the probe fails too, the circuit opens
	probing bool
	next    time.Time // not probed before
}

// suspect puts the question about a model; circuit says that failures did.
func (h *health) suspect(model string, circuit bool) {
	if h.doubts == nil {
		h.doubts = map[string]*doubt{}
	}
	if h.doubts[model] == nil {
		h.doubts[model] = &doubt{}
	}
	d := h.doubts[model]
	d.open, d.circuit = true, d.circuit || circuit
}

// dueDoubts returns the models in doubt that are to be probed now; they count as
// being probed. A line that was asked to be left alone for a while is.
func (h *health) dueDoubts(now time.Time) (models []string) {
	for model, d := range h.doubts {
		switch {
		case d.probing || now.Before(d.next):
		case !d.open:
			delete(h.doubts, model)
		case h.state != cooling:
			d.probing = true
			models = append(models, model)
		}
	}
	return models
}

// resolved takes in the probe of a model in doubt that began in a generation.
// What it
// met is proven, since no client had a hand in it.
func (h *health) resolved(now time.Time, generation uint64, model string, f *upstream.Failure) []Change {
	d := h.doubts[model]
	if d == nil || !d.probing {
		return nil
	}
	circuit := d.circuit
	*d = doubt{next: now.Add(doubtAgain)}
	switch {
	case generation != h.generation:
		return nil
	case f == nil:
		h.streak = failureSum{}
		return nil
	}
	switch f.Health {
	case upstream.HealthCredential:
		return h.withdraw(now, f)
	case upstream.HealthModel:
		return h.lose(now, model, f)
	case upstream.HealthFail, upstream.HealthHalf:
		if circuit {
			return h.open(now, f.Error())
		}
		h.streak.add("", 1, false)
	case upstream.HealthCool: // it has not answered the question
		d.open, d.circuit = true, circuit
	}
	return nil
}
