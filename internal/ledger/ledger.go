// Package ledger owns money: balances, admission, holds, charges, budgets,
// rate windows, free quotas, usage totals, receipts (the request log) and the
// audit that proves them.
//
// Invariants, through `kill -9` at any instant:
//   - A request is admitted by one durable transaction that decides rate,
//     quota, budgets and balance and writes its hold; no cache decides.
//   - A hold ends exactly once: its row is deleted by the transaction that
//     writes its receipt. At most one charge a request, never above the hold.
//   - Credits - charges = balance, and what accounts and keys show as held is
//     the sum of their open holds.
//
// All of a node's admissions and settlements go through one committer, which
// groups what waits into one transaction after the other. What is decided in it
// is package books', pure; the audit is package audit.
package ledger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/loop"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

var (
	// ErrKeyChanged means that the key has changed since the caller's checks: authenticate afresh,
	// repeat them, and call again.
	ErrKeyChanged = books.ErrKeyChanged
	// ErrNotSettled means that a settlement was not committed and never will be: answer an error;
	// the client is not charged.
	ErrNotSettled = errors.New("the request could not be settled")
	// ErrUnknown means that the database did not report within outage_grace whether the settlement
	// was committed: cut the connection without an answer. The settlement is resolved later,
	// exactly once.
	ErrUnknown = errors.New("it is not known yet whether the request was settled")
)

// Options are the ledger's surroundings and bounds. Only DB and, to start, Node
// are required.
type Options struct {
	DB *store.DB
	// Node is this node. The ledger renews its lease, sweeps after dead nodes, and ends its life in
	// Close.
	Node *node.Node
	// OutageGrace is how long a settlement waits for an absent database.
	OutageGrace time.Duration
	// QueueWait is how long an admission waits to be taken before it is
	// refused under overload.
	QueueWait time.Duration
	// Retention is how long receipts are kept; their sums are kept for ever.
	Retention time.Duration
	// TellLow, if not nil, adds the statements that announce a low balance to the transaction of
	// the charge.
	TellLow func(q *store.Batch, nowMS int64, low Low)
	// ToldLow, if not nil, is called without locks after the commit of such a transaction, and must
	// not block. It is not called if the node dies in between.
	ToldLow func()
	// Now is this process's clock, for durations and start times. Admission times and expiry use
	// the database's clock. If nil, time.Now is used.
	Now      func() time.Time
	Log      *slog.Logger
	Observer Observer
}

// Observer receives events for metrics. Every func may be nil.
type Observer struct {
	// Batch reports a committed transaction and its number of operations.
	Batch func(operations int, took time.Duration)
	// Admitted: an admission was decided, after waiting for its commit.
	Admitted func(waited time.Duration, admitted bool)
	// Ended: a request has ended, in the books or refused. It must not wait.
	Ended func(books.EndedRequest)
	// OverHold: usage exceeded a hold by this much; the operator's loss.
	OverHold func(money.Amount)
	// Swept: a dead node's hold was ended; charged tells how.
	Swept func(charged bool)
	// Unswept reports the number of dead nodes' holds that a sweep could not end.
	Unswept func(holds int)
	// Held reports the open holds of chat requests and of jobs, on all nodes, every 15 seconds.
	Held func(requests, jobs OpenHolds)
	// Quarantined: a damaged hold was moved to the quarantine.
	Quarantined func()
	// LeftOut reports a refused request without a row of its own; known is true if its caller is
	// known.
	LeftOut func(known bool)
}

// Ledger is the money of one node. It is safe for concurrent use.
type Ledger struct {
	db    *store.DB
	node  *node.Node
	opts  Options
	log   *slog.Logger
	now   func() time.Time
	queue *queue

	refuses sampler
	damages damages
	writing writing

	stepsSeen int64 // jumps of the clock, only for KeepTime; -1 before the first look

	// exec stands between the committer and its connection; tests put faults
	// there before Start.
	exec func(ctx context.Context, s *store.Session, b *store.Batch, phase phase) error

	stopped chan struct{} // closed when the committer has ended
	stop    sync.Once
}

// New makes a ledger; Start makes it ready.
func New(opts Options) *Ledger {
	if opts.OutageGrace <= 0 {
		opts.OutageGrace = 30 * time.Second
	}
	if opts.QueueWait <= 0 {
		opts.QueueWait = 250 * time.Millisecond
	}
	if opts.Retention <= 0 {
		opts.Retention = 90 * 24 * time.Hour
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Ledger{
		db: opts.DB, node: opts.Node, opts: opts, log: opts.Log, now: opts.Now,
		queue: newQueue(), stepsSeen: -1, stopped: make(chan struct{}),
	}
}

// Start starts the committer and, on SQLite, ends the open holds of a former process, which
// node.Join has declared dead. Close undoes Start.
func (l *Ledger) Start(ctx context.Context) error {
	if err := l.resumeTime(ctx); err != nil {
		return err
	}
	l.writing.beats(nil, l.now()) // the node has just joined
	go func() {
		defer close(l.stopped)
		newCommitter(l).run()
	}()
	if !l.db.OneProcess() {
		return nil
	}
	if err := l.sweepDead(ctx); err != nil {
		l.log.Error("ledger: what the former process left is not swept yet", "error", err) // Run goes on with it
	}
	return nil
}

// Run keeps the node alive, sweeps after dead nodes, folds old receipts and adds receipts of a
// former version to their days, until ctx ends.
func (l *Ledger) Run(ctx context.Context) {
	every := func(period time.Duration, what string, step func(context.Context) error) loop.Loop {
		return loop.Loop{Room: "ledger", Does: what, Log: l.log, Period: period, Later: true, Step: step}
	}
	loop.Run(ctx,
		every(l.node.Lease()/4, "renew the node's lease", l.Beat),
		every(l.node.Lease()/4, "sweep after dead nodes", l.Sweep),
		every(keepTimeEvery, "keep the time", l.KeepTime),
		every(time.Second, "log sampled refusals", l.flushRefusals),
		every(10*time.Minute, "fold old receipts", l.Fold),
		loop.Loop{Room: "ledger", Does: "add up the open holds", Log: l.log, Period: heldPeriod, Step: l.observeHeld},
		loop.Loop{Room: "ledger", Does: "add receipts to their days", Log: l.log, Period: time.Minute, Step: l.Date},
		loop.Loop{Room: "ledger", Does: "note the parts of the request log", Log: l.log, Period: 10 * time.Minute, Step: l.Part},
	)
}

// Close refuses further admissions, commits the queue, and ends the node's life once nothing runs
// under it. Requests still running afterwards are settled by the sweep of another node or of the
// next start.
func (l *Ledger) Close(ctx context.Context) error {
	l.stop.Do(func() {
		l.logCounted(l.now().Add(time.Hour)) // logs the refusals without a row
		l.queue.close()
	})
	select {
	case <-l.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.node.Leave(ctx, l.holdsUnder)
}

// unavailable returns the error of an admission while the database does not answer.
func unavailable(cause error) *fault.Error {
	return fault.TryAgain(nameFullDisk(cause))
}
