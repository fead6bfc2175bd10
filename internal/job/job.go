// Package job owns image and video jobs: submission, queue, workers, results and bodies.
//
// Invariants, across `kill -9` at any moment:
//   - One transaction begins a job and its hold. One other transaction ends it: final state, charge
//     or refund, receipt, event, and the publication of its files. So a job ends once, is charged
//     at most once, and never above its hold.
//   - Each step is committed before the next step begins. After a take-over the new owner continues
//     with the provider's ticket. A submission with a lost answer is repeated at most once.
//   - The owner of a job has its fence: each take-over raises the fence, and each write to a
//     running job's row requires the current fence. The only exception is the provider's ticket,
//     which any node may record.
//   - A started job stays "processing" for its user.
//   - If our own media store does not accept a result, the result is kept and stored later, without
//     another submission. While the store is down, no job starts.
//   - A job occupies one slot of its line from the decision to submit until the end of the attempt,
//     regardless of the node that runs the job.
//
// Package row reads and writes the rows, gallery shows an account its jobs, and proof audits them.
package job

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/catalog"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
	"tollgate/internal/line"
	"tollgate/internal/loop"
	"tollgate/internal/media"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/trace"
	"tollgate/internal/webhook"
)

// Options configure a node's jobs. All are required unless said otherwise.
type Options struct {
	DB       *store.DB
	Ledger   *ledger.Ledger
	Node     *node.Node
	Lines    *line.Lines
	Catalog  *catalog.Watcher
	Media    *media.Store
	Webhooks *webhook.Webhooks
	Log      *slog.Logger
	// StartLimit is the time after which a queued job fails. Zero means 15 minutes.
	StartLimit time.Duration
	// MediaRetry is how long results are kept and retried if the media store fails. Then the job
	// fails. Zero means 1 hour.
	MediaRetry time.Duration
	// Retention is how long the record of an ended job is kept. Zero means 72 hours.
	Retention time.Duration
	// Trace records a span for each attempt, if not nil.
	Trace *trace.Tracer
	// Registry gets the metrics tollgate_job_*, if not nil.
	Registry prometheus.Registerer
	// Now is the clock for waits. If nil, it is time.Now. Decisions use the database's clock.
	Now func() time.Time
}

// Limits of one node. Jobs above them wait in the queue or at their provider.
const (
	maxWorkers = 8192
	maxSending = 256 // submissions in flight
	maxPolls   = 128
	maxFetches = 32 // results in download or upload to the media store
	maxReads   = 16 // provider answers with inline results
)

// Jobs runs the jobs of one node. It is safe for concurrent use.
type Jobs struct {
	opts    Options
	metrics *metrics
	queues  *queueCache

	polls, fetches, reads chan struct{}

	clockSteps int64                                    // clock jumps handled by Housekeep; -1 before the first run
	writer     *store.Batcher[func(tx *store.Tx) error] // the steps of the workers
	onceLocks  *limit.Semaphores[string]                // one submission at a time, by account and Idempotency-Key

	waits   *waits   // clients that wait for the end of a job
	fetched *fetched // jobs to mark as fetched

	wake     chan struct{} // a job may be ready to start
	loggedAt atomic.Int64  // time of the last log line about an unavailable database, in ns
	// The constants stopWait, pollFirst and fetchFirst, or shorter times in tests.
	stopWait, pollPause, fetchPause time.Duration
	maxSpool                        int // tests set a lower value

	mu      sync.Mutex
	workers map[string]*worker // by job
	sending int                // workers with a submission in flight
	// reserved is the capacity set aside for transactions that assign jobs to this node. starved is
	// true if the reserved capacity has kept a model from starting jobs.
	reserved int
	starved  bool
	claimed  []string  // half-open lines claimed by models that start jobs now
	life     *lifetime // nil if no worker may begin
	running  sync.WaitGroup
}

// New returns the jobs of a node. Call Run to process them.
func New(o Options) *Jobs {
	if o.StartLimit <= 0 {
		o.StartLimit = 15 * time.Minute
	}
	if o.MediaRetry <= 0 {
		o.MediaRetry = time.Hour
	}
	if o.Retention <= 0 {
		o.Retention = 72 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	j := &Jobs{
		opts: o, metrics: newMetrics(o.Registry),
		polls: make(chan struct{}, maxPolls), fetches: make(chan struct{}, maxFetches), reads: make(chan struct{}, maxReads),
		maxSpool: maxSpool,
		wake:     make(chan struct{}, 1), workers: map[string]*worker{}, stopWait: stopWait, pollPause: pollFirst, fetchPause: fetchFirst,
		clockSteps: -1, writer: store.NewBatcher(o.DB, runSteps), onceLocks: limit.NewSemaphores[string](1),
		waits: newWaits(), fetched: &fetched{jobs: map[string]struct{}{}},
	}
	j.queues = newQueueCache(j)
	return j
}

// runSteps runs steps of several workers in one transaction.
func runSteps(tx *store.Tx, steps []func(tx *store.Tx) error) error {
	for _, step := range steps {
		if err := step(tx); err != nil {
			return err
		}
	}
	return nil
}

// NewID returns the id for a new submission.
func NewID() string { return id.New(row.IDPrefix) }

// Periods and timeouts of Run.
const (
	tick           = time.Second // the interval of checks for work from other nodes
	housekeepEvery = 5 * time.Second
	stopWait       = 8 * time.Second // for submissions in flight when the node stops
	cancelWait     = 10 * time.Second
	writeWait      = 10 * time.Second // for the write of a step, before it is retried
	retryPause     = time.Second
	reportPause    = time.Minute // between log lines about an unavailable database
)

// Run starts queued jobs, processes this node's jobs, takes over jobs of dead nodes and deletes
// expired records, until ctx ends. Then submissions in flight get stopWait to finish. All other
// work stops at once, and another node or the next start takes over the jobs.
func (j *Jobs) Run(ctx context.Context) {
	life := newLifetime(context.Background(), context.Background())
	defer life.end()
	j.mu.Lock()
	j.life = life
	j.mu.Unlock()

	loop.Run(ctx,
		loop.Loop{Room: "job", Does: "start jobs", Log: j.opts.Log, Period: tick, Wake: j.wake, Step: j.Start},
		loop.Loop{Room: "job", Does: "take over jobs", Log: j.opts.Log, Period: tick, Step: j.TakeOver},
		loop.Loop{Room: "job", Does: "look after old jobs", Log: j.opts.Log, Period: housekeepEvery, Step: j.Housekeep},
		loop.Loop{Room: "job", Does: "look for the ends of awaited jobs", Log: j.opts.Log, Period: tick, Step: j.NotifyWaits},
		loop.Loop{Room: "job", Does: "mark fetched results", Log: j.opts.Log, Period: tick, Step: j.WriteFetched},
		loop.Loop{Room: "job", Does: "measure the queues", Log: j.opts.Log, Period: measureEvery, Step: j.Measure},
	)

	j.mu.Lock()
	j.life = nil // no worker begins from here on
	j.mu.Unlock()
	life.stop()
	timer := time.AfterFunc(j.stopWait, life.end)
	defer timer.Stop()
	j.running.Wait()
}

// logOutage logs a database error that delays jobs, at most once in reportPause for all jobs.
func (j *Jobs) logOutage(what, job string, err error) {
	now := j.opts.Now().UnixNano()
	last := j.loggedAt.Load()
	if now-last < int64(reportPause) || !j.loggedAt.CompareAndSwap(last, now) {
		j.opts.Log.Debug("job: "+what, "job", job, "error", err)
		return
	}
	j.opts.Log.Error("job: "+what+"; other jobs may be delayed too; retrying", "job", job, "error", err)
}

// wakeUp makes Run look at the queue now.
func (j *Jobs) wakeUp() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Retention returns how long the record of an ended job is kept.
func (j *Jobs) Retention() time.Duration { return j.opts.Retention }
