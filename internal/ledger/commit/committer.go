package commit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"tollgate/internal/ledger/rows"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// Phase identifies a round trip of a batch, so that a test can break the round trip.
type Phase int

// The phases.
const (
	PhaseRead     Phase = iota
	PhaseLock           // waits for an account, before PhaseRead
	PhaseWrite          // ends with the COMMIT
	PhaseConfirm        // reads the node's row after a lost answer
	PhaseRollback       // of a batch without a decision
)

// Bounds of one batch, and of the pauses between tries while the database is unreachable.
const (
	batchTimeout = 5 * time.Second
	idleTimeout  = "2s"
	minPause     = 5 * time.Millisecond
	maxPause     = 500 * time.Millisecond
)

// worker commits batches, one transaction after the other. One goroutine uses it.
type worker struct {
	*Committer
	number int
	epoch  string
	batch  int64 // number of the last committed batch
	cache  rows.Cache
}

// run commits until the queue is closed and empty.
func (w *worker) run() {
	for {
		ops := w.queue.take(w.number)
		if ops == nil {
			return
		}
		if w.epoch != w.opts.Node.Epoch() {
			w.begin()
		}
		w.commit(ops)
		w.queue.end(w.number)
	}
}

// begin starts over in the node's current epoch, without cached rows: the database may have been
// restored to an older state.
func (w *worker) begin() { w.epoch, w.batch, w.cache = w.opts.Node.Epoch(), 0, rows.Cache{} }

// advance records that the batch was committed.
func (w *worker) advance() {
	w.batch++
	w.newest.Store(&lastBatch{w.epoch, node.BatchID{Worker: w.number, Number: w.batch}})
}

// previous returns this worker's last committed batch. Before this worker's first commit in the epoch,
// it returns the newest batch of any worker, or a batch with number 0 if nothing was committed.
func (w *worker) previous() node.BatchID {
	if last := w.newest.Load(); w.batch == 0 && last != nil && last.epoch == w.epoch {
		return last.BatchID
	}
	return node.BatchID{Worker: w.number, Number: w.batch}
}

// lastBatch is a committed batch of an epoch.
type lastBatch struct {
	epoch string
	node.BatchID
}

// tryResult is the known outcome of one try of a batch.
type tryResult int

const (
	resultCommitted       tryResult = iota
	resultCommittedBefore           // an earlier try of this batch was committed
	resultNotCommitted
	resultLocked              // not committed, because other transactions have locked all accounts
	resultUnknown             // the answer to COMMIT was lost
	resultFenced              // this node was declared dead, and no try was committed
	resultCommittedThenFenced // an earlier try was committed, and then this node was declared dead
	resultUnknowable          // this node was declared dead, and its row is already deleted
)

// commit completes a batch, whatever the database does: it retries while the database is
// unreachable, splits a failing batch until the failing operation is alone, and starts a new epoch
// if this node was declared dead.
func (w *worker) commit(ops []*Op) {
	var unanswered *batch // decisions of the try without an answer to its COMMIT
	var cause error
	alone := false // the only operation of the batch has failed once
	pause := minPause
	wait := overdue(ops)
	defer w.writes.recordIdle()
	for {
		start := w.opts.Now()
		result, b, err := w.try(&ops, wait)
		waited := wait
		wait = ""
		switch result {
		case resultCommitted:
			w.advance()
			w.cache.Store(b.Books)
			w.writes.recordBatch(nil, w.opts.Now())
			w.answer(ops, b)
			if w.opts.Observer.Batch != nil {
				w.opts.Observer.Batch(len(b.decisions), w.opts.Now().Sub(start))
			}
			return
		case resultLocked: // the fence was raised, so no earlier try was committed
			unanswered = nil
			wait = ops[0].account
			continue
		case resultUnknown:
			unanswered = b
		case resultNotCommitted:
			// The fence was raised, so no earlier try is pending any more. A connection that failed
			// before the fence proves nothing about earlier tries.
			if !unreachable(err) {
				unanswered = nil
				if waited != "" && store.LockTimeout(err) {
					w.giveUpLock(ops, waited)
					return
				}
				if !store.Retryable(err) {
					if len(ops) > 1 || alone {
						w.split(ops, err)
						return
					}
					alone = true // the connection may be at fault: try once more, on another one
				}
			}
		default:
			w.handleFence(ops, result, unanswered, err)
			return
		}
		if cause == nil || cause.Error() != err.Error() {
			w.opts.Log.Warn("ledger: a batch was not committed and is retried", "batch", w.batch+1, "operations", len(ops), "error", err)
			cause = err
		}
		if unreachable(err) {
			w.writes.recordBatch(err, w.opts.Now())
		}
		<-time.After(store.Jitter(pause)) // nodes that have conflicted must not meet again
		pause = min(2*pause, maxPause)
	}
}

// overdue returns the account of the first operation passed over too often, or "".
func overdue(ops []*Op) string {
	for _, o := range ops {
		if o.passes >= maxPasses {
			return o.account
		}
	}
	return ""
}

// maxPasses bounds how often an operation is passed over before a batch waits for the account. With
// 150 accounts and six nodes, four fifths of the operations are passed over less than three times,
// so few batches wait.
const maxPasses = 8

// giveUpLock passes over all operations of a batch after a wait of LockTimeout for an account. The
// next batch takes new operations of other accounts too, and does not wait at first.
func (w *worker) giveUpLock(ops []*Op, account string) {
	w.opts.Log.Warn("ledger: another transaction has locked an account for long; its requests wait, others go on", "account", account,
		"waited", w.opts.LockTimeout)
	for _, o := range ops {
		if o.account == account {
			o.passes = 0
		}
	}
	w.queue.pass(w.number, ops)
}

// try runs one transaction. It passes over operations whose accounts are locked by others. Unless
// wait is empty, it first waits for the lock of the account wait, and then adds the operations
// queued meanwhile to ops.
func (w *worker) try(ops *[]*Op, wait string) (tryResult, *batch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	session, err := w.opts.DB.Session(ctx)
	if err != nil {
		return resultNotCommitted, nil, unreachableError{err}
	}
	result, b, err := w.tryOn(ctx, session, ops, wait)
	if cerr := session.Close(result == resultCommitted || result == resultLocked); cerr != nil && result != resultCommitted {
		err = errors.Join(err, cerr)
	}
	return result, b, err
}

// tryOn runs the transaction of try on a session: it raises the fence, reads the rows, decides the
// operations, and writes and commits the changes.
func (w *worker) tryOn(ctx context.Context, session *store.Session, ops *[]*Op, wait string) (tryResult, *batch, error) {
	b := &batch{Books: w.cache.NewBooks(), wait: wait}
	b.LockFree = !w.opts.DB.OneProcess()
	read, err := w.open(ctx, session, b)
	if err != nil {
		return resultNotCommitted, nil, unreachableError{err}
	}
	var advanced int64
	node.Advance(read, &advanced, w.epoch, node.BatchID{Worker: w.number, Number: w.batch + 1}, w.previous())
	if wait != "" {
		read.QueryLocked(func(store.Row) error { return nil }, `SELECT id FROM ledger_account WHERE id = $1`, wait)
		if err = w.opts.Exec(ctx, session, read, PhaseLock); err == nil && advanced > 0 {
			*ops = w.queue.more(w.number, *ops)
		}
		read = w.opts.DB.NewBatch()
	}
	if err == nil && (wait == "" || advanced > 0) {
		b.Read(read, w.opts.DB, need(*ops))
		err = w.opts.Exec(ctx, session, read, PhaseRead)
	}
	if err != nil {
		err = fmt.Errorf("read the books: %w", err)
		if advanced == 0 { // an earlier try may still be committed
			err = unreachableError{err}
		}
		return resultNotCommitted, nil, err
	}
	if advanced == 0 {
		return w.resolve(ctx, session)
	}
	b.decide(*ops, w.epoch)
	if len(b.decisions) == 0 {
		rollback := w.opts.DB.NewBatch()
		rollback.Rollback()
		if err := w.opts.Exec(ctx, session, rollback, PhaseRollback); err != nil {
			return resultNotCommitted, nil, unreachableError{fmt.Errorf("roll back: %w", err)}
		}
		return resultLocked, nil, nil
	}
	w.passOver(ops, b)
	write := w.opts.DB.NewBatch()
	b.Write(write, w.opts.AnnounceLow)
	write.Commit()
	if err := w.opts.Exec(ctx, session, write, PhaseWrite); err != nil {
		err = fmt.Errorf("write the books: %w", err)
		if store.Refused(err) {
			return resultNotCommitted, nil, err
		}
		return resultUnknown, b, err
	}
	return resultCommitted, b, nil
}

// passOver removes the operations without a decision from ops. Another batch takes these operations,
// perhaps during the commit of this batch.
func (w *worker) passOver(ops *[]*Op, b *batch) {
	if len(b.decisions) == len(*ops) {
		return
	}
	var decided, passed []*Op
	for _, o := range *ops {
		if _, ok := b.decisions[o]; ok {
			decided = append(decided, o)
			continue
		}
		o.passes++
		passed = append(passed, o)
	}
	*ops = decided
	w.queue.pass(w.number, passed)
}

// open opens the transaction and returns the batch for the next statements. On SQLite the
// transaction is already open when open returns, and b may use cached rows.
func (w *worker) open(ctx context.Context, session *store.Session, b *batch) (*store.Batch, error) {
	begin := w.opts.DB.NewBatch()
	begin.Begin(strconv.FormatInt(w.opts.LockTimeout.Milliseconds(), 10)+"ms", idleTimeout)
	if !w.opts.DB.HasVersion() {
		return begin, nil
	}
	b.Begin(begin)
	if err := w.opts.Exec(ctx, session, begin, PhaseRead); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return w.opts.DB.NewBatch(), nil
}

// resolve finds out why the fence was not raised. It runs in the open transaction, whose commit
// confirms the reads (node.ConfirmState).
func (w *worker) resolve(ctx context.Context, session *store.Session) (tryResult, *batch, error) {
	var state node.EpochState
	read := w.opts.DB.NewBatch()
	node.ConfirmState(read, &state, w.epoch, w.number)
	if err := w.opts.Exec(ctx, session, read, PhaseConfirm); err != nil {
		return resultNotCommitted, nil, unreachableError{fmt.Errorf("read this node's last batch number: %w", err)}
	}
	result, err := resultOf(state, w.batch)
	return result, nil, err
}

// resultOf returns the result of batch last+1, whose fence was not raised, from the epoch's row.
// The number in the row only grows, and does not change after the epoch is dead.
func resultOf(state node.EpochState, last int64) (tryResult, error) {
	switch {
	case !state.Found:
		return resultUnknowable, node.ErrFenced
	case state.Batch == last+1 && state.Dead:
		return resultCommittedThenFenced, node.ErrFenced
	case state.Batch == last+1:
		return resultCommittedBefore, nil
	case state.Batch == last && state.Dead:
		return resultFenced, node.ErrFenced
	case state.Batch <= last: // this database has neither this batch nor some earlier batches
		return resultFenced, errors.New(
			"the database has lost batches of this node: it was restored, or failed over to a standby that was behind")
	}
	return resultUnknowable, fmt.Errorf("this node's batch number is %d, beyond %d: another process writes under this node's epoch",
		state.Batch, last+1)
}

// unreachableError marks a failure to reach the database, which proves nothing about the statements.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

// unreachable reports whether err means that the database is unreachable, and not that a statement
// failed.
func unreachable(err error) bool {
	var mark unreachableError
	if errors.As(err, &mark) {
		return true
	}
	return !store.Refused(err)
}

// split halves a failing batch until the failing operation is alone, and refuses that operation.
func (w *worker) split(ops []*Op, err error) {
	if len(ops) > 1 {
		half := len(ops) / 2
		w.commit(ops[:half:half]) // a waiting batch appends operations
		w.commit(ops[half:])
		return
	}
	err = fmt.Errorf("%w: %w", errPoisoned, err)
	w.opts.Log.Error("ledger: an operation cannot be committed", "operation", ops[0].String(), "error", err)
	w.refuse(ops, err)
}

// answer sends the committed decisions to the callers.
func (w *worker) answer(ops []*Op, b *batch) {
	for _, o := range ops {
		d := b.decisions[o]
		o.Err = d.err
		switch o.kind {
		case opAdmit:
			if d.hold != nil {
				o.Hold = &OpenHold{Row: d.hold}
			}
			o.Logged = o.Logged || d.hookRan
		case opEnd, opSweep, opJob:
			w.observe(o, d)
		}
		o.ended = d.hookRan
		if o.kind != opSweep && isDamage(d.err) {
			w.failedEnds.add(o.holdID, failedEnd{d.err, o.hold})
		}
		w.finish(o, d.hold != nil)
	}
	if ended := w.opts.Observer.Ended; ended != nil {
		b.EachEnd(ended)
	}
	if len(b.Lows) > 0 && w.opts.LowAnnounced != nil {
		w.opts.LowAnnounced()
	}
}

func (w *worker) observe(o *Op, d decision) {
	if d.over > 0 && w.opts.Observer.OverHold != nil {
		w.opts.Observer.OverHold(d.over)
	}
	if o.kind == opSweep && d.ended && w.opts.Observer.Swept != nil {
		w.opts.Observer.Swept(d.charged)
	}
}
