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
// failure (a rejection for the client, content_filter, a disconnected client), then a rejection by
// one line, then a prompt stopped by a provider's filter, and then the last failure.
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
	noLineRetry    = 5 * time.Second
	maxNoLineRetry = time.Minute
)

// skippedLine is an element of `attempts` in the body of a 429 (interface.md, Error object).
type skippedLine struct {
	Place  int    `json:"place"`
	Reason string `json:"reason"` // busy, cooling_down or unavailable
}

// noLineError returns the client's error if no line got the request. It is rate_limit_exceeded if a
// healthy line lacks only a free slot; otherwise the model is unavailable.
func (w *Attempts) noLineError() *fault.Error {
	busy := false
	skippedLines := make([]skippedLine, 0, min(len(w.order), maxAttemptRecords))
	for i := range w.order {
		c := &w.order[i]
		reason := "unavailable"
		switch c.skipped {
		case skippedBusy:
			reason, busy = "busy", true
		case health.StateCooling:
			reason = "cooling_down"
		}
		if len(skippedLines) < maxAttemptRecords {
			skippedLines = append(skippedLines, skippedLine{c.position, reason})
		}
	}
	if busy {
		e := fault.New(fault.RateLimitExceeded,
			"Every line of this model is busy. The request was not sent and you were not charged; please try again in a moment.")
		e.RetryAfter, e.Fields = busyRetry, map[string]any{"attempts": skippedLines}
		return e
	}
	return w.unavailableError()
}

// unavailableError returns the client's error if no line is healthy. Requests in the responses, the
// messages and the Gemini form get 503, always with Retry-After (the HTTP layer omits the header below /native).
// Other requests get 502, with Retry-After if the wait is known.
func (w *Attempts) unavailableError() *fault.Error {
	state, outage := w.nearest()
	hasWait := outage.Wait > 0 && !outage.Untrusted && (state == health.StateCooling || state == health.StateCircuitOpen)
	wait := wholeSeconds(outage.Wait)
	what, advice := explain(state, outage.Untrusted)
	if hasWait {
		advice = fmt.Sprintf("please try again in %d s, or use another model.", wait/time.Second)
	}
	code := fault.UpstreamUnavailable
	switch w.request.Form {
	case wire.FormResponses, wire.FormMessages, wire.FormGemini:
		code = fault.ServiceUnavailable
		if wait == 0 {
			wait = noLineRetry
		}
		hasWait = true
	}
	e := fault.New(code, "%s The request was not sent and you were not charged; %s", what, advice).
		WithCause(&upstream.Failure{Code: fault.UpstreamUnavailable, Cause: errors.New(w.skipReasons())})
	if hasWait {
		e.RetryAfter = wait
		e.Fields = map[string]any{"retry_after": int64(wait / time.Second)}
	}
	return e
}

// nearest returns the state and outage of the line that will probably return first.
func (w *Attempts) nearest() (state string, nearestOutage health.Outage) {
	bestRank := len(nearness)
	for i := range w.order {
		c := &w.order[i]
		rank := slices.Index(nearness[:], c.skipped)
		if rank < 0 {
			continue
		}
		outage := w.outage(c)
		if rank < bestRank || rank == bestRank && outage.Wait < nearestOutage.Wait {
			bestRank, state, nearestOutage = rank, c.skipped, outage
		}
	}
	return state, nearestOutage
}

// nearness lists the reasons for skipping a line, from the shortest to the longest expected outage.
var nearness = [...]string{health.StateCooling, health.StateHalfOpen, health.StateCircuitOpen, health.StateFormOut, health.StateModelOut,
	health.StateCredentialsOut, stateDrained, stateOutOfService, skippedForm}

// explain returns what happened and the advice for the client, for a state returned by nearest.
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
func (w *Attempts) outage(c *rankedLine) health.Outage {
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

// skipReasons describes the reasons for skipping the first lines, for the operator.
func (w *Attempts) skipReasons() string {
	if len(w.order) == 0 {
		return "no line of the catalog serves the model"
	}
	var all []string
	for i := range w.order {
		c := &w.order[i]
		text := c.entry.line.ID + " " + c.skipped
		if outage := w.outage(c); outage.Cause != "" {
			text += ": " + outage.Cause
		}
		if all = append(all, text); len(all) == maxSkipReasons {
			break
		}
	}
	return strings.Join(all, "; ")
}

// maxSkipReasons bounds the lines named in the log of a failed request.
const maxSkipReasons = 4

// wholeSeconds rounds a wait up to whole seconds, at most maxNoLineRetry. Zero remains zero.
func wholeSeconds(wait time.Duration) time.Duration {
	return (min(wait, maxNoLineRetry) + time.Second - 1).Truncate(time.Second)
}
