package exchange

import (
	"errors"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// maxConcurrentSubmissions is the maximum number of submissions of a task at a time.
const maxConcurrentSubmissions = 4

// ticketSeparator separates the tickets of several tasks at a provider. IsTicket rejects IDs that
// contain ticketSeparator.
const ticketSeparator = ","

// SubmitEach is CallSeveral for providers that accept one task per image. It joins the tickets of
// the accepted tasks to one ticket for PollEach.
func SubmitEach(count int, call func(i int) (ticket string, failure *upstream.JobFailure, again bool)) (*jobcall.TaskStatus, error) {
	accepted, failure := CallSeveral(count, maxConcurrentSubmissions, func(i int) ([]jobcall.Result, *upstream.JobFailure, bool) {
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
	return &jobcall.TaskStatus{Ticket: strings.Join(tickets, ticketSeparator)}, nil
}

// PollEach polls the tasks of a ticket from SubmitEach. If a task is still running, PollEach stops and
// reports the ticket as running. If a poll gets no usable answer (NextPoll), PollEach stops and returns
// the error. When all tasks have ended, PollEach returns their results or, if there are none, the most
// severe failure.
func PollEach(ticket string, poll func(one string) (*jobcall.TaskStatus, error)) (*jobcall.TaskStatus, error) {
	var (
		all   = &jobcall.TaskStatus{Ticket: ticket, Done: true}
		worst *upstream.JobFailure
	)
	for taskTicket := range strings.SplitSeq(ticket, ticketSeparator) {
		status, err := poll(taskTicket)
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
