package ledger

import (
	"context"
	"encoding/json"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// Tokens are the counts of one answer that receipts and totals show.
type Tokens = books.Tokens

// Outcome is how a request ended.
type Outcome = books.Outcome

// The outcomes, as the request log keeps them.
const (
	Billed  = books.Billed  // with a charge, also of 0
	Failed  = books.Failed  // with an error, uncharged
	Closed  = books.Closed  // the client left before the first byte, uncharged
	Refused = books.Refused // before or at admission
)

// UsageSource is whose counts a request was charged by.
type UsageSource = books.UsageSource

// The sources, as receipts keep them.
const (
	SourceProvider = books.SourceProvider // the provider's
	SourceGateway  = books.SourceGateway  // our own: the provider gave none
	SourceBoth     = books.SourceBoth     // the prompt as one counts it, the answer as the other
	SourceNoted    = books.SourceNoted    // what a stream had noted when its node died
)

// End is what the receipt of a request says.
type End = books.End

// Progress is what a stream has produced so far.
type Progress struct {
	Cost   money.Amount
	Tokens Tokens
	Line   string
}

// Progress notes what the stream has produced, to be charged if this node
// dies. It never waits; the newest note replaces the ones before.
func (h *Hold) Progress(p Progress) {
	h.progress.Store(&p)
	if h.ended.Load() || h.queued.Swap(true) {
		return
	}
	h.ledger.queue.push(&op{kind: opProgress, note: h})
}

// Lost tells whether the request can be settled no more: this node was declared
// dead since it was admitted, so that a sweep ends it.
func (h *Hold) Lost() bool { return h.row.Epoch != h.ledger.node.Epoch() }

// Settle ends the request durably: when it returns nil, the charge and the
// receipt are committed, and only then may the answer's last byte go out. A
// second call does nothing and returns nil. Errors, when the database is away
// for longer than OutageGrace or ctx ends (pass one that outlives the client):
// ErrNotSettled, after which the hold is given back without a charge; and
// ErrUnknown, after which a streamed end is still charged, and another one
// only if its commit was already under way.
func (h *Hold) Settle(ctx context.Context, e End) error {
	if h.ended.Swap(true) {
		return nil
	}
	op := h.endOp(e)
	h.ledger.queue.push(op)
	timer := time.NewTimer(h.ledger.opts.OutageGrace)
	defer timer.Stop()
	select {
	case <-op.done:
		return op.err
	case <-timer.C:
	case <-ctx.Done():
	}
	// The caller gives up. What was streamed is charged later. Otherwise: not
	// taken, it is known that nothing was committed, and the hold is given
	// back; taken, nobody knows yet.
	if e.Streamed {
		return ErrUnknown
	}
	if op.state.CompareAndSwap(opWaiting, opLeft) {
		e.Outcome, e.Cost, e.Status, e.Code = Failed, 0, 503, string(fault.ServiceUnavailable)
		h.ledger.queue.push(h.endOp(e))
		return ErrNotSettled
	}
	if op.state.CompareAndSwap(opTaken, opAbandoned) {
		return ErrUnknown
	}
	<-op.done // answered in this moment
	return op.err
}

// releaseWait bounds how long Release waits for its commit, so that usually
// nothing is held any more when the client sees the error.
const releaseWait = time.Second

// Release ends the request without a charge. It waits for the commit for a
// short time; after that it goes on by itself. A second call does nothing.
func (h *Hold) Release(e End) {
	if h.ended.Swap(true) {
		return
	}
	if e.Outcome == Billed {
		e.Outcome = Failed
	}
	e.Cost = 0
	op := h.endOp(e)
	h.ledger.queue.push(op)
	timer := time.NewTimer(releaseWait)
	defer timer.Stop()
	select {
	case <-op.done:
	case <-timer.C:
	}
}

func (h *Hold) endOp(e End) *op {
	return &op{
		kind: opEnd, account: h.row.Account, key: h.row.Key, free: h.row.Free,
		hold: h, holdID: h.row.ID, epoch: h.row.Epoch, end: e, attempts: attemptsJSON(e.Attempts), done: make(chan struct{}),
	}
}

// attemptsJSON encodes the trace of the attempts. What cannot be encoded
// leaves an empty trace: a receipt never fails for its trace.
func attemptsJSON(v any) string {
	if v == nil {
		return "[]"
	}
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return "[]"
	}
	return string(raw)
}
