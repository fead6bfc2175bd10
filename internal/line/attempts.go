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

// Attempts chooses the lines of a model for one request, one after the other, until an attempt
// succeeds. It skips lines known to be out and lines without a free slot:
//
//	for a := attempts.Next(); a != nil; a = attempts.Next() {
//		attempts.Report(err) // of the call with a
//	}
//	err := attempts.Err()
//
// The caller must call Close. Attempts is not safe for concurrent use.
type Attempts struct {
	lines          *Lines
	ctx            context.Context
	request        RoutingRequest
	buf            [4]rankedLine
	order          []rankedLine
	lastResort     bool        // whether all usual lines were tried
	current        *Attempt    // the attempt to report, or nil
	currentLine    *rankedLine // the line of current
	done           bool
	err            error
	records        []AttemptRecord
	failures       []*upstream.Failure
	filtered       []*routingEntry // lines of providers whose filter stopped the prompt
	untranslatable error           // the reason why a line's form could not express the request
}

// Attempts returns the attempts of a request. ctx is the context of the calls.
func (l *Lines) Attempts(ctx context.Context, r RoutingRequest) *Attempts {
	w := &Attempts{lines: l, ctx: ctx, request: r}
	w.order = order(w.buf[:0], l.eligible(r), r.Conversation)
	return w
}

// Next begins the next attempt. The caller makes one call, checks the beginning of the answer, and
// passes the result to Report. Next returns nil after an answer, after a final failure, after the end
// of the context, or without another line. If no line has answered, it tries, as a last resort,
// half-open lines reserved for other requests and lines paused by another account.
func (w *Attempts) Next() *Attempt {
	for !w.done {
		c := w.next()
		switch {
		case c == nil && w.lastResort:
			w.end(w.unansweredError())
		case c == nil:
			w.lastResort = true
		case w.ctx.Err() != nil:
			w.failures = append(w.failures, upstream.ConnectionFailure(w.ctx, w.ctx.Err()))
			w.end(clientError(w.failures))
		default:
			if w.current = w.acquire(c); w.current != nil {
				w.currentLine = c
				return w.current
			}
		}
	}
	return nil
}

// Report ends the attempt of the last Next. err is nil if the answer has begun. After a
// *upstream.Failure that is not final, and after an UntranslatableError, Next continues. Any other
// error is the result of Err.
func (w *Attempts) Report(err error) {
	a := w.current
	w.current = nil
	if err != nil || a.body == nil {
		a.End()
	}
	end := w.lines.now()
	rec := AttemptRecord{Line: a.Line.ID, Ignored: a.ignoredFields, DurationMS: end.Sub(a.start).Milliseconds()}
	if err == nil {
		rec.Status, rec.FirstByteMS = 200, rec.DurationMS
		a.recordSuccess(end)
		w.end(nil)
	} else if final, err := w.handleError(a, end, &rec, err); final {
		w.end(err)
	} else {
		w.allowRetry(a, err)
	}
	w.record(rec)
}

// Err returns nil if a line has answered. The error after failed attempts is a *fault.Error. If no
// attempt was made, noLineError decides the error. When the context ends, Err returns upstream_timeout
// for a deadline and client_closed otherwise.
func (w *Attempts) Err() error { return w.err }

// Records returns the records of the attempts. The caller may change the last one.
func (w *Attempts) Records() []AttemptRecord { return w.records }

// Close ends an attempt without a report, after a panic.
func (w *Attempts) Close() {
	if w.current != nil {
		w.current.End()
	}
}

// end ends the attempts with the result of Err.
func (w *Attempts) end(err error) { w.done, w.err = true, err }

// unansweredError returns the error if no line has answered.
func (w *Attempts) unansweredError() error {
	switch {
	case len(w.failures) > 0:
		return clientError(w.failures)
	case w.untranslatable != nil && w.noneTranslatable():
		return w.untranslatable
	}
	w.recordSkips()
	return w.noLineError()
}

// allowRetry allows another attempt on a line, either with the next key after a refused key, or in
// another form if the failure names the form. If the failure does not name the form, a probe
// decides whether the form is missing.
func (w *Attempts) allowRetry(a *Attempt, err error) {
	c := w.currentLine
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
	if w.lastResort {
		c.skipped = health.StateHalfOpen
	}
}

// noneTranslatable reports whether each skipped line has the form of an attempted line, or no form. If no
// attempted line could express the request, then no skipped line could.
func (w *Attempts) noneTranslatable() bool {
	for i := range w.order {
		if c := &w.order[i]; !c.attempted && c.form != "" && !slices.ContainsFunc(w.order, func(other rankedLine) bool {
			return other.attempted && other.form == c.form
		}) {
			return false
		}
	}
	return true
}

// formFor returns the form for a request to a line: the client's form, or a form for a translation of
// the request. Of several forms it returns the form with the lowest lack (Stats.Lacks). It returns the
// empty form if the line has no such form, and never returns exclude.
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
func (w *Attempts) next() *rankedLine {
	var filtered *rankedLine
	for i := range w.order {
		c := &w.order[i]
		if c.attempted || c.final || w.lastResort && !w.isLastResort(c) || !w.lastResort && c.skipped != "" {
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

// isLastResort reports whether a skipped line may be used if no other line has answered. A cooling line
// may not be used if another line only lacks a free slot.
func (w *Attempts) isLastResort(c *rankedLine) bool {
	return c.skipped == health.StateHalfOpen || c.skipped == health.StateCooling &&
		!slices.ContainsFunc(w.order, func(other rankedLine) bool { return other.skipped == skippedBusy })
}

// isFiltered reports whether the filter of a line's provider has stopped the prompt.
func (w *Attempts) isFiltered(entry *routingEntry) bool {
	return slices.ContainsFunc(w.filtered, func(other *routingEntry) bool {
		return other.line.Provider == entry.line.Provider && other.host == entry.host
	})
}

// acquire begins an attempt on a line. If the line must be skipped, acquire sets c.skipped to the
// reason and returns nil.
func (w *Attempts) acquire(c *rankedLine) *Attempt {
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
	reason, generation, isHalfOpen := s.Admit(l.now, origin, w.lastResort)
	if reason != "" {
		c.skipped, c.final = reason, w.lastResort
		return nil
	}
	needsSlot := ln.MaxConcurrent > 0
	if needsSlot && !l.slots.Take(w.ctx, ln.ID, ln.MaxConcurrent) {
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

// maxAttemptRecords bounds the recorded attempts of one request.
const maxAttemptRecords = 64

// record adds the record of an attempt. Beyond maxAttemptRecords records, it replaces the last one.
func (w *Attempts) record(a AttemptRecord) {
	if len(w.records) < maxAttemptRecords {
		w.records = append(w.records, a)
		return
	}
	w.records[maxAttemptRecords-1] = a
}

// handleError records an attempt's error. It returns true if the error is the result of Err.
func (w *Attempts) handleError(a *Attempt, end time.Time, rec *AttemptRecord, err error) (final bool, _ error) {
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
	if failure.Code == fault.UpstreamTimeout && w.ctx.Err() != nil && len(w.failures) > 0 {
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
func (w *Attempts) recordSkips() {
	for i := range w.order {
		if c := &w.order[i]; !c.attempted {
			w.record(AttemptRecord{Line: c.entry.line.ID, Skipped: c.skipped, Cause: w.outage(c).Cause})
		}
	}
}
