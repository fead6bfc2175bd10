// Package job owns image and video jobs: their submission, the queue, who looks
// after each, every step from a line to a stored result, and the body that
// their users see.
//
// Invariants, through `kill -9` at any instant:
//   - A job and its hold begin in one transaction; its final state, charge or
//     refund, receipt, event and the publication of its files are one other.
//     So it ends once, is charged at most once and never more than its hold.
//   - Each step is durable before the next begins. Who takes a job over goes on
//     with the ticket that the provider gave; a submission whose answer was lost
//     is repeated at most once.
//   - Who looks after a job holds its fence: what changes a running job's row
//     names the fence, and each take-over raises it. Only a ticket is taken
//     from whoever brings it, since it is a fact.
//   - From its start a job is processing for its user, and never queued again.
//   - A result that our own media store does not take is kept and stored later: no
//     other line is asked for it. While the store is down no job starts.
//   - A job keeps its slot of a line from the decision to submit until its
//     attempt has ended, whichever node looks after it.
//
// The rows of a job, the record and the run, are read and written by row; what an
// account sees of its jobs is in gallery, what the audit asks of them in proof.
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

// Options are a node's surroundings. All are required unless said otherwise.
type Options struct {
	DB       *store.DB
	Ledger   *ledger.Ledger
	Node     *node.Node
	Lines    *line.Lines
	Catalog  *catalog.Watcher
	Media    *media.Store
	Webhooks *webhook.Webhooks
	Log      *slog.Logger
	// StartLimit is how long a job waits for its start before it fails; 0: 15
	// minutes.
	StartLimit time.Duration
	// MediaRetry is how long results that the media store does not take are kept and
	// tried again before their job fails; 0 means 1 hour.
	MediaRetry time.Duration
	// Retention is how long the record of a job that has ended is kept; 0: 72
	// hours.
	Retention time.Duration
	// Trace makes a span of each attempt; nil: none.
	Trace *trace.Tracer
	// Registry gets the metrics tollgate_job_*; nil shows them nowhere.
	Registry prometheus.Registerer
	// Now is the clock of waits; nil: time.Now. What is decided goes by the
	// database's time.
	Now func() time.Time
}

// Bounds of what one node does at a time. Jobs beyond them wait in the queue,
// or with their provider.
const (
	maxWorkers = 8192 // jobs looked after
	maxSending = 256  // submissions under way, also those that answer when the work is done
	maxPolls   = 128
	maxFetches = 32 // results being downloaded and stored
	maxReads   = 16 // answers with whole results in them being read
)

// Jobs is the jobs of one node. It is safe for concurrent use.
type Jobs struct {
	opts    Options
	metrics *metrics
	queues  *queueCache

	polls, fetches, reads chan struct{}

	stepsSeen int64                     // jumps of the clock; used by Housekeep alone. -1: whatever was before the start
	writer    *batcher                  // of the workers' steps
	twins     *limit.Semaphores[string] // of 1, by account and Idempotency-Key

	wake     chan struct{} // something may be ready to start
	reported atomic.Int64  // when an absence of the database was logged last, in ns
	// lastCalls, pollFirst and fetchFirst; tests shorten them.
	linger, pollPause, fetchPause time.Duration
	maxSpool                      int // parts; tests lower it

	mu      sync.Mutex
	workers map[string]*worker // looked after by this node, by job
	sending int                // workers that submit
	// promised is the room of transactions that give this node jobs; awaited says
	// that a model was turned away because of them.
	promised int
	awaited  bool
	claimed  []string  // half-open lines of models that have their stint
	life     *lifetime // of the workers; nil: none may begin
	running  sync.WaitGroup
}

// New makes the jobs of a node; Run lets them run.
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
		wake:     make(chan struct{}, 1), workers: map[string]*worker{}, linger: lastCalls, pollPause: pollFirst, fetchPause: fetchFirst,
		stepsSeen: -1, writer: &batcher{db: o.DB}, twins: limit.NewSemaphores[string](1),
	}
	j.queues = newQueueCache(j)
	return j
}

// NewID makes the id of a job to be submitted.
func NewID() string { return id.New(row.IDPrefix) }

// The rhythms of Run.
const (
	tick        = time.Second     // looks for work that other nodes have left
	housekeep   = 5 * time.Second // looks at what has waited or been kept too long
	lastCalls   = 8 * time.Second // for submissions under way when the node stops
	courtesy    = 10 * time.Second
	writeWait   = 10 * time.Second // for a step to be written, before it is tried again
	writeAgain  = time.Second
	reportPause = time.Minute // between two log lines about a database that is away
)

// Run starts queued jobs, looks after those that this node has, takes over
// those of dead nodes and removes what is too old, until ctx ends. Then
// submissions under way may end for a moment; everything else stops at once and
// is taken over by other nodes, or by the next start.
func (j *Jobs) Run(ctx context.Context) {
	life := newLifetime(context.Background(), context.Background())
	defer life.end()
	j.mu.Lock()
	j.life = life
	j.mu.Unlock()

	loop.Run(ctx,
		loop.Loop{Room: "job", Does: "start jobs", Log: j.opts.Log, Period: tick, Wake: j.wake, Step: j.Start},
		loop.Loop{Room: "job", Does: "take over jobs", Log: j.opts.Log, Period: tick, Step: j.TakeOver},
		loop.Loop{Room: "job", Does: "look after old jobs", Log: j.opts.Log, Period: housekeep, Step: j.Housekeep},
		loop.Loop{Room: "job", Does: "measure the queues", Log: j.opts.Log, Period: measureEvery, Step: j.Measure},
	)

	j.mu.Lock()
	j.life = nil // no worker begins from here on
	j.mu.Unlock()
	life.stop()
	timer := time.AfterFunc(j.linger, life.end)
	defer timer.Stop()
	j.running.Wait()
}

// logAway logs an error of the database that delays jobs, at most once in reportPause for
// all of them.
func (j *Jobs) logAway(what, job string, err error) {
	now := j.opts.Now().UnixNano()
	last := j.reported.Load()
	if now-last < int64(reportPause) || !j.reported.CompareAndSwap(last, now) {
		j.opts.Log.Debug("job: "+what, "job", job, "error", err)
		return
	}
	j.opts.Log.Error("job: "+what+", as may be those of other jobs; trying again", "job", job, "error", err)
}

// rouse lets the queue be looked at now.
func (j *Jobs) rouse() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// KeptFor is how long the record of a job that has ended is kept.
func (j *Jobs) KeptFor() time.Duration { return j.opts.Retention }
