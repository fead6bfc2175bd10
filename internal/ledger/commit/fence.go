package commit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
)

// errPoisoned means that a batch of one operation failed: the operation, or a row that it needs, is
// at fault.
var errPoisoned = errors.New("the operation cannot be committed")

// handleFence completes a batch whose fence was not raised. unanswered has the decisions of the try
// whose COMMIT was not answered, or is nil if there is no such try. If that try was committed, its
// decisions stand. If no try was committed, the operations are tried again in a new epoch. If the
// outcome cannot be known, callers of settlements get ErrUnknown.
func (w *worker) handleFence(ops []*Op, result tryResult, unanswered *batch, cause error) {
	switch {
	case result == resultCommittedBefore && unanswered != nil:
		w.advance()
		w.answer(ops, unanswered)
	case result == resultCommittedBefore: // by another process with this epoch
		w.rejoin(fmt.Errorf("batch %d of this node was committed by somebody else", w.batch+1))
		w.retryInNewEpoch(ops, cause)
	case result == resultCommittedThenFenced && unanswered != nil:
		epoch := w.epoch
		w.rejoin(cause)
		w.answerCommittedThenFenced(ops, unanswered, epoch)
	case result == resultUnknowable && unanswered != nil:
		w.rejoin(cause)
		w.answerUnknowable(ops, cause)
	default: // no try was committed, and none will be
		w.rejoin(cause)
		w.retryInNewEpoch(ops, cause)
	}
}

// rejoin starts a new epoch of this node, unless another worker has. The sweep ends the holds of the
// old epoch.
func (w *worker) rejoin(cause error) {
	w.rejoining.Lock()
	defer w.rejoining.Unlock()
	defer w.begin()
	if w.epoch != w.opts.Node.Epoch() {
		return
	}
	w.opts.Log.Error("ledger: this node goes on under a new epoch, and what it held under the former one is taken over", "epoch", w.epoch,
		"cause", cause)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		err := w.opts.Node.Rejoin(ctx)
		cancel()
		if err == nil {
			w.writes.recordBeat(nil, w.opts.Now())
			return
		}
		w.opts.Log.Warn("ledger: the node cannot register", "error", err)
		<-time.After(maxPause)
	}
}

// retryInNewEpoch commits operations of a batch that was not committed in the old epoch. It refuses
// settlements of the old epoch: the sweep ends their holds.
func (w *worker) retryInNewEpoch(ops []*Op, cause error) {
	var rest, gone []*Op
	for _, o := range ops {
		if o.kind == opEnd && o.epoch != w.epoch {
			gone = append(gone, o)
		} else {
			rest = append(rest, o)
		}
	}
	w.refuse(gone, cause)
	if len(rest) > 0 {
		w.commit(rest)
	}
}

// answerCommittedThenFenced answers a batch that was committed before its epoch was declared dead.
// The decisions stand, except for admitted chat requests: the sweep releases their holds, so these
// requests must not run.
func (w *worker) answerCommittedThenFenced(ops []*Op, b *batch, epoch string) {
	for _, o := range ops {
		if d := b.decisions[o]; o.kind == opAdmit && d.hold != nil && d.hold.Epoch == epoch {
			o.Logged = true
			d.hold, d.err = nil, Unavailable(errors.New("this node was declared dead while it admitted the request"))
			b.decisions[o] = d
		}
	}
	w.answer(ops, b)
}

// answerUnknowable answers a batch whose outcome cannot be known. Chat admissions are refused: the
// sweep charges no request that has not started. Log rows are written again, which has no effect if
// they exist.
func (w *worker) answerUnknowable(ops []*Op, cause error) {
	w.opts.Log.Error("ledger: it cannot be known any more whether a batch was committed; its answers are cut off", "operations", len(ops),
		"cause", cause)
	var refusals []*Op
	for _, o := range ops {
		switch {
		case o.kind == opRefused:
			refusals = append(refusals, o)
			continue
		case o.kind == opAdmit && o.admitHook == nil:
			o.Logged, o.Err = true, Unavailable(cause)
		case o.kind == opAdmit, o.kind == opEnd:
			w.undo(o)
			o.Logged, o.Err = true, fmt.Errorf("%w: %w", ErrUnknown, cause)
		default:
			o.Err = cause
		}
		w.finish(o, false)
	}
	if len(refusals) > 0 {
		w.commit(refusals)
	}
}

// refuse answers operations that are not committed and not tried again.
func (w *worker) refuse(ops []*Op, cause error) {
	for _, o := range ops {
		if (o.kind == opEnd || o.kind == opJob) && errors.Is(cause, errPoisoned) {
			w.failedEnds.add(o.holdID, failedEnd{cause, o.hold})
		}
		switch o.kind {
		case opAdmit:
			o.Err = Unavailable(cause)
		case opEnd:
			o.Err = fmt.Errorf("%w: %w", ErrNotSettled, cause)
		default:
			o.Err = cause
		}
		w.finish(o, false)
	}
}

// finish marks an operation as answered. If the caller of an admission has stopped waiting, finish
// undoes a committed admission and logs the answer that the caller got, so that a request never has
// two receipts.
func (c *Committer) finish(o *Op, admitted bool) {
	left := !o.state.CompareAndSwap(opTaken, opAnswered)
	if o.Done != nil {
		close(o.Done)
	}
	switch {
	case !left || o.kind != opAdmit:
	case !admitted:
		if !o.Logged {
			c.LogRefusal(o.Answer, c.opts.Now())
		}
	case o.admitHook != nil:
		c.undo(o)
	default:
		end := books.End{Outcome: books.Failed, Status: o.Answer.Status, Code: o.Answer.Code, Duration: o.Answer.Duration}
		if end.Code == string(fault.ClientClosed) {
			end.Outcome = books.Closed
		}
		c.End(o.Hold, end)
	}
}

// undo ends the job of an admission whose caller got no answer, unless the hook keeps the job for a
// repeated request. It is a no-op for other operations.
func (c *Committer) undo(o *Op) {
	if o.admitHook == nil {
		return
	}
	if undo := o.admitHook.Undo(); undo != nil {
		a := o.admission
		c.queue.push(&Op{kind: opJob, account: a.Account, key: a.Key, holdID: a.Request, endHook: undo})
	}
}
