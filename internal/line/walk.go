package line

import (
	"context"
	"errors"
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// The reasons for skipping a line, beside the values of Status.State and stateModelOut. skippedBusy
// means that the line has no free slot.
const (
	skippedBusy = "busy"
	skippedForm = "other_form" // the line has neither the request's form nor a form for its translation
)

// walk is the state of one call of Try.
type walk struct {
	lines          *Lines
	request        RoutingRequest
	order          []ranked
	attempts       []AttemptRecord
	failures       []*upstream.Failure
	filtered       []*routingEntry // lines of providers whose filter stopped the prompt
	untranslatable error           // why a line's form could not express the request
}

// run makes the attempts one after the other. If no other line has answered, it uses half-open
// lines reserved for other requests, and lines with a pause of another account, as a last resort.
func (w *walk) run(ctx context.Context, attempt func(ctx context.Context, a *Attempt) error) ([]AttemptRecord, error) {
	for _, lastResort := range [...]bool{false, true} {
		for c := w.next(lastResort); c != nil; c = w.next(lastResort) {
			if ctx.Err() != nil {
				w.failures = append(w.failures, upstream.Interrupted(ctx, ctx.Err()))
				return w.attempts, clientError(w.failures)
			}
			a := w.acquire(ctx, c, lastResort)
			if a == nil {
				continue
			}
			over, err := w.try(ctx, a, attempt)
			if over {
				return w.attempts, err
			}
			w.again(c, a, err, lastResort)
		}
	}
	if len(w.failures) > 0 {
		return w.attempts, clientError(w.failures)
	}
	if w.untranslatable != nil && w.noneTranslatable() {
		return w.attempts, w.untranslatable
	}
	w.skips()
	return w.attempts, w.noLineError()
}

// again allows another attempt on a line: with its next key after a refused key, or in another form
// if the failure names the form. If the failure does not name the form, a probe decides whether the
// form is missing.
func (w *walk) again(c *ranked, a *Attempt, err error, lastResort bool) {
	var f *upstream.Failure
	switch {
	case a.nextKey:
		c.turn = a.turn
	case !errors.As(err, &f) || f.Health != upstream.HealthForm || c.lacking != "" || speaks(c.entry, &w.request, c.form) == "":
		return
	default:
		c.turn, c.lacking = a.turn, c.form
	}
	c.asked = false
	if lastResort {
		c.skipped = health.StateHalfOpen
	}
}

// noneTranslatable reports whether none of the skipped lines could have expressed the request.
func (w *walk) noneTranslatable() bool {
	for i := range w.order {
		if c := &w.order[i]; !c.asked && c.form != "" {
			return false
		}
	}
	return true
}

// speaks returns the form for a request to a line: the client's form if the line has it, else a
// form for its translation, or the empty form. It prefers the first form without a lack for the
// request and never returns the form named never.
func speaks(entry *routingEntry, r *RoutingRequest, never wire.Form) (best wire.Form) {
	least := health.LacksForm + 1
	for form := range entry.line.FormsFor(r.Form) {
		if form == never || form != r.Form && len(r.Routing) > 0 { // no translation keeps routing fields
			continue
		}
		if lack := entry.stats.Lacks(r.origin(form)); lack < least {
			best, least = form, lack
		}
		if least == health.LacksNothing {
			break
		}
	}
	return best
}

// origin describes a request in a form to package health.
func (r *RoutingRequest) origin(form wire.Form) health.Origin {
	return health.Origin{LinePart: health.LinePart{Model: r.Model.ID, Form: form, Tools: r.Tools}, Account: r.Account}
}

// next returns the line to ask next: the first one, but after a provider's
// check stopped the prompt the first of another provider, if there is one.
func (w *walk) next(lastResort bool) *ranked {
	var second *ranked
	for i := range w.order {
		c := &w.order[i]
		if c.asked || c.left || lastResort && !w.isLastResort(c) || !lastResort && c.skipped != "" {
			continue
		}
		if !w.isFiltered(c.entry) {
			return c
		}
		if second == nil {
			second = c
		}
	}
	return second
}

// isLastResort reports whether a skipped line may be used if no other line has answered. A pause is
// respected if another line only lacks a free slot now.
func (w *walk) isLastResort(c *ranked) bool {
	return c.skipped == health.StateHalfOpen || c.skipped == health.StateCooling &&
		!slices.ContainsFunc(w.order, func(other ranked) bool { return other.skipped == skippedBusy })
}

// isFiltered reports whether the filter of a line's provider has stopped the prompt.
func (w *walk) isFiltered(s *routingEntry) bool {
	for _, other := range w.filtered {
		if other.line.Provider == s.line.Provider && other.host == s.host {
			return true
		}
	}
	return false
}

// acquire begins an attempt on a line. It returns nil if the line must be skipped, with the reason
// in c.
func (w *walk) acquire(ctx context.Context, c *ranked, lastResort bool) *Attempt {
	l, ln, t := w.lines, c.entry.line, c.entry.stats
	c.form = speaks(c.entry, &w.request, c.lacking)
	switch {
	case ln.Out != "":
		c.skipped = stateOutOfService
	case c.form == "":
		c.skipped = skippedForm
	case t.drained.Load():
		c.skipped = stateDrained
	default:
		c.skipped = ""
	}
	if c.skipped != "" {
		return nil
	}
	origin := w.request.origin(c.form)
	why, generation, isHalfOpen := t.Refuses(l.now, origin, lastResort)
	if why != "" {
		c.skipped, c.left = why, lastResort
		return nil
	}
	capped := ln.MaxConcurrent > 0
	if capped && !l.slots.Take(ctx, ln.ID, ln.MaxConcurrent) {
		if isHalfOpen {
			t.EndHalfOpen()
		}
		c.skipped = skippedBusy
		l.metrics.busy.WithLabelValues(ln.ID).Inc()
		return nil
	}
	c.asked = true
	origin.Generation = generation
	if c.turn.entry == nil {
		c.turn = l.turn(c.entry, "")
		c.turn.request = w.request.Account != ""
	}
	a := &Attempt{slot: capped, turn: c.turn, Candidate: Candidate{
		Line: ln, ProviderModel: ln.Models[w.request.Model.ID], Form: c.form, HalfOpen: isHalfOpen,
		lines: l, entry: c.entry, origin: origin,
	}}
	a.begin()
	return a
}

// try makes the attempt on one line and records its result. If over is true, Try returns with err.
func (w *walk) try(ctx context.Context, a *Attempt, attempt func(ctx context.Context, a *Attempt) error) (over bool, err error) {
	returned := false
	defer func() {
		if !returned { // it panicked
			a.End()
		}
	}()
	err = attempt(ctx, a)
	returned = true
	if err != nil || a.body == nil {
		a.End()
	}
	end := w.lines.now()
	rec := AttemptRecord{Line: a.Line.ID, Ignored: a.ignored, DurationMS: end.Sub(a.begun).Milliseconds()}
	if err == nil {
		rec.Status, rec.FirstByteMS = 200, rec.DurationMS
		a.succeeded(end)
		over = true
	} else {
		over, err = w.failed(ctx, a, end, &rec, err)
	}
	w.trace(rec)
	return over, err
}

// maxTrace bounds the recorded attempts of one request.
const maxTrace = 64

// trace keeps an attempt. Of a walk over very many lines the first ones are
// kept, and the last.
func (w *walk) trace(a AttemptRecord) {
	if len(w.attempts) < maxTrace {
		w.attempts = append(w.attempts, a)
		return
	}
	w.attempts[maxTrace-1] = a
}

// failed handles an attempt's error: it records a failure of the line, or returns over for an error
// that ends Try.
func (w *walk) failed(ctx context.Context, a *Attempt, end time.Time, rec *AttemptRecord, err error) (over bool, _ error) {
	var (
		failure        *upstream.Failure
		untranslatable Untranslatable
	)
	switch {
	case errors.As(err, &untranslatable):
		rec.Cause, w.untranslatable = untranslatable.Error(), untranslatable.Err
		return false, err
	case !errors.As(err, &failure):
		rec.Cause = "the attempt was given up: " + err.Error()
		return true, err
	}
	if failure.Code == fault.UpstreamTimeout && ctx.Err() != nil && len(w.failures) > 0 {
		failure.Health = upstream.HealthNone // others have used up the request's time
	}
	a.failed(end, failure)
	rec.Status, rec.Code = failure.Status, string(failure.Code)
	rec.Waste(a, w.request.Model, failure.Used)
	if failure.Cause != nil {
		rec.Cause = failure.Cause.Error()
	}
	w.failures = append(w.failures, failure)
	if failure.Code == fault.UpstreamPromptFilter {
		w.filtered = append(w.filtered, a.entry)
	}
	if failure.Final() {
		return true, clientError(w.failures)
	}
	return false, err
}

// skips records the lines if no line got the request.
func (w *walk) skips() {
	for i := range w.order {
		if c := &w.order[i]; !c.asked {
			w.trace(AttemptRecord{Line: c.entry.line.ID, Skipped: c.skipped, Cause: w.why(c).Cause})
		}
	}
}
