// Package line owns the way from a model to the lines that serve it: which
// line is asked, in which order, what became of each attempt, and how the
// lines are doing. It holds the only retry loop of the product.
//
// Invariants:
//   - One request asks each line at most once, and asks no further line after
//     an answer has begun or the request itself was rejected.
//   - What a client is told after a failed walk follows from the failures
//     alone (verdict, a pure function); lines and providers are not named.
//   - No failure leaves it with the line's credential in it, whoever judged it.
//   - What is kept in memory is bounded by the lines of the newest catalog.
package line

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// Options configure Lines.
type Options struct {
	// Open makes the adapter of a line; required. It must be cheap and open no
	// connection (adapters.Set.Open).
	Open func(upstream.Target) (upstream.Adapter, error)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Registry gets the metrics tollgate_line_*; nil shows them nowhere. It
	// must not have them already.
	Registry prometheus.Registerer
}

// Lines walks the lines of models on this node. It is safe for concurrent use.
type Lines struct {
	open    func(upstream.Target) (upstream.Adapter, error)
	now     func() time.Time
	metrics *metrics

	mu      sync.Mutex
	newest  fleet             // adapters of the newest revision seen
	former  fleet             // of the one before it, for requests that began on it
	tallies map[string]*tally // by line id
}

// fleet holds the adapters of one revision of the catalog by line id.
type fleet struct {
	revision int64
	adapters map[string]upstream.Adapter
}

// New makes the lines of a node.
func New(o Options) *Lines {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Lines{
		open:    o.Open,
		now:     o.Now,
		metrics: newMetrics(o.Registry),
		newest:  fleet{revision: -1},
		former:  fleet{revision: -1},
		tallies: map[string]*tally{},
	}
}

// On is the line that an attempt is made on.
type On struct {
	Line *catalog.Line
	// Adapter makes the call. The line counts as busy until the body of its
	// answer is closed.
	Adapter upstream.Adapter
	// ProviderModel is the provider's name of the model.
	ProviderModel string

	visit *visit
}

// Broke tells that an answer which had begun on the line broke off, so that the
// attempt no longer counts as a good one. Calls after the first do nothing.
// A client that left is no failure of the line: its health effect is none. The
// line's credential, should the provider have repeated it, is gone from f
// afterwards, so call it before f is shown to anybody.
func (on On) Broke(f *upstream.Failure) { on.visit.broke(f.Redact(on.visit.key)) }

// Attempt is what the request log keeps of one attempt.
type Attempt struct {
	Line string `json:"line"`
	// Status is the provider's HTTP status; 0 when no head arrived.
	Status int `json:"status,omitempty"`
	// Code is the service's code for a failure; empty on success.
	Code string `json:"code,omitempty"`
	// Cause is for the operator, at most a few hundred bytes.
	Cause string `json:"cause,omitempty"`
	// FirstByteMS is the time until the answer had begun; 0 if it never did.
	FirstByteMS int64 `json:"first_byte_ms"`
	// DurationMS is the time until the attempt had failed or the answer had
	// begun; who streams the answer may set it to the whole time.
	DurationMS int64 `json:"duration_ms"`
}

// Try walks the usable lines of a model in the snapshot's order until an
// attempt succeeds.
//
// attempt makes one call and judges the beginning of its answer. It returns nil
// when the answer has begun, which ends the walk; a *upstream.Failure when the
// line brought no good answer, which moves on unless the failure is final; any
// other error ends the walk and is returned as it is.
//
// Try returns the attempts made, also with an error. The error for a failed
// walk is a *fault.Error; upstream_unavailable when no line could be asked.
// When ctx ends the walk ends with it, as upstream_timeout for a deadline and
// client_closed else.
func (l *Lines) Try(ctx context.Context, s *catalog.Snapshot, m *catalog.Model, form wire.Form,
	attempt func(ctx context.Context, on On) error) ([]Attempt, error) {
	var (
		attempts []Attempt
		failures []*upstream.Failure
	)
	for _, ln := range s.Lines(m.ID) {
		if !usable(ln, form) {
			continue
		}
		if ctx.Err() != nil {
			failures = append(failures, upstream.Interrupted(ctx, ctx.Err()))
			break
		}
		a, err := l.visit(ctx, s, m, ln, attempt)
		attempts = append(attempts, a)
		if err == nil {
			return attempts, nil
		}
		var f *upstream.Failure
		if !errors.As(err, &f) {
			return attempts, err
		}
		failures = append(failures, f)
		if f.Final() {
			break
		}
	}
	return attempts, verdict(failures)
}

// usable reports whether a line can be asked for a form on this node.
func usable(ln *catalog.Line, form wire.Form) bool { return ln.Out == "" && ln.Speaks(form) }

// visit makes the attempt on one line and counts how it went.
func (l *Lines) visit(ctx context.Context, s *catalog.Snapshot, m *catalog.Model, ln *catalog.Line,
	attempt func(ctx context.Context, on On) error) (Attempt, error) {
	start := l.now()
	adapter, t, err := l.adapter(s, ln)
	if err != nil {
		// The catalog checked the line, so this is another version's line.
		err = upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("opening the adapter: %w", err))
	}
	v := &visit{tally: t, now: l.now, key: ln.Key()}
	if err == nil {
		err = attempt(ctx, On{
			Line:          ln,
			Adapter:       &counted{adapter: adapter, tally: t},
			ProviderModel: ln.Models[m.ID],
			visit:         v,
		})
	}
	took := l.now().Sub(start)
	a := Attempt{Line: ln.ID, DurationMS: took.Milliseconds()}
	var f *upstream.Failure
	switch {
	case err == nil:
		a.Status, a.FirstByteMS = 200, a.DurationMS
		v.answered(took)
	case errors.As(err, &f):
		f.Redact(v.key)
		a.Status, a.Code = f.Status, string(f.Code)
		if f.Cause != nil {
			a.Cause = f.Cause.Error()
		}
		v.failed(f)
	default:
		a.Cause = "the attempt was given up: " + err.Error()
	}
	return a, err
}

// adapter returns the adapter of a line and its tally. The adapters of the two
// newest revisions are kept; a request on an older one gets one of its own.
func (l *Lines) adapter(s *catalog.Snapshot, ln *catalog.Line) (upstream.Adapter, *tally, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Revision > l.newest.revision {
		l.advance(s)
	}
	t := l.tallies[ln.ID]
	if t == nil {
		t = newTally(ln.ID, l.metrics)
		l.tallies[ln.ID] = t
	}
	var kept map[string]upstream.Adapter
	switch s.Revision {
	case l.newest.revision:
		kept = l.newest.adapters
	case l.former.revision:
		kept = l.former.adapters
	}
	if a := kept[ln.ID]; a != nil {
		return a, t, nil
	}
	a, err := l.open(upstream.Target{
		Line: ln.ID, Provider: ln.Provider, BaseURL: ln.BaseURL, Key: ln.Key(), Options: ln.Options,
	})
	if err == nil && kept != nil {
		kept[ln.ID] = a
	}
	return a, t, err
}

// advance begins a newer revision: adapters of all but the last two go, and so
// do tallies of lines that no longer exist. Callers hold mu.
func (l *Lines) advance(s *catalog.Snapshot) {
	l.former = l.newest
	l.newest = fleet{revision: s.Revision, adapters: map[string]upstream.Adapter{}}
	exists := make(map[string]bool, len(s.AllLines()))
	for _, ln := range s.AllLines() {
		exists[ln.ID] = true
	}
	for id := range l.tallies {
		if !exists[id] {
			delete(l.tallies, id)
			l.metrics.forget(id)
		}
	}
}

// Capped returns the enabled lines that have a max_concurrent. This version
// does not enforce it, which the start log says.
func Capped(s *catalog.Snapshot) []*catalog.Line {
	var capped []*catalog.Line
	for _, ln := range s.AllLines() {
		if ln.Enabled && ln.MaxConcurrent > 0 {
			capped = append(capped, ln)
		}
	}
	return capped
}
