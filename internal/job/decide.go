package job

import (
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// jobError is why a job fails, as its user is told.
type jobError struct {
	code    fault.Code
	param   string
	message string
	// operator says that the operator ended it.
	operator bool
}

// disposition is what becomes of a job whose attempt has failed.
type disposition struct {
	// fail ends the job.
	fail *jobError
	// wait is how long it waits before it is submitted again.
	wait time.Duration
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

// ended notes on the current attempt how it ended.
func (t *trace) ended(failure *upstream.JobFailure, atMS int64) {
	a := t.current()
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

// after decides what becomes of a job whose current attempt has failed, its
// submission of the given number. lines are those that could take it, now or
// soon.
func after(t *trace, number int64, failure *upstream.JobFailure, lines []string) disposition {
	if failure.Next == upstream.NextNone || number >= maxSubmissions {
		return disposition{fail: telling(t)}
	}
	if failure.Next == upstream.NextLater {
		wait := minBusy
		for i := len(t.Attempts) - 2; i >= 0 && t.Attempts[i].Next == nextLater && wait < maxBusy; i-- {
			wait *= 2
		}
		return disposition{wait: min(max(wait, failure.RetryAfter), max(maxBusy, min(failure.RetryAfter, time.Minute)))}
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
		return disposition{fail: telling(t)}
	}
	for _, line := range lines {
		if t.allows(line) {
			return disposition{}
		}
	}
	return disposition{fail: telling(t)}
}

// allows tells whether a line may be given the job (again): one that it was not
// submitted to, or once more one that may do it at a second try.
func (t *trace) allows(line string) bool {
	tries, again := 0, false
	for _, a := range t.Attempts {
		if a.Line == line && a.Next != nextLater {
			tries++
			again = a.Next == nextSame || a.Lost
		}
	}
	return tries == 0 || tries == 1 && again
}

// turnedAway tells whether the line of the last attempt had no room for the job.
func (t *trace) turnedAway() bool {
	last := t.current()
	return last != nil && last.Next == nextLater
}

// prefers orders the lines that a job may be given: after a failure that a
// second try may mend the same line first, else those it was not submitted to.
func (t *trace) prefers(lines []string) []string {
	last := t.current()
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
func (t *trace) fresh(line string) bool {
	return !slices.ContainsFunc(t.Attempts, func(a TracedAttempt) bool { return a.Line == line && a.Next != nextLater })
}

// telling is the error of a job that has no line left: what a provider said
// about the user's input, if one did, else the last failure.
func telling(t *trace) *jobError {
	last := t.current()
	for i := range t.Attempts {
		a := &t.Attempts[i]
		if a.Next != nextLater && last.Next != nextNone && fault.LookupJob(fault.Code(a.Code)).Type == "invalid_request_error" {
			last = a
			break
		}
	}
	return &jobError{code: fault.Code(last.Code), param: last.Param, message: last.Message}
}

// submissions names the submission of the given number to its provider. One
// whose answer was lost is repeated under its name, so that a provider which
// knows it does not do it twice. Lost ones are never dropped from a trace.
func (t *trace) submissions(number int64) int64 {
	for _, a := range t.Attempts {
		if a.Lost {
			number--
		}
	}
	return number
}
