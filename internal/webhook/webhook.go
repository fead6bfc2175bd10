// Package webhook owns the receivers of events, the events and their signature, and the deliveries
// with schedule and log.
//
// Invariants. An event is written in the transaction of its cause, with its final bytes and
// address, so no event is lost or reports a change that did not happen. A delivery is
// attempted at least once. Its id and body never change. Each attempt has its own timestamp, and a
// signature with the account's present secret. An attempt runs under a lease that names the node's
// epoch and expires, so other nodes take over the work of a dead node. Over all nodes at most four
// attempts run at a time for one account at one scheme, host and port, and failing receivers cannot
// use up the slots of healthy receivers. An exchange has one overall deadline, goes only to public
// addresses (package egress), follows no redirect, and reads little of the answer.
//
// Transactions that claim or record exclude each other over all nodes. Transactions that write
// events only insert and do not wait.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/egress"
	"tollgate/internal/limit"
	"tollgate/internal/loop"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// Options configure the deliveries. All are required unless said otherwise.
type Options struct {
	DB    *store.DB
	Guard *egress.Guard
	// Timeout bounds an exchange with a receiver, from the name lookup to the end of the answer.
	// Zero means 10 s.
	Timeout time.Duration
	// Retries are the waits between attempts. The delivery fails after the last attempt. If empty,
	// there is one attempt.
	Retries []time.Duration
	// Retention is the time for which log entries are kept. Zero means 30 days.
	Retention time.Duration
	// Node is this node; only Run needs it. Leases of dead epochs are taken over.
	Node *node.Node
	// Log gets the errors that need the operator. Nil discards them.
	Log *slog.Logger
	// Now is the clock of timestamps and waits. Nil means time.Now. The database's clock decides
	// when a delivery is due.
	Now func() time.Time
	// Registry gets the metrics, if not nil.
	Registry prometheus.Registerer
}

// Webhooks delivers events. Run delivers in its own goroutines; Test and Resend deliver in the goroutine
// of the caller. Webhooks is safe for concurrent use.
type Webhooks struct {
	opts    Options
	client  *http.Client
	metrics metrics
	wake    chan struct{} // starts a round

	manual          *limit.Semaphores[struct{}] // tests and resends
	manualByAccount *limit.Semaphores[string]

	workers sync.WaitGroup // of attempts
	roundMu sync.Mutex     // held during a round

	mu       sync.Mutex
	inFlight map[string]*attempt // unrecorded attempts, by lease
	finished []*attempt          // attempts with a result

	leasesCheckedAt time.Time // last check of all leases; only runRound uses it
	// lastReceived is the last delivery added to its receiver's row. Rounds look for new deliveries only
	// after lastReceived, so that they do not read PostgreSQL's dead index entries of earlier deliveries
	// again and again. Once each checkEvery a round looks for all new deliveries, because a transaction
	// with a late commit may add an earlier id. Only runRound uses lastReceived.
	lastReceived string
}

// Defaults and bounds.
const (
	defaultTimeout   = 10 * time.Second
	defaultRetention = 30 * 24 * time.Hour
	maxManual        = 128 // tests and resends at a time, on this node
	maxManualEach    = 4   // tests and resends at a time for one account
)

// New returns Webhooks; call Run to deliver.
func New(o Options) *Webhooks {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Webhooks{opts: o, client: o.Guard.Client(o.Timeout), metrics: newMetrics(o.Registry),
		wake: make(chan struct{}, 1), manual: limit.NewSemaphores[struct{}](maxManual),
		manualByAccount: limit.NewSemaphores[string](maxManualEach), inFlight: map[string]*attempt{}}
	return w
}

// Wake makes Run look for due deliveries now. Callers must call Wake after the commit of new events. Without Wake,
// new events wait for up to a second.
func (w *Webhooks) Wake() {
	select {
	case w.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// Periods and timeouts of Run.
const (
	pollEvery  = time.Second           // the interval of checks for work from other nodes
	pace       = 10 * time.Millisecond // the minimum time between rounds, so that each round does more
	sweepEvery = 10 * time.Minute
	stopGrace  = 3 * time.Second // for running attempts when Run ends
)

// Run delivers due events, records the results and deletes log entries past the retention, until
// ctx ends. Then running attempts get stopGrace to end. The remaining attempts are aborted, and their
// deliveries stay due. All goroutines of Run have ended when it returns.
func (w *Webhooks) Run(ctx context.Context) {
	attemptCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wait time.Duration
	step := func(ctx context.Context) (err error) {
		wait, err = w.runRound(ctx, attemptCtx)
		return err
	}
	loop.Run(ctx,
		loop.Loop{Room: "webhook", Does: "read or write deliveries", Log: w.opts.Log, Step: step,
			Period: pollEvery, Next: func() time.Duration { return wait }, Wake: w.wake, Pause: pace},
		loop.Loop{Room: "webhook", Does: "delete old deliveries", Log: w.opts.Log, Period: sweepEvery, Step: w.Forget},
		loop.Loop{Room: "webhook", Does: "count deliveries", Log: w.opts.Log, Period: measureEvery, Step: w.Measure},
	)
	w.finish(stop)
}

// finish waits for running attempts, aborts them after stopGrace, and records their results.
func (w *Webhooks) finish(stop context.CancelFunc) {
	abort := time.AfterFunc(stopGrace, stop)
	w.workers.Wait()
	abort.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if _, err := w.runRound(ctx, nil); err != nil {
		w.opts.Log.Warn("webhook: the last attempts are not recorded and will be repeated", "error", err)
	}
}
