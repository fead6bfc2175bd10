// Package ledger owns money: balances, admission, holds, charges, budgets, rate windows, free
// quotas, usage totals, receipts (the request log) and the audit that proves them.
//
// Invariants, even after `kill -9` at any time:
//   - One durable transaction admits a request: it decides rate, quota, budgets and balance and
//     writes the hold. No cache decides.
//   - A hold ends exactly once: the transaction that writes the receipt deletes the hold's row. A
//     request has at most one charge, never above its hold.
//   - Credits - charges = balance. The held amount of an account or a key is the sum of its open holds
//     and is stored nowhere else.
//
// All admissions and settlements of a node go through one committer, which commits them in batches.
// The decisions are pure functions in package books. Package audit proves the result.
package ledger

import (
	"context"
	"log/slog"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/commit"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/loop"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

var (
	// ErrKeyChanged means that the key has changed since the caller's checks. Authenticate again,
	// repeat the checks, and call again.
	ErrKeyChanged = books.ErrKeyChanged
	// ErrNotSettled means that a settlement was not committed and never will be. The client must
	// get an error and is not charged.
	ErrNotSettled = commit.ErrNotSettled
	// ErrUnknown means that the database did not report within OutageGrace whether the settlement
	// was committed. Cut the connection without an answer; the settlement is resolved later,
	// exactly once.
	ErrUnknown = commit.ErrUnknown
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
	// Help tells customers where to add credit, in the error message about a low balance.
	Help string
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

	// For tests: Workers, Interval and Exec of commit.Options.
	workers  int
	interval time.Duration
	exec     func(ctx context.Context, s *store.Session, b *store.Batch, phase commit.Phase) error
}

// Observer receives events for metrics.
type Observer = commit.Observer

// Ledger admits and settles the requests of one node. It is safe for concurrent use.
type Ledger struct {
	db        *store.DB
	node      *node.Node
	opts      Options
	log       *slog.Logger
	now       func() time.Time
	committer *commit.Committer

	foldRows  int   // receipts in a transaction of Fold
	stepsSeen int64 // jumps of the clock handled by keepTime; -1 before its first call
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
		foldRows: foldRows, stepsSeen: -1,
		committer: commit.New(commit.Options{
			DB: opts.DB, Node: opts.Node, LockTimeout: opts.LockTimeout, AnnounceLow: opts.AnnounceLow, LowAnnounced: opts.LowAnnounced,
			Now: opts.Now, Log: opts.Log, Observer: opts.Observer, Exec: opts.exec, Workers: opts.workers, Interval: opts.interval,
		}),
	}
}

// Start starts the committer. On SQLite it also ends the open holds of the previous process, which
// node.Join has declared dead. The caller must call Close.
func (l *Ledger) Start(ctx context.Context) error {
	if err := l.resumeTime(ctx); err != nil {
		return err
	}
	l.committer.Start()
	if err := requestlog.Extend(ctx, l.db, l.opts.Retention); err != nil {
		l.log.Error("ledger: no partition of the request log; trying again later", "error", err)
	}
	if !l.db.OneProcess() {
		return nil
	}
	if err := l.committer.Sweep(ctx); err != nil {
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
		every(keepTimeEvery, "keep the time", l.keepTime),
		every(time.Second, "log sampled refusals", l.logSampled),
		every(10*time.Minute, "fold old receipts", l.Fold),
		loop.Loop{Room: "ledger", Does: "add up the open holds", Log: l.log, Period: heldPeriod, Step: l.observeHeld},
	)
}

// logSampled logs the counted refusals.
func (l *Ledger) logSampled(context.Context) error {
	l.committer.LogSampled(l.now())
	return nil
}

// Close refuses further admissions, commits the queue, and unregisters the node unless requests
// still run under its epoch. The next start or another node's sweep ends such requests.
func (l *Ledger) Close(ctx context.Context) error { return l.committer.Close(ctx) }

// Beat renews this node's lease. If the node was declared dead, Beat lets the next batch start a
// new epoch.
func (l *Ledger) Beat(ctx context.Context) error { return l.committer.Beat(ctx) }

// Confirm returns nil once everything that this node could read before the call is durable:
// committed, and on a synchronous standby if there is one. Without Confirm, a row that was read may
// still be lost (node.ConfirmState). So answers about money or about a key must wait for Confirm if
// they come from a read without a commit.
func (l *Ledger) Confirm(ctx context.Context) error {
	if l.db.ReadsAreDurable() {
		return nil
	}
	return l.committer.Confirm(ctx)
}

// Sweep declares nodes dead that have not renewed their lease in time, and ends the open holds of
// dead nodes: it charges the progress of streams and releases every other hold. It is one step of
// Run. Several nodes may sweep at once; each hold ends once.
func (l *Ledger) Sweep(ctx context.Context) error {
	if err := l.node.DeclareDead(ctx); err != nil {
		return err
	}
	return l.committer.Sweep(ctx)
}

// Writable returns the reason why the database takes no writes of this node: a batch is being tried
// again, the last heartbeat failed, or nothing was committed for a lease. It returns nil if the
// database takes writes. It sends no query.
func (l *Ledger) Writable() error { return l.committer.Writable() }

// Refusal is a model call refused before or at admission. A refusal counts against no limit; its
// only trace is a row of the request log.
type Refusal = commit.Refusal

// Refused logs a refusal. It does not wait: the next batch writes the row.
func (l *Ledger) Refused(r Refusal) { l.committer.LogRefusal(r, l.now()) }
