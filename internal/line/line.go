// Package line owns the routing of requests to the lines of a model. It selects and orders the
// lines, makes the attempts, and tracks the health of each line. It has the only retry loop for
// requests.
//
// Invariants:
//   - A request uses each line once, with three exceptions: in another form if the line lacks the
//     first form, with another key if a key was refused, and without a field added by the gateway if
//     the model refused the field (package chat).
//   - A request uses no further line after an answer has begun or the request was rejected.
//   - A line known to be out does not delay requests, because it gets none until a probe by the
//     gateway succeeds.
//   - A line never has more than max_concurrent calls, over all nodes.
//   - The client's error after failed attempts depends only on the failures (clientError) and names
//     neither lines nor providers.
//   - No failure that leaves the package contains the line's credential.
//   - Memory is bounded by the lines of the newest catalog.
package line

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/node"
	"tollgate/internal/slot"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// Options configure Lines.
type Options struct {
	// Open returns the adapter of a line; required. It must be cheap and open no connection
	// (adapters.Set.Open).
	Open func(upstream.Target) (chatcall.Adapter, error)
	// Catalog has the newest snapshot, for Run and Statuses. If nil, there are no lines.
	Catalog *catalog.Watcher
	// DB holds the slots, the operator's decisions and the reports of all nodes. If nil, this is the
	// only node.
	DB *store.DB
	// Node is this node. It is required with DB.
	Node *node.Node
	// Alerts gets an alert when a line goes out of service or returns. If nil, no alerts are sent.
	// The caller runs the sender.
	Alerts *alert.Sender
	// Log gets an entry when a line goes out of service or returns.
	Log *slog.Logger
	// Now is the clock. If nil, time.Now is used.
	Now func() time.Time
	// Registry exports the tollgate_line_* metrics. It must not have them already. If nil, the
	// metrics are not exported.
	Registry prometheus.Registerer
}

// Lines routes requests to the lines of models on this node. It is safe for concurrent use.
type Lines struct {
	open    func(upstream.Target) (chatcall.Adapter, error)
	catalog *catalog.Watcher
	now     func() time.Time
	log     *slog.Logger
	metrics *metrics
	slots   *slot.Slots
	alerts  *alert.Sender
	db      *store.DB
	node    *node.Node // nil without db

	wakeProbes chan struct{} // wakes the probe loop of Run after a failure that needs a probe

	findings findings

	newestTable atomic.Pointer[routingTable] // table of the newest snapshot so far

	refreshing sync.Mutex // held while controls are read and applied

	mu            sync.Mutex
	previousTable *routingTable            // table of the snapshot before the newest, for running requests
	stats         map[string]*stats        // by line id
	knownLines    map[string]*catalog.Line // the lines of the newest table, by id
	controls      map[string]control       // the operator's decisions, by line id
}

// New returns the lines of a node.
func New(o Options) *Lines {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Alerts == nil {
		o.Alerts = alert.New("", alert.Mails{}, o.Log, nil)
	}
	if o.Catalog == nil {
		o.Catalog = catalog.NewStaticWatcher(&catalog.Snapshot{})
	}
	l := &Lines{
		open: o.Open, catalog: o.Catalog, now: o.Now, log: o.Log, metrics: newMetrics(o.Registry),
		slots: slot.New(o.DB, o.Node, o.Log), alerts: o.Alerts,
		db: o.DB, node: o.Node, wakeProbes: make(chan struct{}, 1),
		previousTable: &routingTable{edition: edition{revision: -1}},
		stats:         map[string]*stats{}, knownLines: map[string]*catalog.Line{}, controls: map[string]control{},
	}
	l.findings = findings{changed: make(chan struct{}, 1), agreements: map[target]map[blockedPart]agreement{},
		localUntil: map[target]time.Time{},
		pending:    map[string][]pendingAlert{}, leases: map[target]int{}}
	l.newestTable.Store(&routingTable{edition: edition{revision: -1}})
	return l
}

// RoutingRequest has the properties of a request that select its lines.
type RoutingRequest struct {
	// Snapshot is the catalog for the request. Model belongs to Snapshot.
	Snapshot *catalog.Snapshot
	Model    *catalog.Model
	// Form is the client's wire form.
	Form wire.Form
	// Routing lists the request's routing fields. Only lines with these fields in `pass` get the
	// request.
	Routing []string
	// Conversation is the same for all requests of one conversation.
	Conversation uint64
	// Tools is true if the request has tools. Some models accept tools in only one form.
	Tools bool
	// Account is the account of the request. Unproven failures of one account do not take a line out
	// of service for other accounts.
	Account string
}

// UntranslatableError is the error of an attempt if the line's form cannot express the request. The
// next line is tried. If no line's form can express the request, the client gets Err.
type UntranslatableError struct{ Err error }

// Error implements error.
func (u UntranslatableError) Error() string {
	return "the line's form cannot express the request: " + u.Err.Error()
}

// Unwrap returns Err.
func (u UntranslatableError) Unwrap() error { return u.Err }

// eligible returns the model's lines that pass the request's routing fields.
func (l *Lines) eligible(r RoutingRequest) []*routingEntry {
	entries := l.table(r.Snapshot).byModel[r.Model.ID]
	if len(r.Routing) == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(entry *routingEntry) bool { return !entry.line.AcceptsRouting(r.Form, r.Routing) })
}

// RecordSettlement adds the settlement of a job, or of a failed attempt, to the margin of a model on
// a line. It ignores lines outside the catalog.
func (l *Lines) RecordSettlement(line, model string, s Settlement) {
	l.mu.Lock()
	lineStats := l.stats[line]
	l.mu.Unlock()
	if lineStats != nil {
		lineStats.addSettlement(model, s)
	}
}
