package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// committer turns what waits in the queue into transactions, one after the
// other. There are no timers: the next batch is what queued during the last
// commit. It is used by one goroutine.
//
// A batch begins by moving the node's batch number from n-1 to n, so a lost
// answer to a COMMIT is resolved by trying the same batch again on a new
// connection: the update waits for the old transaction, and if the number has
// moved, the old one was committed.
type committer struct {
	l     *Ledger
	epoch string
	batch int64 // number of the last committed batch

	// run runs a batch of statements; tests put faults here.
	exec func(ctx context.Context, s *store.Session, b *store.Batch, phase phase) error
}

// phase names the two round trips of a batch, for tests that break them.
type phase int

const (
	phaseRead phase = iota
	phaseWrite
)

// Bounds of one batch on the database, and of the pauses between tries while
// the database is away.
const (
	batchTimeout = 5 * time.Second
	lockTimeout  = "500ms"
	idleTimeout  = "2s"
	minPause     = 5 * time.Millisecond
	maxPause     = 500 * time.Millisecond
)

func newCommitter(l *Ledger) *committer {
	exec := l.exec
	if exec == nil {
		exec = func(ctx context.Context, s *store.Session, b *store.Batch, _ phase) error { return s.Run(ctx, b) }
	}
	return &committer{l: l, epoch: *l.epoch.Load(), exec: exec}
}

// run commits until the queue is closed and empty.
func (c *committer) run() {
	ops := make([]*op, 0, batchSize)
	for {
		ops = c.l.queue.take(ops)
		if ops == nil {
			return
		}
		c.commit(ops)
	}
}

// verdict is what is known after one try of a batch.
type verdict int

const (
	committed       verdict = iota
	committedBefore         // an earlier try of this batch was
	notCommitted
	unknown // the COMMIT was sent and its answer lost
	fenced  // this node was declared dead
)

// commit brings a batch to an end, whatever the database does: it tries again
// while the database is away, splits a batch that fails by itself until the
// poisoned operation stands alone, and begins a new life when this node was
// declared dead.
func (c *committer) commit(ops []*op) {
	var lost *books // decisions of the try whose COMMIT has no answer
	var cause error
	pause := minPause
	for {
		start := time.Now()
		v, b, err := c.try(ops)
		switch v {
		case committed:
			c.batch++
			c.answer(ops, b)
			if c.l.opts.Observer.Batch != nil {
				c.l.opts.Observer.Batch(len(ops), time.Since(start))
			}
			return
		case committedBefore:
			if lost == nil {
				c.refuse(ops, fmt.Errorf("batch %d of this node was committed by somebody else", c.batch+1))
				c.rejoin()
				return
			}
			c.batch++
			c.answer(ops, lost)
			return
		case fenced:
			c.rejoin()
			c.afterFence(ops)
			return
		case unknown:
			lost = b
		case notCommitted:
			// The fence held: no earlier try is pending any more. A failed
			// connection before the fence says nothing about that.
			if !away(err) {
				lost = nil
				if !store.Retryable(err) {
					c.split(ops, err)
					return
				}
			}
		}
		if cause == nil || cause.Error() != err.Error() {
			c.l.log.Warn("ledger: a batch was not committed and is tried again", "batch", c.batch+1, "operations", len(ops), "error", err)
			cause = err
		}
		<-time.After(pause)
		pause = min(2*pause, maxPause)
	}
}

// try runs the batch once.
func (c *committer) try(ops []*op) (verdict, *books, error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	session, err := c.l.db.Session(ctx)
	if err != nil {
		return notCommitted, nil, awayError{err}
	}
	v, b, err := c.tryOn(ctx, session, ops)
	if cerr := session.Close(v == committed); cerr != nil && v != committed {
		err = errors.Join(err, cerr)
	}
	return v, b, err
}

func (c *committer) tryOn(ctx context.Context, session *store.Session, ops []*op) (verdict, *books, error) {
	b := newBooks()
	read := c.l.db.NewBatch()
	var moved int64
	read.Begin(lockTimeout, idleTimeout)
	read.AdvanceNode(&moved, c.epoch, c.batch+1)
	b.read(read, c.l.db, ops)
	if err := c.exec(ctx, session, read, phaseRead); err != nil {
		err = fmt.Errorf("read the books: %w", err)
		if moved == 0 { // an earlier try may still be on its way
			err = awayError{err}
		}
		return notCommitted, nil, err
	}
	if moved == 0 {
		return c.resolve(ctx, session)
	}
	b.decide(ops, c.epoch)
	write := c.l.db.NewBatch()
	b.write(write, c.l.db, c.l.opts.TellLow)
	write.Commit()
	if err := c.exec(ctx, session, write, phaseWrite); err != nil {
		err = fmt.Errorf("write the books: %w", err)
		if store.Refused(err) {
			return notCommitted, nil, err
		}
		return unknown, b, err
	}
	return committed, b, nil
}

// resolve finds out why the fence did not move.
func (c *committer) resolve(ctx context.Context, session *store.Session) (verdict, *books, error) {
	var batch int64
	var alive bool
	ask := c.l.db.NewBatch()
	ask.NodeBatch(&batch, &alive, c.epoch)
	if err := c.exec(ctx, session, ask, phaseRead); err != nil {
		return notCommitted, nil, awayError{err}
	}
	switch {
	case !alive:
		return fenced, nil, store.ErrFenced
	case batch == c.batch+1:
		return committedBefore, nil, nil
	}
	return fenced, nil, fmt.Errorf("this node's batch number is %d, not %d: the database was restored or failed over", batch, c.batch)
}

// awayError marks a failure that says nothing about the statements: the
// database could not be asked.
type awayError struct{ error }

func (e awayError) Unwrap() error { return e.error }

// away tells whether err is the database's absence and not a fault of the
// statements.
func away(err error) bool {
	var mark awayError
	if errors.As(err, &mark) {
		return true
	}
	return !store.Refused(err)
}

// split halves a batch that the database refused, until the operation at fault
// stands alone and is refused by itself.
func (c *committer) split(ops []*op, err error) {
	if len(ops) > 1 {
		half := len(ops) / 2
		c.commit(ops[:half])
		c.commit(ops[half:])
		return
	}
	c.l.log.Error("ledger: an operation cannot be committed", "operation", ops[0].String(), "error", err)
	c.refuse(ops, err)
}

// refuse answers operations that will never run.
func (c *committer) refuse(ops []*op, cause error) {
	for _, o := range ops {
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

// rejoin begins a new life of this node after it was declared dead.
func (c *committer) rejoin() {
	c.l.log.Error("ledger: this node was declared dead while it ran; it goes on under a new epoch, and what it held is taken over", "epoch", c.epoch)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		err := c.l.register(ctx)
		cancel()
		if err == nil {
			c.epoch, c.batch = *c.l.epoch.Load(), 0
			return
		}
		c.l.log.Warn("ledger: the node cannot register", "error", err)
		<-time.After(maxPause)
	}
}

// afterFence refuses the endings of the former life, which settles nothing any
// more, and commits the rest under the new one.
func (c *committer) afterFence(ops []*op) {
	var rest, gone []*op
	for _, o := range ops {
		if o.kind == opEnd && o.epoch != c.epoch {
			gone = append(gone, o)
		} else {
			rest = append(rest, o)
		}
	}
	c.refuse(gone, store.ErrFenced)
	if len(rest) > 0 {
		c.commit(rest)
	}
}

// answer tells the callers what the committed books decided.
func (c *committer) answer(ops []*op, b *books) {
	for _, o := range ops {
		d := b.decisions[o]
		o.err = d.err
		switch o.kind {
		case opAdmit:
			if d.hold != nil {
				o.hold = &Hold{Amount: d.hold.amount, Account: d.hold.account, Key: d.hold.key, ledger: c.l, row: d.hold}
			}
		case opEnd, opSweep, opJob:
			c.observe(o, d)
		}
		o.ridden = d.rode
		c.finish(o, d.hold != nil)
	}
	if len(b.lows) > 0 && c.l.opts.ToldLow != nil {
		c.l.opts.ToldLow()
	}
}

func (c *committer) observe(o *op, d decision) {
	if d.over > 0 && c.l.opts.Observer.OverHold != nil {
		c.l.opts.Observer.OverHold(d.over)
	}
	if o.kind == opSweep && d.ended && c.l.opts.Observer.Swept != nil {
		c.l.opts.Observer.Swept(d.charged)
	}
}

// finish closes an operation. An admission whose caller has left is undone.
func (c *committer) finish(o *op, admitted bool) {
	left := !o.state.CompareAndSwap(opTaken, opAnswered)
	if o.done != nil {
		close(o.done)
	}
	if left && admitted && o.admitting != nil {
		a := o.admission
		c.l.queue.push(&op{kind: opJob, account: a.Account, key: a.Key, free: a.FreeDaily > 0, holdID: a.Request, ending: o.admitting.Undo()})
		return
	}
	if left && admitted {
		h := o.hold
		h.ended.Store(true)
		c.l.queue.push(h.endOp(End{Outcome: Closed, Status: 499, Code: string(fault.ClientClosed)}))
	}
}

// String names an operation in the log.
func (o *op) String() string {
	switch o.kind {
	case opAdmit:
		return "admit " + o.admission.Request
	case opEnd:
		return "settle " + o.holdID
	case opSweep:
		return "sweep " + o.holdID
	case opJob:
		return "end of the job of " + o.holdID
	case opProgress:
		return "progress " + o.note.row.id
	default:
		return "log refusal " + o.refusal.Request
	}
}
