package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/fault"
)

// errPoisoned marks the refusal of an operation alone in its batch: the operation, or a row it
// needs, cannot be committed.
var errPoisoned = errors.New("the operation cannot be committed")

// ended answers a batch whose fence did not move. lost holds the decisions of the try without an
// answer to its COMMIT, or is nil if there is no such try. If that try was committed, its decisions
// stand; if it was not, nothing is committed; if the outcome cannot be known, no caller is told
// that it was not charged.
func (c *committer) ended(ops []*op, v verdict, lost *batch, cause error) {
	switch {
	case v == wasCommitted && lost != nil:
		c.batch++
		c.answer(ops, lost)
	case v == wasCommitted: // by another process with this epoch
		c.rejoin(fmt.Errorf("batch %d of this node was committed by somebody else", c.batch+1))
		c.again(ops, cause)
	case v == outlived && lost != nil:
		epoch := c.epoch
		c.rejoin(cause)
		c.answerOutlived(ops, lost, epoch)
	case v == vanished && lost != nil:
		c.rejoin(cause)
		c.unknown(ops, cause)
	default: // nothing of this batch is committed, nor ever will be
		c.rejoin(cause)
		c.again(ops, cause)
	}
}

// rejoin begins a new life of this node and takes over the holds of the former one.
func (c *committer) rejoin(cause error) {
	c.l.log.Error("ledger: this node goes on under a new epoch, and what it held under the former one is taken over", "epoch", c.epoch,
		"cause", cause)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		err := c.l.node.Rejoin(ctx)
		cancel()
		if err == nil {
			c.l.writing.beats(nil, c.l.now())
			c.epoch, c.batch = c.l.node.Epoch(), 0
			c.series, c.parts = knownSeries{}, knownParts{} // the books may be older ones
			return
		}
		c.l.log.Warn("ledger: the node cannot register", "error", err)
		<-time.After(maxPause)
	}
}

// again commits, in a new life, operations of which nothing was committed in the former one.
// Endings of the former life are refused: it settles nothing any more, and the sweep releases their
// holds.
func (c *committer) again(ops []*op, cause error) {
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

// answerOutlived answers a batch that was committed before its epoch was declared dead. Its
// decisions stand, but the sweep now owns the holds of its chat requests and releases them, so
// these requests must not run.
func (c *committer) answerOutlived(ops []*op, b *batch, epoch string) {
	for _, o := range ops {
		if d := b.decisions[o]; o.kind == opAdmit && d.hold != nil && d.hold.Epoch == epoch {
			o.receipted = true
			d.hold, d.err = nil, unavailable(errors.New("this node was declared dead while it admitted the request"))
			b.decisions[o] = d
		}
	}
	c.answer(ops, b)
}

// unknown answers a batch with an unknowable outcome. A chat admission is refused either way,
// because no sweep charges a request that did not begin. Log rows are written again, and have no
// effect if they exist.
func (c *committer) unknown(ops []*op, cause error) {
	c.l.log.Error("ledger: it cannot be known any more whether a batch was committed; its answers are cut off", "operations", len(ops),
		"cause", cause)
	var rows []*op
	for _, o := range ops {
		switch {
		case o.kind == opRefused:
			rows = append(rows, o)
			continue
		case o.kind == opAdmit && o.admitting == nil:
			o.receipted, o.err = true, unavailable(cause)
		case o.kind == opAdmit, o.kind == opEnd:
			c.l.undo(o) // a job whose client was cut off and cannot find it
			o.receipted, o.err = true, fmt.Errorf("%w: %w", ErrUnknown, cause)
		default:
			o.err = cause
		}
		c.finish(o, false)
	}
	if len(rows) > 0 {
		c.commit(rows)
	}
}

// refuse answers operations that will never run.
func (c *committer) refuse(ops []*op, cause error) {
	for _, o := range ops {
		if (o.kind == opEnd || o.kind == opJob) && errors.Is(cause, errPoisoned) {
			c.l.damages.add(o.holdID, refusedEnd{cause, o.hold})
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

// finish closes an operation. If an admission's caller has left, finish undoes the committed
// admission and logs the caller's answer, so that one request never has two receipts.
func (c *committer) finish(o *op, admitted bool) {
	left := !o.state.CompareAndSwap(opTaken, opAnswered)
	if o.done != nil {
		close(o.done)
	}
	switch {
	case !left || o.kind != opAdmit:
	case !admitted:
		if !o.receipted && !o.ridden {
			c.l.Refused(o.told)
		}
	case o.admitting != nil:
		c.l.undo(o)
	default:
		o.hold.ended.Store(true)
		end := End{Outcome: Failed, Status: o.told.Status, Code: o.told.Code, Duration: o.told.Duration}
		if end.Code == string(fault.ClientClosed) {
			end.Outcome = Closed
		}
		c.l.queue.push(o.hold.endOp(end))
	}
}

// undo ends the job of an admission whose client was cut off, unless the client has a way to find
// it. It is a no-op for other operations and without a job.
func (l *Ledger) undo(o *op) {
	if o.admitting == nil {
		return
	}
	if undo := o.admitting.Undo(); undo != nil {
		a := o.admission
		l.queue.push(&op{kind: opJob, account: a.Account, key: a.Key, free: a.FreeDaily > 0, holdID: a.Request, ending: undo})
	}
}
