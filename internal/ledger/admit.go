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
	"tollgate/internal/ledger/commit"
	"tollgate/internal/money"
)

// Admission is a request to admit.
type Admission = books.Admission

// Hold is the money reserved for an admitted request until the request ends. The caller must end the
// hold once, with Settle or Release. If its node dies before that, the sweep ends the hold.
type Hold struct {
	Amount       money.Amount
	Account, Key string

	ledger *Ledger
	open   *commit.OpenHold
	ended  atomic.Bool
}

// batchWait is the maximum time that the admission of a chat request waits for the commit of its
// batch. After it, the client gets a 503 with Retry-After, and the hold is released as soon as the
// database has answered. The client is not charged.
const batchWait = 5 * time.Second

// jobWait is the time that the admission of a job waits for a batch, unless QueueWait is longer. It
// exceeds the default QueueWait because submissions are not rejected under load (interface.md, Endpoints).
const jobWait = 20 * time.Second

// Admit holds the request's amount in one durable transaction, or refuses the request: with 401
// invalid_api_key, 429 rate_limit_exceeded, 402 insufficient_quota (interface.md, Codes by
// category), 503 service_unavailable with Retry-After under overload or while the database is
// unreachable, or ErrKeyChanged. Admit logs refusals. If ctx ends first, the hold is released, the
// request is logged as client_closed, and the error wraps ctx's error.
func (l *Ledger) Admit(ctx context.Context, a Admission) (*Hold, error) { return l.admit(ctx, a, nil) }

// admit queues an admission, waits for its decision, and makes sure that a refused request has
// exactly one receipt. hook is nil for a chat request.
func (l *Ledger) admit(ctx context.Context, a Admission, hook AdmissionHook) (*Hold, error) {
	start := l.now()
	a.Help = l.opts.Help
	hold, logged, err := l.await(ctx, a, hook)
	if l.opts.Observer.Admitted != nil {
		l.opts.Observer.Admitted(l.now().Sub(start), err == nil)
	}
	if err != nil && !logged && !errors.Is(err, ErrKeyChanged) {
		f := fault.Of(err)
		l.Refused(refusal(&a, f.Status(), f.Code, l.now()))
	}
	return hold, err
}

func refusal(a *Admission, status int, code fault.Code, at time.Time) Refusal {
	return Refusal{
		Request: a.Request, Account: a.Account, Key: a.Key, Model: a.Model, Endpoint: a.Endpoint,
		Status: status, Code: string(code), Received: a.Received, Duration: at.Sub(a.Received),
	}
}

// await waits for the answer to an admission. logged is true if a refusal needs no further row in the
// request log: the row exists, or the caller has stopped waiting, and leave or the committer logs it.
func (l *Ledger) await(ctx context.Context, a Admission, hook AdmissionHook) (hold *Hold, logged bool, err error) {
	o := l.committer.Admit(a, hook)
	if o == nil {
		return nil, false, commit.Unavailable(errors.New("the node is shutting down"))
	}
	queueWait, commitWait := l.opts.QueueWait, batchWait
	if hook != nil {
		// The batch may be committed, and another node may then run the job. So the caller must not get
		// a refusal until the outcome is known.
		queueWait, commitWait = max(queueWait, jobWait), l.opts.OutageGrace
	}
	timer := time.NewTimer(queueWait)
	defer timer.Stop()
	taken := false
	for {
		select {
		case <-o.Done:
			if o.Hold != nil {
				row := o.Hold.Row
				hold = &Hold{Amount: row.Amount, Account: row.Account, Key: row.Key, ledger: l, open: o.Hold}
			}
			return hold, o.Logged, o.Err
		case <-ctx.Done():
			if err := l.leave(o, refusal(&a, StatusClosed, fault.ClientClosed, l.now()), hook, ctx.Err()); err != nil {
				return nil, true, err
			}
			<-o.Done // leave returned nil, because the committer has just answered
		case <-timer.C:
			if !taken && o.Withdraw() {
				return nil, false, commit.Unavailable(l.withFault(
					fmt.Errorf("no batch has taken the admission within %v: overload, or the database is away", queueWait)))
			}
			if taken {
				answer := refusal(&a, http.StatusServiceUnavailable, fault.ServiceUnavailable, l.now())
				cause := commit.Unavailable(l.withFault(fmt.Errorf("the database has not answered the admission within %v", commitWait)))
				if err := l.leave(o, answer, hook, cause); err != nil {
					return nil, true, err
				}
			}
			taken = true
			timer.Reset(commitWait)
		}
	}
}

// StatusClosed is the logged status of a request whose client disconnected before the first byte of
// the answer.
const StatusClosed = 499

// leave ends the caller's wait for an admission and returns the error for the caller, with cause. It
// returns nil if the admission was already answered. If no batch has taken the admission, leave logs
// answer. Otherwise the committer undoes the admission and logs answer; if hook is not nil, the
// outcome is then unknown to the caller.
func (l *Ledger) leave(o *commit.Op, answer Refusal, hook AdmissionHook, cause error) error {
	o.Answer = answer
	switch {
	case o.Withdraw():
		l.Refused(answer)
	case !o.Abandon():
		return nil
	case hook != nil:
		return fmt.Errorf("%w: %w", ErrUnknown, cause)
	}
	return cause
}

// withFault adds to err the known reason why the database takes no writes, if there is one.
func (l *Ledger) withFault(err error) error {
	if reason := l.Writable(); reason != nil {
		return fmt.Errorf("%w: %w", err, reason)
	}
	return err
}
