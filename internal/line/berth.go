package line

import (
	"errors"
	"slices"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// Berth is a line as a job meets it: where to submit, and how it went.
type Berth struct {
	Line  *catalog.Line
	Maker upstream.Maker
	// ProviderModel is the provider's name of the model.
	ProviderModel string
	// HalfOpen says that the line is: it is given one job at a time, and
	// the Voyage on it must end.
	HalfOpen bool

	lines *Lines
	entry *routingEntry
	asked asked
}

// Waiting is a line that takes no job now.
type Waiting struct {
	Line string
	// Soon says that it takes some again by itself: it cools, or is half-open.
	Soon bool
	Why  string // a word of Status.State
}

// Berths returns the lines that take jobs of a model now, lowest priority first,
// and those that take none. It does not look at slots: FreeTx does.
func (l *Lines) Berths(s *catalog.Snapshot, model string) ([]*Berth, []Waiting) {
	var berths []*Berth
	var waiting []Waiting
	for _, entry := range l.table(s).byModel[model] {
		b, why := l.berth(entry, model)
		if why != "" {
			waiting = append(waiting, Waiting{Line: entry.line.ID, Why: why, Soon: why == stateCooling || why == stateHalfOpen})
			continue
		}
		berths = append(berths, b)
	}
	return berths, waiting
}

// berth returns a line for a model's job, or why it takes none.
func (l *Lines) berth(entry *routingEntry, model string) (_ *Berth, why string) {
	ln, t := entry.line, entry.stats
	maker, ok := entry.adapter.(upstream.Maker)
	switch {
	case ln.Out != "" || !ok:
		return nil, stateOutOfService
	case t.drained.Load():
		return nil, stateDrained
	}
	why, generation, isHalfOpen := t.refuses(l.now, model, false)
	if why != "" {
		return nil, why
	}
	if isHalfOpen {
		t.endHalfOpen() // its place is taken again by Sail
	}
	b := newBerth(l, entry, maker, model, generation)
	b.HalfOpen = isHalfOpen
	return b, ""
}

// newBerth makes the berth of a line that can make what jobs ask for.
func newBerth(l *Lines, entry *routingEntry, maker upstream.Maker, model string, generation uint64) *Berth {
	return &Berth{
		Line: entry.line, Maker: maker, ProviderModel: entry.line.Models[model],
		lines: l, entry: entry, asked: asked{model: model, generation: generation},
	}
}

// MakerOf returns a line of a snapshot, in whatever state, for a job that has
// been submitted there. nil: the snapshot has no such line that could make
// anything on this node.
func (l *Lines) MakerOf(s *catalog.Snapshot, line, model string) *Berth {
	f := l.table(s)
	i := slices.IndexFunc(f.entries, func(entry *routingEntry) bool { return entry.line.ID == line })
	if i < 0 {
		return nil
	}
	entry := f.entries[i]
	maker, ok := entry.adapter.(upstream.Maker)
	if !ok || entry.line.Out != "" {
		return nil
	}
	return newBerth(l, entry, maker, model, entry.stats.generation.Load())
}

// Voyage is a job's attempt on a line, for the line's state. It is used by one
// goroutine.
type Voyage struct {
	berth *Berth
	asked asked
	begun time.Time
	ended bool
}

// Sail begins an attempt for an account: the line counts as busy until End.
func (b *Berth) Sail(account string) *Voyage {
	t := b.entry.stats
	t.inFlight.Add(1)
	t.metrics.inFlight.Inc()
	if b.HalfOpen {
		t.mu.Lock()
		t.halfOpenRequests++
		t.mu.Unlock()
	}
	asked := b.asked
	asked.account, asked.job = account, true
	return &Voyage{berth: b, asked: asked, begun: b.lines.now()}
}

// Went records that the line did what it was asked: it accepted the job, or
// answered with the results.
func (v *Voyage) Went() {
	b, now := v.berth, v.berth.lines.now()
	took := now.Sub(v.begun)
	_, changes := b.entry.stats.answered(now, v.asked, took)
	b.entry.stats.metrics.answered(took)
	b.lines.tell(b.Line.ID, changes)
}

// Failed records a trouble of the job on the line. The line's credential is
// gone from t afterwards. No probe can prove what a job met: where it is
// unproven that credential or model do not work, it is a failure like another
// unproven one.
func (v *Voyage) Failed(t *upstream.Trouble) {
	b := v.berth
	t = t.Redact(b.Line.Key())
	b.entry.stats.metrics.failed(t.Failure)
	f := *t.Failure
	if f.Unproven && (f.Health == upstream.HealthCredential || f.Health == upstream.HealthModel) {
		f.Health = upstream.HealthFail
	}
	b.lines.tell(b.Line.ID, b.entry.stats.failed(b.lines.now(), v.asked, &f))
}

// End ends the attempt; calls after the first do nothing.
func (v *Voyage) End() {
	if v.ended {
		return
	}
	v.ended = true
	t := v.berth.entry.stats
	t.inFlight.Add(-1)
	t.metrics.inFlight.Dec()
	if v.berth.HalfOpen {
		t.endHalfOpen()
	}
}

// NoMaker is the trouble of a line that could not be opened.
func NoMaker(kind string) *upstream.Trouble {
	t := upstream.Troubled(upstream.Fail(fault.UpstreamUnavailable, errors.New("the line cannot be used on this node")), fault.UpstreamError, upstream.NextLine)
	t.Health = upstream.HealthNone
	if kind == upstream.KindVideo {
		t.Job = fault.UpstreamUnstable
	}
	return t
}

// Spread orders what Berths returned for one job: by priority, and by weight
// among equals.
func (l *Lines) Spread(berths []*Berth, job string) []*Berth {
	entries := make([]*routingEntry, len(berths))
	byEntry := make(map[*routingEntry]*Berth, len(berths))
	for i, b := range berths {
		entries[i], byEntry[b.entry] = b.entry, b
	}
	var few [4]ranked
	out := make([]*Berth, 0, len(berths))
	for _, c := range order(few[:0], entries, wire.Hash(job)) {
		out = append(out, byEntry[c.entry])
	}
	return out
}
