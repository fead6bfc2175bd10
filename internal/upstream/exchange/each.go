package exchange

import (
	"errors"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// eachAtOnce is how many submissions of one task run at a time.
const eachAtOnce = 4

// ticketMark stands between the tickets of a task that is several at its
// provider. No name that Ticket takes has it.
const ticketMark = ","

// SubmitEach is Several for providers whose call accepts a task of one image:
// the tickets of those that were accepted are one, for PollEach.
func SubmitEach(count int, call func(i int) (ticket string, failure *upstream.JobFailure, again bool)) (*jobcall.TaskStatus, error) {
	accepted, failure := Several(count, eachAtOnce, func(i int) ([]jobcall.Result, *upstream.JobFailure, bool) {
		ticket, failure, again := call(i)
		if failure != nil {
			return nil, failure, again
		}
		return []jobcall.Result{{Ref: ticket}}, nil, true
	})
	if failure != nil {
		return nil, failure
	}
	tickets := make([]string, len(accepted))
	for i, a := range accepted {
		tickets[i] = a.Ref
	}
	return &jobcall.TaskStatus{Ticket: strings.Join(tickets, ticketMark)}, nil
}

// PollEach asks about each task of a ticket that SubmitEach made, until one goes
// on or cannot be asked about: then all go on. When all are over their results are
// the task's; without any, the failure is the most hopeless of them.
func PollEach(ticket string, poll func(one string) (*jobcall.TaskStatus, error)) (*jobcall.TaskStatus, error) {
	var (
		all   = &jobcall.TaskStatus{Ticket: ticket, Done: true}
		worst *upstream.JobFailure
	)
	for one := range strings.SplitSeq(ticket, ticketMark) {
		status, err := poll(one)
		var failure *upstream.JobFailure
		switch {
		case errors.As(err, &failure) && failure.Next != upstream.NextPoll:
			worst = worse(worst, failure)
		case err != nil:
			return nil, err
		case !status.Done:
			return &jobcall.TaskStatus{Ticket: ticket, Wait: status.Wait}, nil
		default:
			all.Results = append(all.Results, status.Results...)
		}
	}
	if len(all.Results) > 0 || worst == nil {
		return all, nil
	}
	return nil, worst
}
