package line

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// clientError returns the client's error after attempts without an answer. It prefers a final
// failure (a passed-on rejection, content_filter, a disconnected client), then a rejection by one
// line, then a prompt stopped by a provider's filter, and then the last failure. If all failures
// are rate limits, the error is upstream_busy.
func clientError(failures []*upstream.Failure) *fault.Error {
	last := failures[len(failures)-1]
	if last.Final() {
		return last.Fault()
	}
	for _, f := range failures {
		if f.Rejection != nil {
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

// busyRetry is the Retry-After if the model has no free slot.
const busyRetry = time.Second

// Bounds of Retry-After if the model has no healthy line.
const (
	noneRetry    = 5 * time.Second
	maxNoneRetry = time.Minute
)

// skippedLine describes a line in the body of a 429 (interface.md, Error object: attempts).
type skippedLine struct {
	Place  int    `json:"place"`
	Reason string `json:"reason"` // busy, cooling_down or unavailable
}

// noLineError returns the client's error if no line got the request: all lines are busy if at least
// one healthy line lacks only a slot, else the model is unavailable.
func (w *routing) noLineError() *fault.Error {
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
			refusals = append(refusals, skippedLine{c.position, reason})
		}
	}
	if busy {
		e := fault.New(fault.RateLimitExceeded,
			"Every line of this model is busy. The request was not sent and you were not charged; please try again in a moment.")
		e.RetryAfter, e.Fields = busyRetry, map[string]any{"attempts": refusals}
		return e
	}
	return w.unavailable()
}

// unavailable returns the client's error if no line is healthy and no line got the request. Chat
// completions get 502, with Retry-After if the time is known. The other forms get 503 and always a
// time (the HTTP layer omits the header below /native).
func (w *routing) unavailable() *fault.Error {
	state, refusal := w.nearest()
	known := refusal.Wait > 0 && !refusal.Untrusted && (state == health.StateCooling || state == health.StateCircuitOpen)
	wait := wholeSeconds(refusal.Wait)
	what, advice := explain(state, refusal.Untrusted)
	if known {
		advice = fmt.Sprintf("please try again in %d s, or use another model.", wait/time.Second)
	}
	code := fault.UpstreamUnavailable
	if w.request.Form != wire.FormChat {
		code = fault.ServiceUnavailable
		if wait == 0 {
			wait = noneRetry
		}
		known = true
	}
	e := fault.New(code, "%s The request was not sent and you were not charged; %s", what, advice).
		WithCause(&upstream.Failure{Code: fault.UpstreamUnavailable, Cause: errors.New(w.refusals())})
	if known {
		e.RetryAfter = wait
		e.Fields = map[string]any{"retry_after": int64(wait / time.Second)}
	}
	return e
}

// nearest returns the state and outage of the line that will probably return first.
func (w *routing) nearest() (state string, r health.Outage) {
	best := len(nearness)
	for i := range w.order {
		c := &w.order[i]
		at := slices.Index(nearness[:], c.skipped)
		if at < 0 {
			continue
		}
		why := w.outage(c)
		if at < best || at == best && why.Wait < r.Wait {
			best, state, r = at, c.skipped, why
		}
	}
	return state, r
}

// nearness lists the reasons for skipping a line, from the shortest to the longest.
var nearness = [...]string{health.StateCooling, health.StateHalfOpen, health.StateCircuitOpen, health.StateFormOut, health.StateModelOut,
	health.StateCredentialsOut, stateDrained, stateOutOfService, skippedForm}

// explain returns the event and the advice for a state returned by nearest.
func explain(state string, untrusted bool) (what, advice string) {
	switch state {
	case health.StateCooling:
		return "The model's provider is limiting requests at the moment.", upstream.AdviseLater
	case health.StateHalfOpen, health.StateCircuitOpen:
		if untrusted {
			return upstream.SaysUntrusted, upstream.AdviseElsewhere
		}
		return "The model's provider has failed repeatedly.", upstream.AdviseLater
	case health.StateFormOut, health.StateModelOut:
		return upstream.SaysMissing, upstream.AdviseElsewhere
	case health.StateCredentialsOut:
		return upstream.SaysRefused, upstream.AdviseElsewhere
	case stateDrained:
		return "The operator of this service has taken the model out of use for now.", "please use another model, or try again later."
	default:
		return "No provider of this model is ready for the request.", upstream.AdviseElsewhere
	}
}

// outage returns the reason for skipping a line.
func (w *routing) outage(c *rankedLine) health.Outage {
	switch c.skipped {
	case "", skippedBusy, skippedForm:
		return health.Outage{}
	case stateDrained:
		return health.Outage{Cause: causeDrained}
	case stateOutOfService:
		return health.Outage{Cause: c.entry.line.UnusableReason}
	}
	return c.entry.stats.Outage(w.lines.now(), w.request.origin(c.form))
}

// refusals describes the reason for skipping each line, for the operator.
func (w *routing) refusals() string {
	if len(w.order) == 0 {
		return "no line of the catalog serves the model"
	}
	var all []string
	for i := range w.order {
		c := &w.order[i]
		text := c.entry.line.ID + " " + c.skipped
		if why := w.outage(c); why.Cause != "" {
			text += ": " + why.Cause
		}
		if all = append(all, text); len(all) == maxRefusals {
			break
		}
	}
	return strings.Join(all, "; ")
}

// maxRefusals bounds the lines in the log line of a failed request.
const maxRefusals = 4

// wholeSeconds rounds a wait up to whole seconds, at most maxNoneRetry; 0 remains 0.
func wholeSeconds(wait time.Duration) time.Duration {
	return (min(wait, maxNoneRetry) + time.Second - 1).Truncate(time.Second)
}
