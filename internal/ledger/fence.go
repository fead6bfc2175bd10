package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/rows"
)

// errPoisoned means that a batch of one operation failed: the operation, or a row that it needs, is
// at fault.
var errPoisoned = errors.New("the operation cannot be committed")

// handleFence completes a batch whose fence was not raised. unanswered has the decisions of the try
// whose COMMIT was not answered, or is nil if there is no such try. If that try was committed, its
// decisions stand. If no try was committed, the operations are tried again in a new epoch. If the
// outcome cannot be known, callers of settlements get ErrUnknown.
func (c *committer) handleFence(ops []*op, v tryResult, unanswered *batch, cause error) {
	switch {
	case v == resultCommittedBefore && unanswered != nil:
		c.batch++
		c.answer(ops, unanswered)
	case v == resultCommittedBefore: // by another process with this epoch
		c.rejoin(fmt.Errorf("batch %d of this node was committed by somebody else", c.batch+1))
		c.retryInNewEpoch(ops, cause)
	case v == resultCommittedThenFenced && unanswered != nil:
		epoch := c.epoch
		c.rejoin(cause)
		c.answerCommittedThenFenced(ops, unanswered, epoch)
	case v == resultUnknowable && unanswered != nil:
		c.rejoin(cause)
		passed := c.answerUnknowable(ops, unanswered, cause)
		c.retryInNewEpoch(passed, cause)
	default: // no try was committed, and none will be
		c.rejoin(cause)
		c.retryInNewEpoch(ops, cause)
	}
}

// rejoin starts a new epoch of this node. The sweep ends the holds of the old epoch.
func (c *committer) rejoin(cause error) {
	c.l.log.Error("ledger: this node goes on under a new epoch, and what it held under the former one is taken over", "epoch", c.epoch,
		"cause", cause)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		err := c.l.node.Rejoin(ctx)
		cancel()
		if err == nil {
			c.l.writes.recordBeat(nil, c.l.now())
			c.epoch, c.batch = c.l.node.Epoch(), 0
			c.cache = rows.Cache{} // the database may have been restored to an older state
			return
		}
		c.l.log.Warn("ledger: the node cannot register", "error", err)
		<-time.After(maxPause)
	}
}

// retryInNewEpoch commits operations of a batch that was not committed in the old epoch. It refuses
// settlements of the old epoch: the sweep ends their holds.
func (c *committer) retryInNewEpoch(ops []*op, cause error) {
	var rest, gone []*op
	for _, o := range ops {
		if o.kind == opEnd && o.epoch != c.epoch {
			gone = append(gone, o)
		} else {
			rest = append(rest, o)
		}
	}
	c.refuse(gone, cause)
	if len(rest) > 0 {
		c.commit(rest)
	}
}

// answerCommittedThenFenced answers a batch that was committed before its epoch was declared dead.
// The decisions stand, except for admitted chat requests: the sweep releases their holds, so these
// requests must not run.
func (c *committer) answerCommittedThenFenced(ops []*op, b *batch, epoch string) {
	for _, o := range ops {
		if d := b.decisions[o]; o.kind == opAdmit && d.hold != nil && d.hold.Epoch == epoch {
			o.logged = true
			d.hold, d.err = nil, unavailable(errors.New("this node was declared dead while it admitted the request"))
			b.decisions[o] = d
		}
	}
	c.answer(ops, b)
}

// answerUnknowable answers a batch whose outcome cannot be known, and returns the operations that
// the batch has passed over. Chat admissions are refused: the sweep charges no request that has not
// started. Log rows are written again, which has no effect if they exist.
func (c *committer) answerUnknowable(ops []*op, b *batch, cause error) (passed []*op) {
	c.l.log.Error("ledger: it cannot be known any more whether a batch was committed; its answers are cut off", "operations", len(ops),
		"cause", cause)
	var refusals []*op
	for _, o := range ops {
		if _, decided := b.decisions[o]; !decided {
			passed = append(passed, o)
			continue
		}
		switch {
		case o.kind == opRefused:
			refusals = append(refusals, o)
			continue
		case o.kind == opAdmit && o.admitHook == nil:
			o.logged, o.err = true, unavailable(cause)
		case o.kind == opAdmit, o.kind == opEnd:
			c.l.undo(o)
			o.logged, o.err = true, fmt.Errorf("%w: %w", ErrUnknown, cause)
		default:
			o.err = cause
		}
		c.finish(o, false)
	}
	if len(refusals) > 0 {
		c.commit(refusals)
	}
	return passed
}

// refuse answers operations that are not committed and not tried again.
func (c *committer) refuse(ops []*op, cause error) {
	for _, o := range ops {
		if (o.kind == opEnd || o.kind == opJob) && errors.Is(cause, errPoisoned) {
			c.l.failedEnds.add(o.holdID, failedEnd{cause, o.hold})
		}
		switch o.kind {
		case opAdmit:
			o.err = unavailable(cause)
		case opEnd:
			o.err = fmt.Errorf("%w: %w", ErrNotSettled, cause)
		default:
			o.err = cause
		}
		c.finish(o, false)
	}
}

// finish marks an operation as answered. If the caller of an admission has stopped waiting, finish
// undoes a committed admission and logs the answer that the caller got, so that a request never has
// two receipts.
func (c *committer) finish(o *op, admitted bool) {
	left := !o.state.CompareAndSwap(opTaken, opAnswered)
	if o.done != nil {
		close(o.done)
	}
	switch {
	case !left || o.kind != opAdmit:
	case !admitted:
		if !o.logged && !o.hookRan {
			c.l.Refused(o.leaveAnswer)
		}
	case o.admitHook != nil:
		c.l.undo(o)
	default:
		o.hold.ended.Store(true)
		end := End{Outcome: Failed, Status: o.leaveAnswer.Status, Code: o.leaveAnswer.Code, Duration: o.leaveAnswer.Duration}
		if end.Code == string(fault.ClientClosed) {
			end.Outcome = Closed
		}
		c.l.queue.push(o.hold.endOp(end))
	}
}

// undo ends the job of an admission whose caller got no answer, unless the hook keeps the job for a
// repeated request. It is a no-op for other operations.
func (l *Ledger) undo(o *op) {
	if o.admitHook == nil {
		return
	}
	if undo := o.admitHook.Undo(); undo != nil {
		a := o.admission
		l.queue.push(&op{kind: opJob, account: a.Account, key: a.Key, holdID: a.Request, endHook: undo})
	}
}
