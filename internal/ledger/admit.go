package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"tollgate/internal/money"
)

// Admission is a request that asks to run.
type Admission struct {
	Request      string // its id, req_…
	Account, Key string
	// KeyVersion is the version of the key's row that the caller's checks were
	// made on.
	KeyVersion int64
	Model      string
	Endpoint   string // the path, /v1/chat/completions
	// Amount is the highest possible cost of the request over all attempts.
	Amount money.Amount
	// FreeDaily is a free model's requests per account and UTC day; 0: not free.
	FreeDaily int64
	Revision  int64 // of the catalog that prices it
	Received  time.Time
	// Job is the id of the job that the request submits, for AdmitJob; empty
	// for chat.
	Job string
}

// Hold is the money that an admitted request keeps until it ends. End it once,
// with Settle or Release; a hold that is never ended is swept when its node
// dies.
type Hold struct {
	// Amount is what is held.
	Amount money.Amount
	// Account and Key are whose money it is.
	Account, Key string

	ledger   *Ledger
	row      *holdRow
	progress atomic.Pointer[Progress] // the newest, written to the row by the next batch
	queued   atomic.Bool              // a progress operation waits
	ended    atomic.Bool
}

// takenWait bounds how long an admission waits for a batch that has taken it:
// then the client is told to come back, and what was held is given back as
// soon as the database has answered.
const takenWait = 5 * time.Second

// jobWait is how long the admission of a job waits to be taken: submissions are
// not refused for load (interface.md, Endpoints).
const jobWait = 20 * time.Second

// Admit holds the request's amount in one durable transaction, or refuses it:
// 401 invalid_api_key, 429 rate_limit_exceeded, 402 insufficient_quota as
// interface.md, Codes by category says, 503 service_unavailable with
// Retry-After under overload or while the database is away, and ErrKeyChanged.
// Refusals are logged here. When ctx ends first, whatever was held is given
// back and the error wraps ctx's.
func (l *Ledger) Admit(ctx context.Context, a Admission) (*Hold, error) {
	start := time.Now()
	hold, err := l.await(ctx, &op{kind: opAdmit, account: a.Account, key: a.Key, admission: a, done: make(chan struct{})})
	l.admitted(ctx, a, start, err, false)
	return hold, err
}

// await lets an admission be decided.
func (l *Ledger) await(ctx context.Context, op *op) (*Hold, error) {
	if !l.queue.push(op) {
		return nil, unavailable(errors.New("the node is shutting down"))
	}
	wait := l.opts.QueueWait
	if op.admitting != nil {
		wait = max(wait, jobWait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	taken := false
	for {
		select {
		case <-op.done:
			return op.hold, op.err
		case <-ctx.Done():
			if l.leaveOp(op) {
				return nil, ctx.Err()
			}
			<-op.done // answered in this moment
		case <-timer.C:
			if !taken && op.state.CompareAndSwap(opWaiting, opLeft) {
				return nil, unavailable(fmt.Errorf("no batch has taken the admission within %v: overload, or the database is away", wait))
			}
			if taken && l.leaveOp(op) {
				return nil, unavailable(fmt.Errorf("the database has not answered the admission within %v", takenWait))
			}
			taken = true
			timer.Reset(takenWait)
		}
	}
}

// leaveOp makes an operation's caller leave. False: it has been answered. An
// operation that was taken meanwhile is undone by the committer when it turns
// out to have been committed.
func (l *Ledger) leaveOp(op *op) bool {
	return op.state.CompareAndSwap(opWaiting, opLeft) || op.state.CompareAndSwap(opTaken, opAbandoned)
}
