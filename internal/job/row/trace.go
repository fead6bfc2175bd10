package row

import (
	"slices"

	"tollgate/internal/money"
	"tollgate/internal/upstream"
)

// Names of steps.
const (
	StepQueued        = "queued"
	StepLine          = "line_chosen"
	StepSubmitted     = "submitted"
	StepTicket        = "ticket"
	StepRendered      = "rendered"
	StepKept          = "kept" // the media store fails, so the results are kept elsewhere
	StepFetched       = "fetched"
	StepStored        = "stored"
	StepAttemptFailed = "attempt_failed"
	StepTakenOver     = "taken_over"
	StepRequeued      = "requeued"
	StepCancelled     = "cancelled"
	stepSucceeded     = StatusSucceeded
	stepFailed        = StatusFailed
	stepProcessing    = StatusProcessing
)

// Steps returns the steps counted by the metrics.
func Steps() []string {
	return []string{StepLine, StepSubmitted, StepTicket, StepRendered, StepKept, StepFetched, StepStored, StepAttemptFailed, StepTakenOver}
}

// Trace has the steps and attempts of a job, for the operator and for choosing the next step.
type Trace struct {
	Steps    []Step          `json:"steps,omitempty"`
	Attempts []TracedAttempt `json:"attempts,omitempty"`
}

// Step is a step of a job.
type Step struct {
	Name string `json:"name"`
	At   int64  `json:"at_ms"` // Unix milliseconds of the database
	Line string `json:"line,omitempty"`
}

// TracedAttempt is a submission to a line.
type TracedAttempt struct {
	Line      string `json:"line"`
	Submitted int64  `json:"submitted_ms"`
	Ended     int64  `json:"ended_ms,omitempty"`
	Ticket    string `json:"ticket,omitempty"`
	// KeyMark identifies the line's key.
	KeyMark string `json:"key_mark,omitempty"`
	// Code, Param and Message are the job's error after a failure.
	Code    string `json:"code,omitempty"`
	Param   string `json:"param,omitempty"`
	Message string `json:"message,omitempty"`
	// Cause is the cause of a failure, shown only to the operator.
	Cause string `json:"cause,omitempty"`
	// Next is the consequence of a failed attempt, one of the constants below.
	Next string `json:"next,omitempty"`
	// Lost is set if the provider's answer to the submission was lost.
	Lost bool `json:"lost,omitempty"`
	// KeptMS is the time of the media store's first failure to accept the results, or 0.
	KeptMS int64 `json:"kept_ms,omitempty"`
	// TokenCounts are the provider's counts, also for a failed attempt.
	upstream.TokenCounts
	// LineCost is the provider's price; nil if unknown.
	LineCost *money.Amount `json:"line_cost_usd,omitempty"`
}

// ForLog returns the attempts for the request log. It omits the messages, because they may repeat the
// prompt.
func (t *Trace) ForLog() []TracedAttempt {
	attempts := slices.Clone(t.Attempts)
	for i := range attempts {
		attempts[i].Message = ""
	}
	return attempts
}

// Values of TracedAttempt.Next.
const (
	nextLater = "later" // the line was busy; the attempt does not count
	nextSame  = "same_line"
	nextOther = "other_line"
	nextNone  = "none"
)

// Limits of a trace. If there are more steps, a new step replaces the last one.
const (
	maxSteps    = 100
	maxAttempts = 50
)

// Step appends a step.
func (t *Trace) Step(name string, atMS int64, line string) {
	s := Step{Name: name, At: atMS, Line: line}
	if len(t.Steps) >= maxSteps {
		t.Steps[maxSteps-1] = s
		return
	}
	t.Steps = append(t.Steps, s)
}

// Begin appends an attempt.
func (t *Trace) Begin(line string, atMS int64) {
	if len(t.Attempts) >= maxAttempts {
		// Drop an attempt on a busy line, because such attempts do not count.
		for i := range t.Attempts {
			if t.Attempts[i].Next == nextLater {
				t.Attempts = append(t.Attempts[:i], t.Attempts[i+1:]...)
				break
			}
		}
	}
	t.Attempts = append(t.Attempts, TracedAttempt{Line: line, Submitted: atMS})
}

// Current returns the last attempt, or nil.
func (t *Trace) Current() *TracedAttempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// KeyMark returns the mark of the line's key in the current attempt, or an empty string.
func (t *Trace) KeyMark() string {
	if a := t.Current(); a != nil {
		return a.KeyMark
	}
	return ""
}

// SetKeyMark sets the mark of the line's key in the current attempt.
func (t *Trace) SetKeyMark(keyMark string) {
	if a := t.Current(); a != nil {
		a.KeyMark = keyMark
	}
}

// AddUsage updates the counts of the current attempt. A provider may report them several times,
// with the complete counts at the end.
func (t *Trace) AddUsage(tokens upstream.TokenCounts) {
	if a := t.Current(); a != nil {
		a.Prompt, a.Cached, a.Completion = max(a.Prompt, tokens.Prompt), max(a.Cached, tokens.Cached), max(a.Completion, tokens.Completion)
		if cost := money.Amount(tokens.CostNano); cost > 0 && (a.LineCost == nil || *a.LineCost < cost) {
			a.LineCost = &cost
		}
	}
}

// Clone returns an independent copy.
func (t *Trace) Clone() Trace {
	return Trace{Steps: append([]Step(nil), t.Steps...), Attempts: append([]TracedAttempt(nil), t.Attempts...)}
}

// Reset returns a copy in which no attempt counts.
func (t *Trace) Reset(now int64) Trace {
	next := t.Clone()
	for i := range next.Attempts {
		next.Attempts[i].Next = nextLater
		if next.Attempts[i].Ended == 0 {
			next.Attempts[i].Ended = now
		}
		next.Attempts[i].Lost = false
	}
	return next
}
