package line

import (
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// clientError decides what a client is told after attempts without an answer: what
// ended the walk (a passed-on rejection, content_filter, a client that left),
// else a rejection for what one line cannot do, else a prompt that a provider's
// check stopped, else the last failure. The failures
// of all lines being rate limits, the last one is upstream_busy too.
func clientError(failures []*upstream.Failure) *fault.Error {
	last := failures[len(failures)-1]
	if last.Final() {
		return last.Fault()
	}
	for _, f := range failures {
		if f.Passed != nil {
			return f.Fault()
		}
	}
	for _, f := range failures {
		if f.Code == fault.UpstreamPromptFilter {
			return f.Fault()
		}
	}
	return last.Fault()
}

// busyRetry is when a client whose model has no free slot may try again.
const busyRetry = time.Second

// Bounds of when a client may try again whose model has no healthy line.
const (
	noneRetry    = 5 * time.Second
	maxNoneRetry = time.Minute
)

// skippedLine is what the body of a 429 says about a line (interface.md, Error
// object: attempts).
type skippedLine struct {
	Place  int    `json:"place"`
	Reason string `json:"reason"` // busy, cooling_down or unavailable
}

// noLineError is what a client is told when no line was asked (readings: No line):
// that all lines are busy if at least one is healthy and lacks only a slot,
// else that the model is not available.
func (w *walk) noLineError() *fault.Error {
	busy := false
	refusals := make([]skippedLine, 0, min(len(w.order), maxTrace))
	for i := range w.order {
		c := &w.order[i]
		reason := "unavailable"
		switch c.skipped {
		case skippedBusy:
			reason, busy = "busy", true
		case health.StateCooling:
			reason = "cooling_down"
		}
		if len(refusals) < maxTrace {
			refusals = append(refusals, skippedLine{c.place, reason})
		}
	}
	if busy {
		e := fault.New(fault.RateLimitExceeded,
			"Every line of this model is busy. The request was not sent and you were not charged; please try again in a moment.")
		e.RetryAfter, e.Fields = busyRetry, map[string]any{"attempts": refusals}
		return e
	}
	if w.request.Form == wire.FormChat {
		return (&upstream.Failure{Code: fault.UpstreamUnavailable}).Fault()
	}
	e := fault.New(fault.ServiceUnavailable, "The model is not available for a moment. You were not charged; please try again shortly.")
	e.RetryAfter = w.retryAfter()
	e.Fields = map[string]any{"retry_after": int64(e.RetryAfter / time.Second)}
	return e
}

// retryAfter is when the first of the lines may be asked again, in whole seconds.
func (w *walk) retryAfter() time.Duration {
	now := w.lines.now()
	wait := time.Duration(0)
	for i := range w.order {
		left := w.order[i].entry.stats.Left(now, w.request.Model.ID)
		if left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
	}
	if wait == 0 {
		wait = noneRetry
	}
	return min(wait, maxNoneRetry).Truncate(time.Second) + time.Second
}
