// Package webhook owns the receivers of events, the events, their signature,
// their deliveries with schedule and log.
//
// Invariants. An event is written by the transaction of what it tells, with the
// bytes and the address that it will keep: none is lost and none tells of what
// did not happen. A delivery is attempted at least once; its id and body never
// change, its timestamp and signature are of the attempt, with the secret of
// that moment. An attempt runs under a lease that names the node's epoch and
// ends by itself, so what a dead node left is taken over. Over all nodes at
// most four attempts run at a time for one account at one scheme, host and
// port, and receivers that fail cannot use up the places of those that do not.
// An exchange has one deadline for all of it, goes to public addresses alone
// (package egress), follows no redirect, and little of its answer is read.
//
// Who changes the queue takes its turn: transactions that claim or record
// exclude each other over all nodes, while those that write events only insert
// and wait for nobody.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/egress"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// Options are what deliveries work with. All are required unless said
// otherwise.
type Options struct {
	DB    *store.DB
	Guard *egress.Guard
	// Timeout bounds an exchange with a receiver, from the look-up of its name
	// to the end of its answer; 0: 10 s.
	Timeout time.Duration
	// Retries are the waits between attempts; after the last of them a
	// delivery has failed. Empty: one attempt alone.
	Retries []time.Duration
	// Retention is how long the log is kept; 0: 30 days.
	Retention time.Duration
	// Epoch names the life of this node (node.Node); leases of epochs that do not
	// live are taken over.
	Epoch func() string
	// Disabled tells which of the accounts are disabled: nothing is sent for
	// them. nil: none is.
	Disabled func(tx *store.Tx, accounts []string) (map[string]bool, error)
	// Log gets what only the operator can see to; nil: nobody does.
	Log *slog.Logger
	// Now is the clock of timestamps and waits; nil: time.Now. When something
	// is due the database's clock decides.
	Now func() time.Time
	// Registry gets the metrics; nil: nobody does.
	Registry prometheus.Registerer
}

// Webhooks delivers events. New starts nothing: Run does the work, and Test
// and Resend do theirs in their caller's goroutine. It is safe for concurrent
// use.
type Webhooks struct {
	opts    Options
	client  *http.Client
	metrics metrics
	wake    chan struct{} // of one place: look now
	manual  manual        // places of tests and resends

	workers sync.WaitGroup // of attempts
	running sync.Mutex     // held by Run and by turns of tests: one turn at a time

	mu     sync.Mutex
	flying map[string]*flight // attempts that are not recorded yet, by lease; under mu
	ended  []*flight          // those whose outcome is known; under mu

	looked time.Time // when leases were last looked through; of the turn
	// adopted is the last delivery that a turn has made its receiver know of. Turns look
	// for fresh ones after it, and for all of them each lookEvery: a transaction that
	// commits late may add an earlier one. It keeps turns from reading, again and again,
	// the dead entries that PostgreSQL's index has of those before it. Of the turn.
	adopted string
}

// Defaults and bounds.
const (
	defaultTimeout   = 10 * time.Second
	defaultRetention = 30 * 24 * time.Hour
	maxManual        = 128 // tests and resends at a time, on this node
	maxManualEach    = 4   // of them for one account
)

// New returns Webhooks that do nothing yet.
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
		wake: make(chan struct{}, 1), manual: newManual(), flying: map[string]*flight{}}
	return w
}

// Wake makes Run look for due deliveries now. Call it after the commit of a
// transaction that events were added to; without it they wait for up to a
// second.
func (w *Webhooks) Wake() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// How Run paces itself.
const (
	pollEvery  = time.Second           // other nodes emit too, and clocks move on
	pace       = 10 * time.Millisecond // turns are no closer, so that they do much at once
	sweepEvery = 10 * time.Minute
	stopGrace  = 3 * time.Second // for attempts that run when Run is to end
)

// Run claims what is due, sends it, records what came of it and deletes the log
// past its retention, until ctx ends. Then attempts that run get a moment to
// end; those that do not are broken off and stay due. What Run started has
// ended when it returns.
func (w *Webhooks) Run(ctx context.Context) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wait time.Duration
	turn := func(ctx context.Context) (err error) {
		wait, err = w.turn(ctx, sending)
		return err
	}
	loop.Run(ctx,
		loop.Loop{Room: "webhook", Does: "read or write deliveries", Log: w.opts.Log, Step: turn,
			Period: pollEvery, Next: func() time.Duration { return wait }, Wake: w.wake, Pause: pace},
		loop.Loop{Room: "webhook", Does: "delete old deliveries", Log: w.opts.Log, Period: sweepEvery, Step: w.Forget},
		loop.Loop{Room: "webhook", Does: "count deliveries", Log: w.opts.Log, Period: measureEvery, Step: w.Measure},
	)
	w.finish(stop)
}

// finish lets attempts end or breaks them off, and records them.
func (w *Webhooks) finish(stop context.CancelFunc) {
	cut := time.AfterFunc(stopGrace, stop)
	w.workers.Wait()
	cut.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if _, err := w.turn(ctx, nil); err != nil {
		w.opts.Log.Warn("webhook: the last attempts are not recorded and will be repeated", "error", err)
	}
}
