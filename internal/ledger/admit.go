package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// Admission is a request to admit.
type Admission = books.Admission

// Hold is the money reserved for an admitted request until the request ends. The caller must end the
// hold once, with Settle or Release. If its node dies before that, the sweep ends the hold.
type Hold struct {
	Amount       money.Amount
	Account, Key string

	ledger   *Ledger
	row      *books.HoldRow
	progress atomic.Pointer[Progress] // the latest progress; the next batch writes it
	queued   atomic.Bool              // an opProgress of this hold is in the queue
	ended    atomic.Bool
}

// batchWait is the maximum time that the admission of a chat request waits for the commit of its
// batch. After it, the client gets a 503 with Retry-After, and the hold is released as soon as the
// database has answered. The client is not charged.
const batchWait = 5 * time.Second

// jobWait is the minimum time that the admission of a job waits for a batch. It is longer than
// QueueWait because submissions are not rejected under load (interface.md, Endpoints).
const jobWait = 20 * time.Second

// Admit holds the request's amount in one durable transaction, or refuses the request: with 401
// invalid_api_key, 429 rate_limit_exceeded, 402 insufficient_quota (interface.md, Codes by
// category), 503 service_unavailable with Retry-After under overload or while the database is
// unreachable, or ErrKeyChanged. Admit logs refusals. If ctx ends first, the hold is released, the
// request is logged as client_closed, and the error wraps ctx's error.
func (l *Ledger) Admit(ctx context.Context, a Admission) (*Hold, error) {
	o := &op{kind: opAdmit, account: a.Account, key: a.Key, admission: a, done: make(chan struct{})}
	return l.admit(ctx, o)
}

// admit queues an admission, waits for its decision, and makes sure that a refused request has
// exactly one receipt.
func (l *Ledger) admit(ctx context.Context, o *op) (*Hold, error) {
	start := l.now()
	hold, answered, err := l.await(ctx, o)
	if l.opts.Observer.Admitted != nil {
		l.opts.Observer.Admitted(l.now().Sub(start), err == nil)
	}
	if answered && err != nil && !o.hookRan && !o.logged && !errors.Is(err, ErrKeyChanged) {
		f := fault.Of(err)
		l.Refused(refusal(&o.admission, f.Status(), f.Code, l.now()))
	}
	return hold, err
}

func refusal(a *Admission, status int, code fault.Code, at time.Time) Refusal {
	return Refusal{
		Request: a.Request, Account: a.Account, Key: a.Key, Model: a.Model, Endpoint: a.Endpoint,
		Status: status, Code: string(code), Received: a.Received, Duration: at.Sub(a.Received),
	}
}

// await waits for the answer to an admission. answered is false if the caller has stopped waiting;
// leave or the committer then logs the request.
func (l *Ledger) await(ctx context.Context, o *op) (hold *Hold, answered bool, err error) {
	if !l.queue.push(o) {
		return nil, true, unavailable(errors.New("the node is shutting down"))
	}
	queueWait, commitWait := l.opts.QueueWait, batchWait
	if o.admitHook != nil {
		// The batch may be committed, and another node may then run the job. So the caller must not get
		// a refusal until the outcome is known.
		queueWait, commitWait = max(queueWait, jobWait), l.opts.OutageGrace
	}
	timer := time.NewTimer(queueWait)
	defer timer.Stop()
	taken := false
	for {
		select {
		case <-o.done:
			return o.hold, true, o.err
		case <-ctx.Done():
			if l.leave(o, StatusClosed, fault.ClientClosed) {
				return nil, false, o.leaveError(ctx.Err())
			}
			<-o.done // leave failed, because the committer has just answered
		case <-timer.C:
			if !taken && o.state.CompareAndSwap(opWaiting, opLeft) {
				return nil, true, unavailable(l.withFault(
					fmt.Errorf("no batch has taken the admission within %v: overload, or the database is away", queueWait)))
			}
			if taken && l.leave(o, http.StatusServiceUnavailable, fault.ServiceUnavailable) {
				return nil, false, o.leaveError(unavailable(l.withFault(
					fmt.Errorf("the database has not answered the admission within %v", commitWait))))
			}
			taken = true
			timer.Reset(commitWait)
		}
	}
}

// leaveError returns the error for a caller that stops waiting. The outcome is unknown if a batch
// contains the admission of a job.
func (o *op) leaveError(err error) error {
	if o.admitHook != nil && o.state.Load() == opAbandoned {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// StatusClosed is the logged status of a request whose client disconnected before the first byte of
// the answer.
const StatusClosed = 499

// leave ends the wait of the caller of an admission; the client gets status and code. It returns
// false if the admission was already answered. If no batch has taken the admission, leave logs the
// request. Otherwise the committer undoes the admission and logs the request.
func (l *Ledger) leave(o *op, status int, code fault.Code) bool {
	o.leaveAnswer = refusal(&o.admission, status, code, l.now())
	if o.state.CompareAndSwap(opWaiting, opLeft) {
		l.Refused(o.leaveAnswer)
		return true
	}
	return o.state.CompareAndSwap(opTaken, opAbandoned)
}
