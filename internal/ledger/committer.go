package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// committer turns the queue into transactions, one after the other. There are no timers: the next
// batch holds the operations queued during the last commit. It is used by one goroutine.
//
// A batch begins by moving the node's batch number from n-1 to n. If the answer to a COMMIT is
// lost, the committer tries the same batch again on a new connection: the update waits for the old
// transaction, and if the number has moved, the old one was committed. The row of a dead node holds
// the same evidence (ADR 3).
type committer struct {
	l     *Ledger
	epoch string
	batch int64 // number of the last committed batch

	series knownSeries
	parts  knownParts
	rows   knownRows

	// exec runs a batch of statements; tests put faults here.
	exec func(ctx context.Context, s *store.Session, b *store.Batch, phase phase) error
}

// phase names the round trips of a batch, for tests that break them.
type phase int

const (
	phaseRead phase = iota
	phaseWrite
	phaseProve // asks for the fate of a batch after a lost answer
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
	return &committer{l: l, epoch: l.node.Epoch(), exec: exec, series: knownSeries{}, parts: knownParts{}}
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

// verdict is the known outcome of one try of a batch.
type verdict int

const (
	committed    verdict = iota
	wasCommitted         // an earlier try of this batch was
	notCommitted
	unknown  // the COMMIT was sent and its answer lost
	fenced   // this node was declared dead, and no try was committed before
	outlived // an earlier try was committed, and then this node was declared dead
	vanished // this node was declared dead too long ago to find out
)

// commit completes a batch, whatever the database does. It tries again while the database is away,
// splits a failing batch until the poisoned operation stands alone, and begins a new life if this
// node was declared dead.
func (c *committer) commit(ops []*op) {
	var lost *batch // decisions of the try without an answer to its COMMIT
	var cause error
	alone := false // it has been refused alone
	pause := minPause
	defer c.l.writing.over()
	for {
		start := c.l.now()
		v, b, err := c.try(ops)
		switch v {
		case committed:
			c.batch++
			c.series.add(b.newSeries)
			c.parts.add(b.newParts)
			c.rows.keep(b)
			c.l.writing.batch(nil, c.l.now())
			c.answer(ops, b)
			if c.l.opts.Observer.Batch != nil {
				c.l.opts.Observer.Batch(len(ops), c.l.now().Sub(start))
			}
			return
		case unknown:
			lost = b
		case notCommitted:
			// The fence held, so no earlier try is pending any more. A connection that failed
			// before the fence proves nothing about that.
			if !away(err) {
				lost = nil
				if !store.Retryable(err) {
					if len(ops) > 1 || alone {
						c.split(ops, err)
						return
					}
					alone = true // the connection may be at fault: once more, on another one
				}
			}
		default:
			c.ended(ops, v, lost, err)
			return
		}
		if cause == nil || cause.Error() != err.Error() {
			c.l.log.Warn("ledger: a batch was not committed and is tried again", "batch", c.batch+1, "operations", len(ops), "error", err)
			cause = err
		}
		if away(err) {
			c.l.writing.batch(err, c.l.now())
		}
		<-time.After(pause)
		pause = min(2*pause, maxPause)
	}
}

// try runs the batch once.
func (c *committer) try(ops []*op) (verdict, *batch, error) {
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

func (c *committer) tryOn(ctx context.Context, session *store.Session, ops []*op) (verdict, *batch, error) {
	b := newBatch(c.series, c.parts)
	read, err := c.begin(ctx, session, b)
	if err != nil {
		return notCommitted, nil, awayError{err}
	}
	var moved int64
	node.Advance(read, &moved, c.epoch, c.batch+1)
	b.read(read, read.QueryLocked, c.l.db, ops)
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
	if days := c.l.db.NewBatch(); b.readDays(days, c.l.db) {
		if err := c.exec(ctx, session, days, phaseRead); err != nil {
			return notCommitted, nil, fmt.Errorf("read another day: %w", err)
		}
	}
	b.decide(ops, c.epoch)
	write := c.l.db.NewBatch()
	b.write(write, c.l.db, c.l.opts.TellLow)
	write.Version(&b.version)
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

// begin opens the transaction and returns the batch of statements to run next in it. On SQLite the
// transaction is already open then, and b gets the cached rows that are still valid.
func (c *committer) begin(ctx context.Context, session *store.Session, b *batch) (*store.Batch, error) {
	begin := c.l.db.NewBatch()
	begin.Begin(lockTimeout, idleTimeout)
	if !c.l.db.HasVersion() {
		return begin, nil
	}
	var now store.Version
	begin.Version(&now)
	if err := c.exec(ctx, session, begin, phaseRead); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	b.known = c.rows.at(now)
	return c.l.db.NewBatch(), nil
}

// resolve finds out why the fence did not move, in the open transaction. The commit of this
// transaction proves its reads (node.Prove).
func (c *committer) resolve(ctx context.Context, session *store.Session) (verdict, *batch, error) {
	var fate node.Fate
	prove := c.l.db.NewBatch()
	node.Prove(prove, &fate, c.epoch)
	if err := c.exec(ctx, session, prove, phaseProve); err != nil {
		return notCommitted, nil, awayError{fmt.Errorf("ask for this node's last batch: %w", err)}
	}
	v, err := judgeFate(fate, c.batch)
	return v, nil, err
}

// judgeFate returns the fate of batch last+1, whose fence did not move, according to the epoch's
// row. The number in a row only grows, and never after the epoch is dead.
func judgeFate(fate node.Fate, last int64) (verdict, error) {
	switch {
	case !fate.Found:
		return vanished, node.ErrFenced
	case fate.Batch == last+1 && fate.Dead:
		return outlived, node.ErrFenced
	case fate.Batch == last+1:
		return wasCommitted, nil
	case fate.Batch == last && fate.Dead:
		return fenced, node.ErrFenced
	case fate.Batch <= last: // the batch is not in these books, nor are some before it
		return fenced, fmt.Errorf(
			"this node's batch number went back from %d to %d: the database was restored, or failed over to a standby that was behind", last,
			fate.Batch)
	}
	return vanished, fmt.Errorf("this node's batch number is %d, beyond %d: somebody else writes under its epoch", fate.Batch, last+1)
}

// awayError marks a failure to reach the database, which proves nothing about the statements.
type awayError struct{ error }

func (e awayError) Unwrap() error { return e.error }

// away reports whether err means that the database is away and not that the statements are at
// fault.
func away(err error) bool {
	var mark awayError
	if errors.As(err, &mark) {
		return true
	}
	return !store.Refused(err)
}

// split halves a refused batch until the operation at fault stands alone and is refused by itself.
func (c *committer) split(ops []*op, err error) {
	if len(ops) > 1 {
		half := len(ops) / 2
		c.commit(ops[:half])
		c.commit(ops[half:])
		return
	}
	err = fmt.Errorf("%w: %w", errPoisoned, err)
	c.l.log.Error("ledger: an operation cannot be committed", "operation", ops[0].String(), "error", err)
	c.refuse(ops, err)
}

// answer sends the committed decisions to the callers.
func (c *committer) answer(ops []*op, b *batch) {
	for _, o := range ops {
		d := b.decisions[o]
		o.err = d.err
		switch o.kind {
		case opAdmit:
			if d.hold != nil {
				o.hold = &Hold{Amount: d.hold.Amount, Account: d.hold.Account, Key: d.hold.Key, ledger: c.l, row: d.hold}
			}
		case opEnd, opSweep, opJob:
			c.observe(o, d)
		}
		o.ridden = d.rode
		if o.kind != opSweep && damaged(d.err) {
			c.l.damages.add(o.holdID, refusedEnd{d.err, o.hold})
		}
		c.finish(o, d.hold != nil)
	}
	if tell := c.l.opts.Observer.Ended; tell != nil {
		b.EachEnd(tell)
	}
	if len(b.Lows) > 0 && c.l.opts.ToldLow != nil {
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
		return "progress " + o.note.row.ID
	case opConfirm:
		return "confirm"
	default:
		return "log refusal " + o.refusal.Request
	}
}
