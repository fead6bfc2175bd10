package row

import (
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// JobError is why a job fails, as its user is told.
type JobError struct {
	Code    fault.Code
	Param   string
	Message string
	// Operator says that the operator ended it.
	Operator bool
}

// Disposition is what becomes of a job whose attempt has failed.
type Disposition struct {
	// Fail ends the job.
	Fail *JobError
	// Wait is how long it waits before it is submitted again.
	Wait time.Duration
}

// Waits of a job whose line was busy, the most lost answers that are followed by
// another submission, and the most submissions of a job in all.
const (
	minBusy = 2 * time.Second
	maxBusy = 30 * time.Second
	maxLost = 1
	// maxRejected bounds the resubmissions of what a provider's review, or its
	// reading of the references, has rejected: other lines are not tried in turn.
	maxRejected = 1
	// maxSubmissions ends jobs that lines take and give back again and again.
	maxSubmissions = 60
)

// Ended notes on the current attempt how it ended.
func (t *Trace) Ended(failure *upstream.JobFailure, atMS int64) {
	a := t.Current()
	if a == nil {
		return
	}
	a.Ended = atMS
	if failure == nil {
		return
	}
	a.Code, a.Param, a.Message, a.Lost = string(failure.Job), failure.Param, failure.Told(), failure.Lost
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

// After decides what becomes of a job whose current attempt has failed, its
// submission of the given number. lines are those that could take it, now or
// soon.
func After(t *Trace, number int64, failure *upstream.JobFailure, lines []string) Disposition {
	if failure.Next == upstream.NextNone || number >= maxSubmissions {
		return Disposition{Fail: telling(t)}
	}
	if failure.Next == upstream.NextLater {
		wait := minBusy
		for i := len(t.Attempts) - 2; i >= 0 && t.Attempts[i].Next == nextLater && wait < maxBusy; i-- {
			wait *= 2
		}
		return Disposition{Wait: min(max(wait, failure.RetryAfter), max(maxBusy, min(failure.RetryAfter, time.Minute)))}
	}
	lost, alike := 0, 0
	for _, a := range t.Attempts {
		if a.Lost {
			lost++
		}
		if a.Code == string(failure.Job) && a.Next != nextLater {
			alike++
		}
	}
	if lost > maxLost || alike > maxRejected && fault.LookupJob(failure.Job).Input {
		return Disposition{Fail: telling(t)}
	}
	for _, line := range lines {
		if t.allows(line) {
			return Disposition{}
		}
	}
	return Disposition{Fail: telling(t)}
}

// allows tells whether a line may be given the job (again): one that it was not
// submitted to, or once more one that may do it at a second try.
func (t *Trace) allows(line string) bool {
	tries, again := 0, false
	for _, a := range t.Attempts {
		if a.Line == line && a.Next != nextLater {
			tries++
			again = a.Next == nextSame || a.Lost
		}
	}
	return tries == 0 || tries == 1 && again
}

// TurnedAway tells whether the line of the last attempt had no room for the job.
func (t *Trace) TurnedAway() bool {
	last := t.Current()
	return last != nil && last.Next == nextLater
}

// Prefers orders the lines that a job may be given: after a failure that a
// second try may mend the same line first, else those it was not submitted to.
func (t *Trace) Prefers(lines []string) []string {
	last := t.Current()
	out := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !t.allows(line) })
	rank := func(line string) int {
		switch {
		case last != nil && last.Next == nextSame && !last.Lost && line == last.Line:
			return 0
		case t.fresh(line):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b string) int { return rank(a) - rank(b) })
	return out
}

// fresh tells whether a job was not submitted to a line.
func (t *Trace) fresh(line string) bool {
	return !slices.ContainsFunc(t.Attempts, func(a TracedAttempt) bool { return a.Line == line && a.Next != nextLater })
}

// telling is the error of a job that has no line left: what a provider said
// about the user's input, if one did, else the last failure.
func telling(t *Trace) *JobError {
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

// Submissions names the submission of the given number to its provider. One
// whose answer was lost is repeated under its name, so that a provider which
// knows it does not do it twice. Lost ones are never dropped from a trace.
func (t *Trace) Submissions(number int64) int64 {
	for _, a := range t.Attempts {
		if a.Lost {
			number--
		}
	}
	return number
}
