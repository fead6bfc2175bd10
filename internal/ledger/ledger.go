// Package ledger owns money: balances, admission, holds, charges, budgets, rate windows, free
// quotas, usage totals, receipts (the request log) and the audit that proves them.
//
// Invariants, even after `kill -9` at any time:
//   - One durable transaction admits a request: it decides rate, quota, budgets and balance and
//     writes the hold. No cache decides.
//   - A hold ends exactly once: the transaction that writes the receipt deletes the hold's row. A
//     request has at most one charge, never above its hold.
//   - Credits - charges = balance. What an account or a key holds is the sum of its open holds, which
//     is stored nowhere else.
//
// All admissions and settlements of a node go through one committer, which commits them in batches.
// The decisions are pure functions in package books. Package audit proves the result.
package ledger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/loop"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

var (
	// ErrKeyChanged means that the key has changed since the caller's checks. Authenticate again,
	// repeat the checks, and call again.
	ErrKeyChanged = books.ErrKeyChanged
	// ErrNotSettled means that a settlement was not committed and never will be. The client must
	// get an error and is not charged.
	ErrNotSettled = errors.New("the request could not be settled")
	// ErrUnknown means that the database did not report within OutageGrace whether the settlement
	// was committed. Cut the connection without an answer; the settlement is resolved later,
	// exactly once.
	ErrUnknown = errors.New("it is not known yet whether the request was settled")
)

// Options configures the ledger. Only DB and, for Start, Node are required.
type Options struct {
	DB *store.DB
	// Node is this node. The ledger renews the node's lease, ends the requests of dead nodes, and
	// unregisters the node in Close.
	Node *node.Node
	// OutageGrace is how long a settlement waits for an unreachable database. The default is 30
	// seconds.
	OutageGrace time.Duration
	// QueueWait is how long an admission waits in the queue before it is refused. The default is
	// 2 seconds. It must be longer than LockTimeout.
	QueueWait time.Duration
	// LockTimeout is how long a batch waits for an account's row, or another row, that another
	// transaction has locked. The default is 1 second: six nodes with commits of 100 ms take turns on
	// one account within it. SQLite does not use it.
	LockTimeout time.Duration
	// Retention is how long receipts are kept. Their sums are kept for ever. The default is 90
	// days.
	Retention time.Duration
	// AnnounceLow, if not nil, adds the statements that announce a low balance to the transaction of
	// the charge.
	AnnounceLow func(q *store.Batch, nowMS int64, low Low)
	// LowAnnounced, if not nil, is called without locks after the commit of a transaction with the
	// statements of AnnounceLow, unless the node dies in between. It must not block.
	LowAnnounced func()
	// Now is this process's clock, for durations and start times. Admission times and expiry use
	// the database's clock. If nil, time.Now is used.
	Now      func() time.Time
	Log      *slog.Logger
	Observer Observer
}

// Observer receives events for metrics. Every func may be nil. None may block.
type Observer struct {
	// Batch reports a committed transaction and its number of operations.
	Batch func(operations int, took time.Duration)
	// Admitted reports a decided admission and the time until its commit.
	Admitted func(waited time.Duration, admitted bool)
	// Ended reports the end of a request, also of a refused request.
	Ended func(books.EndedRequest)
	// OverHold reports the amount by which usage exceeded a hold. It is not charged.
	OverHold func(money.Amount)
	// Swept reports that the hold of a dead node was ended, and whether it was charged.
	Swept func(charged bool)
	// Unswept reports the number of dead nodes' holds that the sweep could not end.
	Unswept func(holds int)
	// Held reports the open holds of chat requests and of jobs, on all nodes, every 15 seconds.
	Held func(requests, jobs OpenHolds)
	// Quarantined reports that a damaged hold was moved to the quarantine.
	Quarantined func()
	// Unlogged reports a refused request without a row of its own. known reports whether the caller
	// is known.
	Unlogged func(known bool)
}

// Ledger keeps the money of one node. It is safe for concurrent use.
type Ledger struct {
	db    *store.DB
	node  *node.Node
	opts  Options
	log   *slog.Logger
	now   func() time.Time
	queue *queue

	refusals   sampler
	failedEnds failedEnds
	writes     writeState

	foldRows  int   // receipts in a transaction of Fold
	stepsSeen int64 // jumps of the clock handled by KeepTime; -1 before its first call

	// exec, if not nil, replaces the committer's call of the database; tests set it before Start.
	exec func(ctx context.Context, s *store.Session, b *store.Batch, phase phase) error

	stopped chan struct{} // closed when the committer has ended
	stop    sync.Once
}

// New returns a ledger. Call Start before other methods.
func New(opts Options) *Ledger {
	if opts.OutageGrace <= 0 {
		opts.OutageGrace = 30 * time.Second
	}
	if opts.QueueWait <= 0 {
		opts.QueueWait = 2 * time.Second
	}
	if opts.LockTimeout <= 0 {
		opts.LockTimeout = time.Second
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
		queue: newQueue(), foldRows: foldRows, stepsSeen: -1, stopped: make(chan struct{}),
	}
}

// Start starts the committer. On SQLite it also ends the open holds of the last process, which
// node.Join has declared dead. Close undoes Start.
func (l *Ledger) Start(ctx context.Context) error {
	if err := l.resumeTime(ctx); err != nil {
		return err
	}
	l.writes.recordBeat(nil, l.now()) // the node has just joined
	go func() {
		defer close(l.stopped)
		newCommitter(l).run()
	}()
	if err := requestlog.Extend(ctx, l.db, l.opts.Retention); err != nil {
		l.log.Error("ledger: no partition of the request log; trying again later", "error", err)
	}
	if !l.db.OneProcess() {
		return nil
	}
	if err := l.sweepDead(ctx); err != nil {
		l.log.Error("ledger: the open holds of the last process could not be ended; retrying", "error", err)
	}
	return nil
}

// Run runs the ledger's periodic steps until ctx ends.
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
	)
}

// Close refuses further admissions, commits the queue, and unregisters the node unless requests
// still run under its epoch. The next start or another node's sweep ends such requests.
func (l *Ledger) Close(ctx context.Context) error {
	l.stop.Do(func() {
		l.logCounted(l.now().Add(time.Hour))
		l.queue.close()
	})
	select {
	case <-l.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.node.Leave(ctx, l.holdsUnder)
}

// unavailable returns the error of an admission while the database is unreachable.
func unavailable(cause error) *fault.Error {
	return fault.TryAgain(nameFullDisk(cause))
}
