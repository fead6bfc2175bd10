// Package commit owns the operations of a node: their queue, the batches that commit them, and the
// recovery of the node and of dead nodes.
//
// Invariants: each operation is committed at most once, whatever the database and the node do, and
// gets an answer that agrees with the outcome. A dead node's open holds are ended by another node, or
// by the next process.
package commit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

var (
	// ErrNotSettled means that a settlement was not committed and never will be.
	ErrNotSettled = errors.New("the request could not be settled")
	// ErrUnknown means that it is not known yet whether an operation was committed. The operation is
	// resolved later, exactly once.
	ErrUnknown = errors.New("it is not known yet whether the request was settled")
)

// Options configures a committer. AnnounceLow, LowAnnounced, Exec and the funcs of Observer may be
// nil.
type Options struct {
	DB           *store.DB
	Node         *node.Node
	LockTimeout  time.Duration // how long a batch waits for a row with another transaction's lock
	AnnounceLow  func(q *store.Batch, nowMS int64, low books.Low)
	LowAnnounced func()
	Now          func() time.Time
	Log          *slog.Logger
	Observer     Observer
	// Workers is the maximum number of concurrent batches. The default is half of the database's writing
	// connections, and at most 4. On SQLite it is always 1.
	Workers int
	// Interval is the minimum time between the starts of two concurrent batches. The default is 10
	// milliseconds. It must be longer than a batch takes without a distant standby: there, one large
	// batch after the other is faster than concurrent ones.
	Interval time.Duration
	// Exec replaces Session.Run, so that tests can break a phase of a batch.
	Exec func(ctx context.Context, s *store.Session, b *store.Batch, phase Phase) error
}

// Observer receives events for metrics. Every func may be nil. None may block.
type Observer struct {
	// Batch reports a committed transaction and its number of operations.
	Batch func(operations int, took time.Duration)
	// Admitted reports a decided admission and the time until its commit.
	Admitted func(waited time.Duration, admitted bool)
	// Ended reports the end of a request, also of a refused request.
	Ended func(books.EndedRequest)
	// OverHold reports the amount by which usage exceeded a hold. This amount is not charged.
	OverHold func(money.Amount)
	// Swept reports that the hold of a dead node was ended, and whether it was charged.
	Swept func(charged bool)
	// Unswept reports the number of dead nodes' holds that the sweep could not end.
	Unswept func(holds int)
	// Held reports the open holds of chat requests and of jobs, on all nodes, every 15 seconds.
	Held func(requests, jobs books.OpenHolds)
	// Quarantined reports that a damaged hold was moved to the quarantine.
	Quarantined func()
	// Unlogged reports a refused request without a row of its own. known reports whether the caller
	// is known.
	Unlogged func(known bool)
}

// Committer commits the queue in batches. A batch holds the operations queued during the last commit.
// On PostgreSQL, where a commit may wait long for a standby, further workers begin batches meanwhile;
// an account is in one batch at a time.
//
// A batch begins by raising its worker's batch number from n-1 to n, the fence. If the answer to a
// COMMIT is lost, the worker tries the same batch again on a new connection: the statement waits for
// the old transaction, and changes nothing if the old transaction was committed. If this node was
// declared dead meanwhile, the batch number in its row still shows the outcome (ADR 3).
type Committer struct {
	opts       Options
	queue      *queue
	refusals   sampler
	failedEnds failedEnds
	writes     writeState

	stopped chan struct{} // closed when all workers have ended
	stop    sync.Once

	rejoining sync.Mutex
	newest    atomic.Pointer[lastBatch]
}

// New returns a committer. Operations wait in its queue until Start.
func New(opts Options) *Committer {
	if opts.Exec == nil {
		opts.Exec = func(ctx context.Context, s *store.Session, b *store.Batch, _ Phase) error { return s.Run(ctx, b) }
	}
	if opts.Interval <= 0 {
		opts.Interval = 10 * time.Millisecond
	}
	return &Committer{opts: opts, queue: newQueue(opts.Interval, opts.Now), stopped: make(chan struct{})}
}

// Start starts the workers. The caller must call Close.
func (c *Committer) Start() {
	c.writes.recordBeat(nil, c.opts.Now()) // the node has just joined
	workers := c.opts.Workers
	if writers := c.opts.DB.Writers(); workers <= 0 || writers == 1 {
		workers = max(1, min(4, writers/2))
	}
	var running sync.WaitGroup
	for n := range workers {
		w := &worker{Committer: c, number: n}
		w.begin()
		running.Go(w.run)
	}
	go func() {
		running.Wait()
		close(c.stopped)
	}()
}

// Close refuses further admissions, commits the queue, and unregisters the node unless requests
// still run under its epoch. The next start or another node's sweep ends such requests.
func (c *Committer) Close(ctx context.Context) error {
	c.stop.Do(func() {
		c.LogSampled(c.opts.Now().Add(time.Hour))
		c.queue.close()
	})
	select {
	case <-c.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.opts.Node.Leave(ctx, c.holdsUnder)
}
