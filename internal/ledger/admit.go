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

// Admission is a request for admission.
type Admission = books.Admission

// Hold is the money reserved for an admitted request until it ends. End it once, with Settle or
// Release; if it is never ended, the sweep ends it after its node dies.
type Hold struct {
	// Amount is the held amount.
	Amount money.Amount
	// Account and Key own the money.
	Account, Key string

	ledger   *Ledger
	row      *books.HoldRow
	progress atomic.Pointer[Progress] // the newest, written to the row by the next batch
	queued   atomic.Bool              // a progress operation waits
	ended    atomic.Bool
}

// takenWait bounds how long a chat admission waits for a batch that has taken it. Afterwards the
// client is told to come back, and the hold is released as soon as the database has answered. No
// such request is ever charged.
const takenWait = 5 * time.Second

// jobWait is how long the admission of a job waits to be taken: submissions are
// not refused for load (interface.md, Endpoints).
const jobWait = 20 * time.Second

// Admit holds the request's amount in one durable transaction, or refuses it: 401 invalid_api_key,
// 429 rate_limit_exceeded, 402 insufficient_quota (interface.md, Codes by category), 503
// service_unavailable with Retry-After under overload or while the database is away, and
// ErrKeyChanged. Refusals are logged here. If ctx ends first, the hold is released, the request is
// logged as client_closed, and the error wraps ctx's.
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
	if answered && err != nil && !o.ridden && !o.receipted && !errors.Is(err, ErrKeyChanged) {
		f := fault.Of(err)
		l.Refused(refusal(&o.admission, f.Status(), f.Code, l.now()))
	}
	return hold, err
}

// refusal returns the log row of an admission refused at a time.
func refusal(a *Admission, status int, code fault.Code, at time.Time) Refusal {
	return Refusal{
		Request: a.Request, Account: a.Account, Key: a.Key, Model: a.Model, Endpoint: a.Endpoint,
		Status: status, Code: string(code), Received: a.Received, Duration: at.Sub(a.Received),
	}
}

// await waits for the answer to an admission. Not answered: its caller has left,
// and the row of the log is written by whoever brings it to an end.
func (l *Ledger) await(ctx context.Context, o *op) (hold *Hold, answered bool, err error) {
	if !l.queue.push(o) {
		return nil, true, unavailable(errors.New("the node is shutting down"))
	}
	wait, patience := l.opts.QueueWait, takenWait
	if o.admitting != nil {
		// A taken admission may be committed, and another node may run it. Until the outcome is
		// known, its caller must not get a refusal.
		wait, patience = max(wait, jobWait), l.opts.OutageGrace
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	taken := false
	for {
		select {
		case <-o.done:
			return o.hold, true, o.err
		case <-ctx.Done():
			if l.leave(o, StatusClosed, fault.ClientClosed) {
				return nil, false, o.open(ctx.Err())
			}
			<-o.done // answered in this moment
		case <-timer.C:
			if !taken && o.state.CompareAndSwap(opWaiting, opLeft) {
				return nil, true, unavailable(l.withFault(
					fmt.Errorf("no batch has taken the admission within %v: overload, or the database is away", wait)))
			}
			if taken && l.leave(o, http.StatusServiceUnavailable, fault.ServiceUnavailable) {
				return nil, false, o.open(unavailable(l.withFault(
					fmt.Errorf("the database has not answered the admission within %v", patience))))
			}
			taken = true
			timer.Reset(patience)
		}
	}
}

// open returns the answer to a departed caller. If a batch has taken a job, its outcome is unknown.
func (o *op) open(err error) error {
	if o.admitting != nil && o.state.Load() == opAbandoned {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// StatusClosed is the status in the log of a request whose client left before the first byte of its
// answer.
const StatusClosed = 499

// leave ends the wait of an admission's caller with a status and code. It returns false if the
// admission was already answered. If no batch has taken the admission, leave logs it now; otherwise
// the committer undoes and logs it.
func (l *Ledger) leave(o *op, status int, code fault.Code) bool {
	o.told = refusal(&o.admission, status, code, l.now())
	if o.state.CompareAndSwap(opWaiting, opLeft) {
		l.Refused(o.told)
		return true
	}
	return o.state.CompareAndSwap(opTaken, opAbandoned)
}
