// Package line owns the way from a model to the lines that serve it: which
// line is asked, in which order, what became of each attempt, and how the
// lines are doing. It holds the only retry loop of the product.
//
// Invariants:
//   - One request asks each line at most once, once more in another form where it
//     lacks the first one, once more for each of its keys that is refused, and once
//     more for each field that the gateway added and a model refused (package chat);
//     it asks no further line after an answer has
//     begun or the request itself was rejected.
//   - A line that is known not to work costs a request nothing: it is asked
//     again only after a probe of the gateway's own went well.
//   - A line never has more than max_concurrent calls, over all nodes.
//   - What a client is told after a failed walk follows from the failures
//     alone (clientError, a pure function); lines and providers are not named.
//   - No failure leaves it with the line's credential in it, whoever judged it.
//   - What is kept in memory is bounded by the lines of the newest catalog.
package line

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/slot"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// Options configure Lines.
type Options struct {
	// Open makes the adapter of a line; required. It must be cheap and open no
	// connection (adapters.Set.Open).
	Open func(upstream.Target) (chatcall.Adapter, error)
	// Current returns the newest snapshot, for Run and Statuses; nil: no lines.
	Current func() *catalog.Snapshot
	// DB holds what nodes share: slots, the operator's word, reports. nil: this
	// node is alone.
	DB *store.DB
	// Epoch names the life of this node (node.Node); required with DB.
	Epoch func() string
	// Alerts get an alert when a line leaves or returns to service; nil: nobody
	// is told. Whoever made them lets them run.
	Alerts *alert.Sender
	// Log gets a line when a line leaves or returns to service.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Registry gets the metrics tollgate_line_*; nil shows them nowhere. It
	// must not have them already.
	Registry prometheus.Registerer
}

// Lines walks the lines of models on this node. It is safe for concurrent use.
type Lines struct {
	open    func(upstream.Target) (chatcall.Adapter, error)
	current func() *catalog.Snapshot
	now     func() time.Time
	log     *slog.Logger
	metrics *metrics
	slots   *slot.Slots
	alerts  *alert.Sender
	db      *store.DB
	epoch   func() string

	doubted chan struct{} // wakes Run: a failure left a doubt

	findings findings

	newest atomic.Pointer[routingTable] // of the newest snapshot seen

	refreshing sync.Mutex // held over the reading and the taking in of controls

	mu       sync.Mutex
	former   *routingTable            // of the one before it, for requests that began on it
	stats    map[string]*stats        // by line id
	known    map[string]*catalog.Line // as of the newest table, by id
	controls map[string]control       // the operator's word, by line id
}

// New makes the lines of a node.
func New(o Options) *Lines {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Alerts == nil {
		o.Alerts = alert.New("", o.Log, nil)
	}
	if o.Current == nil {
		none := &catalog.Snapshot{}
		o.Current = func() *catalog.Snapshot { return none }
	}
	l := &Lines{
		open: o.Open, current: o.Current, now: o.Now, log: o.Log, metrics: newMetrics(o.Registry),
		slots: slot.New(o.DB, o.Epoch, o.Log), alerts: o.Alerts,
		db: o.DB, epoch: o.Epoch, doubted: make(chan struct{}, 1),
		former: &routingTable{edition: edition{revision: -1}},
		stats:  map[string]*stats{}, known: map[string]*catalog.Line{}, controls: map[string]control{},
	}
	l.findings = findings{changed: make(chan struct{}, 1), agreed: map[target]map[heldPart]agreement{}, alone: map[target]time.Time{},
		unsent: map[string][]unsentAlert{}, leases: map[target]int{}}
	l.newest.Store(&routingTable{edition: edition{revision: -1}})
	return l
}

// RoutingRequest is what a walk is made for.
type RoutingRequest struct {
	// Snapshot routes the request; Model is of it.
	Snapshot *catalog.Snapshot
	Model    *catalog.Model
	// Form is the wire form that the client speaks.
	Form wire.Form
	// Routing are the request's routing fields: only lines that pass them are
	// asked.
	Routing []string
	// Conversation is the same for all requests of one conversation.
	Conversation uint64
	// Tools says that the request brings tools: some models take them in one form
	// only.
	Tools bool
	// Account is whose request it is: what one account alone can bring about puts
	// no line out.
	Account string
}

// Untranslatable is an attempt's error for a line that cannot express the
// request in its form. The walk goes on; Err is the answer if no line can.
type Untranslatable struct{ Err error }

// Error implements error.
func (u Untranslatable) Error() string {
	return "the line's form cannot express the request: " + u.Err.Error()
}

// Unwrap returns what the client has to change.
func (u Untranslatable) Unwrap() error { return u.Err }

// Try asks the lines of a model, one after the other, until an attempt
// succeeds. Lines that are known not to work, or have no free slot, are passed
// over.
//
// attempt makes one call and judges the beginning of its answer. It returns nil
// when the answer has begun, which ends the walk; a *upstream.Failure when the
// line brought no good answer, which moves on unless the failure is final; an
// Untranslatable, which moves on; any other error ends the walk and is returned as it
// is.
//
// Try returns the attempts made, also with an error. The error for a failed
// walk is a *fault.Error; where no line could be asked it is that of
// readings: No line. When ctx ends the walk ends with it, as upstream_timeout
// for a deadline and client_closed else.
func (l *Lines) Try(ctx context.Context, r RoutingRequest, attempt func(ctx context.Context, a *Attempt) error) ([]AttemptRecord, error) {
	var few [4]ranked
	w := walk{lines: l, request: r}
	w.order = order(few[:0], l.eligible(r), r.Conversation)
	return w.run(ctx, attempt)
}

// eligible returns the lines of the model that may get the request.
func (l *Lines) eligible(r RoutingRequest) []*routingEntry {
	entries := l.table(r.Snapshot).byModel[r.Model.ID]
	if len(r.Routing) == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(s *routingEntry) bool { return !s.line.Takes(r.Form, r.Routing) })
}

// Settled counts what a job came to on a line, or an attempt of one that failed
// there. A line that is gone counts nothing.
func (l *Lines) Settled(line, model string, s Settlement) {
	l.mu.Lock()
	of := l.stats[line]
	l.mu.Unlock()
	if of != nil {
		of.settled(model, s)
	}
}
