package ledger

import (
	"context"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
)

// Tokens are the counts of one answer.
type Tokens = books.Tokens

// Outcome says how a request ended.
type Outcome = books.Outcome

// The outcomes, as the request log keeps them.
const (
	Billed  = books.Billed  // charged, perhaps with 0
	Failed  = books.Failed  // with an error, without a charge
	Closed  = books.Closed  // the client disconnected before the first byte; no charge
	Refused = books.Refused // before or at admission
)

// UsageSource says who counted the charged tokens.
type UsageSource = books.UsageSource

// The sources, as receipts keep them.
const (
	SourceProvider = books.SourceProvider // the provider
	SourceGateway  = books.SourceGateway  // the gateway, because the provider sent no counts
	SourceBoth     = books.SourceBoth     // one counted the prompt, the other the answer
	SourceProgress = books.SourceProgress // the progress of a stream whose node died
)

// End is the content of a request's receipt.
type End = books.End

// Progress is a stream's output so far.
type Progress = books.Progress

// Progress records the stream's output, which is charged if this node dies. It does not block. The
// newest value replaces earlier ones.
func (h *Hold) Progress(p Progress) {
	if !h.ended.Load() {
		h.ledger.committer.Progress(h.open, p)
	}
}

// Lost reports whether the request cannot be settled any more: this node was declared dead after
// the admission, so a sweep ends the request.
func (h *Hold) Lost() bool { return h.open.Row.Epoch != h.ledger.node.Epoch() }

// Settle ends the request durably: when it returns nil, the charge and the receipt are committed.
// The answer's last bytes must not be sent before. A second call is a no-op and returns nil. Settle
// fails if the database is unreachable for longer than OutageGrace or ctx ends; pass a context that
// outlives the client. After ErrNotSettled the hold is released without a charge. After ErrUnknown
// a streamed answer is still charged, and another answer only if its commit was already under way.
func (h *Hold) Settle(ctx context.Context, e End) error {
	if h.ended.Swap(true) {
		return nil
	}
	op := h.ledger.committer.End(h.open, e)
	timer := time.NewTimer(h.ledger.opts.OutageGrace)
	defer timer.Stop()
	select {
	case <-op.Done:
		return op.Err
	case <-timer.C:
	case <-ctx.Done():
	}
	// The caller stops waiting. A streamed answer is charged later. If no batch has taken the
	// operation, nothing was committed, and the hold is released; otherwise the outcome is unknown.
	if e.Streamed {
		return ErrUnknown
	}
	if op.Withdraw() {
		e.Outcome, e.Cost, e.Status, e.Code = Failed, 0, 503, string(fault.ServiceUnavailable)
		h.ledger.committer.End(h.open, e)
		return ErrNotSettled
	}
	if op.Abandon() {
		return ErrUnknown
	}
	<-op.Done // the committer has just answered
	return op.Err
}

// releaseWait bounds how long Release waits for its commit, so that the hold is usually gone when
// the client sees the error.
const releaseWait = time.Second

// Release ends the request without a charge. It waits a short time for the commit and then goes on
// in the background. A second call is a no-op.
func (h *Hold) Release(e End) {
	if h.ended.Swap(true) {
		return
	}
	if e.Outcome == Billed {
		e.Outcome = Failed
	}
	e.Cost = 0
	op := h.ledger.committer.End(h.open, e)
	timer := time.NewTimer(releaseWait)
	defer timer.Stop()
	select {
	case <-op.Done:
	case <-timer.C:
	}
}
