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
	return w.unavailable()
}

// unavailable is what a client is told when no line is healthy and nothing was sent.
// Chat completions get 502 and, where the time is known, Retry-After; the other forms
// get 503 and a time in any case (the door leaves the header out below /native).
func (w *walk) unavailable() *fault.Error {
	state, refusal := w.nearest()
	known := refusal.Left > 0 && !refusal.Untrusted && (state == health.StateCooling || state == health.StateCircuitOpen)
	wait := wholeSeconds(refusal.Left)
	what, advice := wordsOf(state, refusal.Untrusted)
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

// nearest returns why the line refused that is likely to be asked again first.
func (w *walk) nearest() (state string, r health.Outage) {
	best := len(nearness)
	for i := range w.order {
		c := &w.order[i]
		at := slices.Index(nearness[:], c.skipped)
		if at < 0 {
			continue
		}
		why := w.why(c)
		if at < best || at == best && why.Left < r.Left {
			best, state, r = at, c.skipped, why
		}
	}
	return state, r
}

// nearness has the reasons for which a line is passed over, the shortest first.
var nearness = [...]string{health.StateCooling, health.StateHalfOpen, health.StateCircuitOpen, health.StateFormOut, health.StateModelOut,
	health.StateCredentialsOut, stateDrained, stateOutOfService, skippedForm}

// wordsOf returns what happened, and what a person can do about it, when the request was
// refused for a reason by the line that is likely to be asked again first.
func wordsOf(state string, untrusted bool) (what, advice string) {
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

// why returns why a line was passed over.
func (w *walk) why(c *ranked) health.Outage {
	switch c.skipped {
	case "", skippedBusy, skippedForm:
		return health.Outage{}
	case stateDrained:
		return health.Outage{Cause: causeDrained}
	case stateOutOfService:
		return health.Outage{Cause: c.entry.line.Out}
	}
	return c.entry.stats.Why(w.lines.now(), w.request.origin(c.form))
}

// refusals says for the operator why each line was passed over.
func (w *walk) refusals() string {
	if len(w.order) == 0 {
		return "no line of the catalog serves the model"
	}
	var all []string
	for i := range w.order {
		c := &w.order[i]
		text := c.entry.line.ID + " " + c.skipped
		if why := w.why(c); why.Cause != "" {
			text += ": " + why.Cause
		}
		if all = append(all, text); len(all) == maxRefusals {
			break
		}
	}
	return strings.Join(all, "; ")
}

// maxRefusals bounds the lines that a failed request's log line names.
const maxRefusals = 4

// wholeSeconds rounds a wait up to whole seconds, at most maxNoneRetry; 0 stays 0.
func wholeSeconds(wait time.Duration) time.Duration {
	return (min(wait, maxNoneRetry) + time.Second - 1).Truncate(time.Second)
}
