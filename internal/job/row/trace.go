package row

import (
	"slices"

	"tollgate/internal/money"
	"tollgate/internal/upstream"
)

// The names of steps.
const (
	StepQueued        = "queued"
	StepLine          = "line_chosen"
	StepSubmitted     = "submitted"
	StepTicket        = "ticket"
	StepRendered      = "rendered"
	StepKept          = "kept" // the media store did not take the results
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

// Steps are the names of the steps that a node takes with a job.
func Steps() []string {
	return []string{StepLine, StepSubmitted, StepTicket, StepRendered, StepKept, StepFetched, StepStored, StepAttemptFailed, StepTakenOver}
}

// Trace is how a job fared, for the operator and for what is decided next.
type Trace struct {
	Steps    []Step          `json:"steps,omitempty"`
	Attempts []TracedAttempt `json:"attempts,omitempty"`
}

// Step is one step of a job.
type Step struct {
	Name string `json:"name"`
	At   int64  `json:"at_ms"` // Unix milliseconds, by the database
	Line string `json:"line,omitempty"`
}

// TracedAttempt is one submission to a line.
type TracedAttempt struct {
	Line      string `json:"line"`
	Submitted int64  `json:"submitted_ms"`
	Ended     int64  `json:"ended_ms,omitempty"`
	Ticket    string `json:"ticket,omitempty"`
	// KeyMark tells which of the line's keys it was made with.
	KeyMark string `json:"key_mark,omitempty"`
	// Code, Param and Message are what the job's error would be; empty while it
	// runs and when it went well.
	Code    string `json:"code,omitempty"`
	Param   string `json:"param,omitempty"`
	Message string `json:"message,omitempty"`
	// Cause is for the operator.
	Cause string `json:"cause,omitempty"`
	// Next is what could be done about it: see the words below.
	Next string `json:"next,omitempty"`
	// Lost says that its answer did not arrive.
	Lost bool `json:"lost,omitempty"`
	// KeptMS is when the media store first did not take its results; 0 if that did
	// not happen.
	KeptMS int64 `json:"kept_ms,omitempty"`
	// Tokens are what the provider has counted for it, however it ended.
	upstream.TokenCounts
	// LineCost is what the provider takes for it; nil: nobody knows.
	LineCost *money.Amount `json:"line_cost_usd,omitempty"`
}

// ForLog returns the attempts for the request log: without the messages for the user,
// which may repeat the prompt.
func (t *Trace) ForLog() []TracedAttempt {
	attempts := slices.Clone(t.Attempts)
	for i := range attempts {
		attempts[i].Message = ""
	}
	return attempts
}

// The values of Attempt.Next.
const (
	nextLater = "later"     // the line was busy: it counts for nothing
	nextSame  = "same_line" // once more there
	nextOther = "other_line"
	nextNone  = "none"
)

// The most of a trace that is kept: the first ones and the last.
const (
	maxSteps    = 100
	maxAttempts = 50
)

// Step adds a step.
func (t *Trace) Step(name string, atMS int64, line string) {
	s := Step{Name: name, At: atMS, Line: line}
	if len(t.Steps) >= maxSteps {
		t.Steps[maxSteps-1] = s
		return
	}
	t.Steps = append(t.Steps, s)
}

// Begin adds an attempt.
func (t *Trace) Begin(line string, atMS int64) {
	if len(t.Attempts) >= maxAttempts {
		// Attempts on busy lines count for nothing, so one of them can go.
		for i := range t.Attempts {
			if t.Attempts[i].Next == nextLater {
				t.Attempts = append(t.Attempts[:i], t.Attempts[i+1:]...)
				break
			}
		}
	}
	t.Attempts = append(t.Attempts, TracedAttempt{Line: line, Submitted: atMS})
}

// Current returns the attempt that runs, or ended last; nil: there was none.
func (t *Trace) Current() *TracedAttempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// KeyMark tells which of the line's keys the current attempt was made with; empty: it
// is not known.
func (t *Trace) KeyMark() string {
	if a := t.Current(); a != nil {
		return a.KeyMark
	}
	return ""
}

// Submitted notes with which of the line's keys the current attempt was made.
func (t *Trace) Submitted(keyMark string) {
	if a := t.Current(); a != nil {
		a.KeyMark = keyMark
	}
}

// Spent notes what the provider has counted for the current attempt. It may say
// so more than once, and knows all at the end.
func (t *Trace) Spent(tokens upstream.TokenCounts) {
	if a := t.Current(); a != nil {
		a.Prompt, a.Cached, a.Completion = max(a.Prompt, tokens.Prompt), max(a.Cached, tokens.Cached), max(a.Completion, tokens.Completion)
		if cost := money.Amount(tokens.CostNano); cost > 0 && (a.LineCost == nil || *a.LineCost < cost) {
			a.LineCost = &cost
		}
	}
}

// Clone returns a copy that changes apart from t.
func (t *Trace) Clone() Trace {
	return Trace{Steps: append([]Step(nil), t.Steps...), Attempts: append([]TracedAttempt(nil), t.Attempts...)}
}

// Anew is a trace whose attempts count for nothing.
func (t *Trace) Anew(now int64) Trace {
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
