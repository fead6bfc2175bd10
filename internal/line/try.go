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

// The reasons for skipping a line, besides the values of Status.State and health.StateModelOut.
const (
	skippedBusy = "busy"       // the line has no free slot
	skippedForm = "other_form" // the line has neither the request's form nor a form for its translation
)

// routing is the state of one call of Try.
type routing struct {
	lines          *Lines
	request        RoutingRequest
	order          []rankedLine
	attempts       []AttemptRecord
	failures       []*upstream.Failure
	filtered       []*routingEntry // lines of providers whose filter stopped the prompt
	untranslatable error           // the reason why a line's form could not express the request
}

// run makes the attempts one after the other. If no line has answered, it tries, as a last resort,
// half-open lines reserved for other requests and lines paused by another account.
func (w *routing) run(ctx context.Context, attempt func(ctx context.Context, a *Attempt) error) ([]AttemptRecord, error) {
	for _, lastResort := range [...]bool{false, true} {
		for c := w.next(lastResort); c != nil; c = w.next(lastResort) {
			if ctx.Err() != nil {
				w.failures = append(w.failures, upstream.ConnectionFailure(ctx, ctx.Err()))
				return w.attempts, clientError(w.failures)
			}
			a := w.acquire(ctx, c, lastResort)
			if a == nil {
				continue
			}
			done, err := w.try(ctx, a, attempt)
			if done {
				return w.attempts, err
			}
			w.allowRetry(c, a, err, lastResort)
		}
	}
	if len(w.failures) > 0 {
		return w.attempts, clientError(w.failures)
	}
	if w.untranslatable != nil && w.noneTranslatable() {
		return w.attempts, w.untranslatable
	}
	w.recordSkips()
	return w.attempts, w.noLineError()
}

// allowRetry allows another attempt on a line, either with the next key after a refused key, or in
// another form if the failure names the form. If the failure does not name the form, a probe
// decides whether the form is missing.
func (w *routing) allowRetry(c *rankedLine, a *Attempt, err error, lastResort bool) {
	var f *upstream.Failure
	switch {
	case a.nextKey:
		c.selector = a.selector
	case !errors.As(err, &f) || f.Health != upstream.HealthForm || c.missingForm != "" || formFor(c.entry, &w.request, c.form) == "":
		return
	default:
		c.selector, c.missingForm = a.selector, c.form
	}
	c.attempted = false
	if lastResort {
		c.skipped = health.StateHalfOpen
	}
}

// noneTranslatable reports whether none of the skipped lines could have expressed the request.
func (w *routing) noneTranslatable() bool {
	for i := range w.order {
		if c := &w.order[i]; !c.attempted && c.form != "" {
			return false
		}
	}
	return true
}

// formFor returns the form for a request to a line: the client's form, or a form that the request
// can be translated to. It returns the form with the least lack, or the empty form if the line has
// no such form. It never returns exclude.
func formFor(entry *routingEntry, r *RoutingRequest, exclude wire.Form) (best wire.Form) {
	leastLack := health.LacksForm + 1
	for form := range entry.line.FormsFor(r.Form) {
		if form == exclude || form != r.Form && len(r.Routing) > 0 { // requests with routing fields are not translated
			continue
		}
		if lack := entry.stats.Lacks(r.origin(form)); lack < leastLack {
			best, leastLack = form, lack
		}
		if leastLack == health.LacksNothing {
			break
		}
	}
	return best
}

// origin describes a request in a form for package health.
func (r *RoutingRequest) origin(form wire.Form) health.Origin {
	return health.Origin{LinePart: health.LinePart{Model: r.Model.ID, Form: form, Tools: r.Tools}, Account: r.Account}
}

// next returns the next line to try, or nil. If a provider's filter has stopped the prompt, the
// lines of this provider come last.
func (w *routing) next(lastResort bool) *rankedLine {
	var filtered *rankedLine
	for i := range w.order {
		c := &w.order[i]
		if c.attempted || c.final || lastResort && !w.isLastResort(c) || !lastResort && c.skipped != "" {
			continue
		}
		if !w.isFiltered(c.entry) {
			return c
		}
		if filtered == nil {
			filtered = c
		}
	}
	return filtered
}

// isLastResort reports whether a skipped line may be used if no other line has answered. A paused
// line may not if another line only lacks a free slot.
func (w *routing) isLastResort(c *rankedLine) bool {
	return c.skipped == health.StateHalfOpen || c.skipped == health.StateCooling &&
		!slices.ContainsFunc(w.order, func(other rankedLine) bool { return other.skipped == skippedBusy })
}

// isFiltered reports whether the filter of a line's provider has stopped the prompt.
func (w *routing) isFiltered(entry *routingEntry) bool {
	return slices.ContainsFunc(w.filtered, func(other *routingEntry) bool {
		return other.line.Provider == entry.line.Provider && other.host == entry.host
	})
}

// acquire begins an attempt on a line. If the line must be skipped, acquire sets c.skipped to the
// reason and returns nil.
func (w *routing) acquire(ctx context.Context, c *rankedLine, lastResort bool) *Attempt {
	l, ln, s := w.lines, c.entry.line, c.entry.stats
	c.form = formFor(c.entry, &w.request, c.missingForm)
	switch {
	case ln.UnusableReason != "":
		c.skipped = stateOutOfService
	case c.form == "":
		c.skipped = skippedForm
	case s.drained.Load():
		c.skipped = stateDrained
	default:
		c.skipped = ""
	}
	if c.skipped != "" {
		return nil
	}
	origin := w.request.origin(c.form)
	reason, generation, isHalfOpen := s.Admit(l.now, origin, lastResort)
	if reason != "" {
		c.skipped, c.final = reason, lastResort
		return nil
	}
	needsSlot := ln.MaxConcurrent > 0
	if needsSlot && !l.slots.Take(ctx, ln.ID, ln.MaxConcurrent) {
		if isHalfOpen {
			s.EndHalfOpen()
		}
		c.skipped = skippedBusy
		l.metrics.busySkips.WithLabelValues(ln.ID).Inc()
		return nil
	}
	c.attempted = true
	origin.Generation = generation
	if c.selector.entry == nil {
		c.selector = l.selectKey(c.entry, "")
		c.selector.forRequest = w.request.Account != ""
	}
	a := &Attempt{hasSlot: needsSlot, selector: c.selector, Candidate: Candidate{
		Line: ln, ProviderModel: ln.Models[w.request.Model.ID], Form: c.form, HalfOpen: isHalfOpen,
		lines: l, entry: c.entry, origin: origin,
	}}
	a.begin()
	return a
}

// try makes the attempt on one line and records its result. If done is true, Try returns err.
func (w *routing) try(ctx context.Context, a *Attempt, attempt func(ctx context.Context, a *Attempt) error) (done bool, err error) {
	returned := false
	defer func() {
		if !returned { // attempt panicked
			a.End()
		}
	}()
	err = attempt(ctx, a)
	returned = true
	if err != nil || a.body == nil {
		a.End()
	}
	end := w.lines.now()
	rec := AttemptRecord{Line: a.Line.ID, Ignored: a.ignoredFields, DurationMS: end.Sub(a.start).Milliseconds()}
	if err == nil {
		rec.Status, rec.FirstByteMS = 200, rec.DurationMS
		a.recordSuccess(end)
		done = true
	} else {
		done, err = w.handleError(ctx, a, end, &rec, err)
	}
	w.record(rec)
	return done, err
}

// maxAttemptRecords bounds the recorded attempts of one request.
const maxAttemptRecords = 64

// record adds the record of an attempt. Beyond maxAttemptRecords records, it replaces the last one.
func (w *routing) record(a AttemptRecord) {
	if len(w.attempts) < maxAttemptRecords {
		w.attempts = append(w.attempts, a)
		return
	}
	w.attempts[maxAttemptRecords-1] = a
}

// handleError records an attempt's error. It returns true if the error ends Try.
func (w *routing) handleError(ctx context.Context, a *Attempt, end time.Time, rec *AttemptRecord, err error) (done bool, _ error) {
	var (
		failure        *upstream.Failure
		untranslatable UntranslatableError
	)
	switch {
	case errors.As(err, &untranslatable):
		rec.Cause, w.untranslatable = untranslatable.Error(), untranslatable.Err
		return false, err
	case !errors.As(err, &failure):
		rec.Cause = "the attempt was abandoned: " + err.Error()
		return true, err
	}
	if failure.Code == fault.UpstreamTimeout && ctx.Err() != nil && len(w.failures) > 0 {
		failure.Health = upstream.HealthNone // earlier attempts used up the request's time
	}
	a.recordFailure(end, failure)
	rec.Status, rec.Code = failure.Status, string(failure.Code)
	rec.RecordWaste(a, w.request.Model, failure.Tokens)
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

// recordSkips records the skipped lines in the request log.
func (w *routing) recordSkips() {
	for i := range w.order {
		if c := &w.order[i]; !c.attempted {
			w.record(AttemptRecord{Line: c.entry.line.ID, Skipped: c.skipped, Cause: w.outage(c).Cause})
		}
	}
}
