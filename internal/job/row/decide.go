package row

import (
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// JobError is the reason why a job failed, in words for the user.
type JobError struct {
	Code     fault.Code
	Param    string
	Message  string
	Operator bool // the operator ended the job
}

// Disposition decides about a job after a failed attempt.
type Disposition struct {
	// Fail ends the job if not nil.
	Fail *JobError
	// Wait is the delay before the next attempt.
	Wait time.Duration
}

// Limits of retries: the waits for a busy line, the new submissions after lost answers, and all
// submissions of a job.
const (
	minBusy        = 2 * time.Second
	maxBusy        = 30 * time.Second
	maxLostAnswers = 1
	// maxInputRejections bounds the retries after a provider's review or decoder has rejected the
	// input. A second line may accept the input; further lines are not tried.
	maxInputRejections = 1
	// maxSubmissions bounds the submissions of a job, because lines may accept and return a job again
	// and again.
	maxSubmissions = 60
)

// End records the end of the current attempt.
func (t *Trace) End(failure *upstream.JobFailure, atMS int64) {
	a := t.Current()
	if a == nil {
		return
	}
	a.Ended = atMS
	if failure == nil {
		return
	}
	a.Code, a.Param, a.Message, a.Lost = string(failure.Job), failure.Param, failure.UserMessage(), failure.Lost
	a.Cause = failure.Failure.Error()
	switch failure.Next {
	case upstream.NextLater:
		a.Next = nextLater
	case upstream.NextSame:
		a.Next = nextSame
	case upstream.NextNone:
		a.Next = nextNone
	default:
		a.Next = nextOther
	}
}

// After decides about a job after the failure of its current attempt. number is the number of the
// submission. lines are the lines that accept the job now or soon.
func After(t *Trace, number int64, failure *upstream.JobFailure, lines []string) Disposition {
	if failure.Next == upstream.NextNone || number >= maxSubmissions {
		return Disposition{Fail: finalError(t)}
	}
	if failure.Next == upstream.NextLater {
		wait := minBusy
		for i := len(t.Attempts) - 2; i >= 0 && t.Attempts[i].Next == nextLater && wait < maxBusy; i-- {
			wait *= 2
		}
		return Disposition{Wait: min(max(wait, failure.RetryAfter), max(maxBusy, min(failure.RetryAfter, time.Minute)))}
	}
	lost, same := 0, 0
	for _, a := range t.Attempts {
		if a.Lost {
			lost++
		}
		if a.Code == string(failure.Job) && a.Next != nextLater {
			same++
		}
	}
	if lost > maxLostAnswers || same > maxInputRejections && fault.LookupJob(failure.Job).Input {
		return Disposition{Fail: finalError(t)}
	}
	for _, line := range lines {
		if t.allowed(line) {
			return Disposition{}
		}
	}
	return Disposition{Fail: finalError(t)}
}

// allowed reports whether a line may get the job: the line had no submission, or had one that may be
// repeated there.
func (t *Trace) allowed(line string) bool {
	tries, again := 0, false
	for _, a := range t.Attempts {
		if a.Line == line && a.Next != nextLater {
			tries++
			again = a.Next == nextSame || a.Lost
		}
	}
	return tries == 0 || tries == 1 && again
}

// WasBusy reports whether the last attempt failed because of a busy line.
func (t *Trace) WasBusy() bool {
	last := t.Current()
	return last != nil && last.Next == nextLater
}

// Order sorts the allowed lines: the line of the last attempt if the failure may be temporary, then
// unused lines, then the others.
func (t *Trace) Order(lines []string) []string {
	last := t.Current()
	out := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !t.allowed(line) })
	rank := func(line string) int {
		switch {
		case last != nil && last.Next == nextSame && !last.Lost && line == last.Line:
			return 0
		case t.unused(line):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b string) int { return rank(a) - rank(b) })
	return out
}

// unused reports whether a line had no submission.
func (t *Trace) unused(line string) bool {
	return !slices.ContainsFunc(t.Attempts, func(a TracedAttempt) bool { return a.Line == line && a.Next != nextLater })
}

// finalError returns the error of a job without further attempts: the first rejection of the user's
// input, or the last failure if it excludes further attempts or no attempt rejected the input.
func finalError(t *Trace) *JobError {
	last := t.Current()
	for i := range t.Attempts {
		a := &t.Attempts[i]
		if a.Next != nextLater && last.Next != nextNone && fault.LookupJob(fault.Code(a.Code)).Type == "invalid_request_error" {
			last = a
			break
		}
	}
	return &JobError{Code: fault.Code(last.Code), Param: last.Param, Message: last.Message}
}

// KeyNumber returns the number in the provider's idempotency key for a submission. A repetition
// after a lost answer gets the same number, so that the provider can recognize it. A trace never
// drops lost answers.
func (t *Trace) KeyNumber(number int64) int64 {
	for _, a := range t.Attempts {
		if a.Lost {
			number--
		}
	}
	return number
}
