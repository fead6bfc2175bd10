package exchange

import (
	"errors"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// eachAtOnce is the maximum number of submissions of a task at a time.
const eachAtOnce = 4

// ticketMark separates the tickets of a task with several tasks at its provider. Ticket rejects
// names with ticketMark.
const ticketMark = ","

// SubmitEach is Several for providers whose calls each accept a task of one image. It joins the
// tickets of the accepted tasks to one ticket for PollEach.
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

// PollEach polls the tasks of a ticket from SubmitEach. It stops at a task still running and reports
// the ticket as running, and stops with the error of a poll without an answer (NextPoll). When all
// tasks have ended, PollEach returns their results or, without results, the most severe failure.
func PollEach(ticket string, poll func(one string) (*jobcall.TaskStatus, error)) (*jobcall.TaskStatus, error) {
	var (
		all   = &jobcall.TaskStatus{Ticket: ticket, Done: true}
		worst *upstream.JobFailure
	)
	for part := range strings.SplitSeq(ticket, ticketMark) {
		status, err := poll(part)
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
