package line

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// routingTable is one snapshot of the catalog, prepared for routing. It never changes.
type routingTable struct {
	edition
	entries []*routingEntry            // in the order of the document
	byModel map[string][]*routingEntry // the enabled lines of each model, lowest priority first
}

// edition identifies a snapshot by its revision and the version of its secrets.
type edition struct{ revision, secretsVersion int64 }

// before reports whether e is older than other.
func (e edition) before(other edition) bool {
	return e.revision < other.revision || e.revision == other.revision && e.secretsVersion < other.secretsVersion
}

// routingEntry is a line of a routing table.
type routingEntry struct {
	line  *catalog.Line
	keys  []*lineKey // at least one
	stats *stats
	target
	hash uint64 // hash of the line's id
	host string // host of the line's address
}

// secrets returns the line's secrets: its keys, secret header values, and tokens.
func (e *routingEntry) secrets() []string {
	all := e.line.Secrets()
	for _, k := range e.keys {
		if s, ok := k.adapter.(chatcall.Secretive); ok {
			all = append(slices.Clone(all), s.Secrets()...)
		}
	}
	return all
}

// redact removes the line's secrets from a failure.
func (e *routingEntry) redact(f *upstream.Failure) {
	f.Redact(e.secrets()...)
}

// table returns the routing table of a snapshot. Lines keeps the tables of the two newest
// snapshots; for an older snapshot, table builds a new table for each request.
func (l *Lines) table(s *catalog.Snapshot) *routingTable {
	current := edition{s.Revision, s.SecretsVersion}
	if t := l.newestTable.Load(); t.edition == current {
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := l.newestTable.Load()
	switch {
	case current == newest.edition:
		return newest
	case current == l.previousTable.edition:
		return l.previousTable
	case current.before(newest.edition):
		return l.buildTable(s)
	}
	t := l.buildTable(s)
	for _, entry := range t.entries {
		id := entry.line.ID
		if old := l.knownLines[id]; old != nil {
			if !sameAccount(old, entry.line) {
				// The stats belong to another provider, or to another account at the provider.
				l.announce(id, entry.stats.forget(l.now()))
			}
			l.metrics.updateModels(old, entry.line)
		}
		l.knownLines[id] = entry.line
		entry.stats.margins.keep(entry.line)
		noProbes := unprobeable(s, entry.line)
		entry.stats.SetServing(health.Serving{Models: len(entry.line.Models), Forms: len(entry.line.Forms), Unprobeable: noProbes})
		entry.stats.unprobeable.Store(noProbes)
	}
	l.previousTable = newest
	l.newestTable.Store(t)
	l.forgetRemoved(t)
	return t
}

// unprobeable reports whether a line has only models with jobs, so that probes are impossible.
func unprobeable(s *catalog.Snapshot, ln *catalog.Line) bool {
	for id := range ln.Models {
		if m, ok := s.Model(id); ok && !m.Kind.IsJob() {
			return false
		}
	}
	return true
}

// buildTable builds the routing table of a snapshot. The caller must hold mu.
func (l *Lines) buildTable(s *catalog.Snapshot) *routingTable {
	t := &routingTable{edition: edition{s.Revision, s.SecretsVersion}, byModel: map[string][]*routingEntry{}}
	byID := make(map[string]*routingEntry, len(s.AllLines()))
	for _, ln := range s.AllLines() {
		entry := &routingEntry{line: ln, stats: l.statsOf(ln), hash: wire.Hash(ln.ID), host: hostOf(ln)}
		entry.keys = l.keysOf(entry)
		entry.target = target{ln.ID, digestOf(entry)}
		byID[ln.ID] = entry
		t.entries = append(t.entries, entry)
	}
	for _, m := range s.Models() {
		for _, ln := range s.Lines(m.ID) {
			t.byModel[m.ID] = append(t.byModel[m.ID], byID[ln.ID])
		}
	}
	return t
}

// digestOf returns a digest of a line's address and credentials.
func digestOf(entry *routingEntry) string {
	ln := entry.line
	d := sha256.New()
	fmt.Fprintf(d, "%q %q %q %v", ln.Provider, ln.BaseURL, ln.Secrets(), ln.Options) // fmt sorts maps
	for _, k := range entry.keys {
		fmt.Fprintf(d, " %q", k.mark)
	}
	for _, name := range slices.Sorted(maps.Keys(ln.Headers)) {
		fmt.Fprintf(d, " %q %q", name, ln.Headers[name])
	}
	return hex.EncodeToString(d.Sum(nil)[:8])
}

// hostOf returns the host of a line's address. Adapter name and host identify a provider.
func hostOf(ln *catalog.Line) string {
	u, err := url.Parse(ln.BaseURL)
	if err != nil {
		return ln.BaseURL
	}
	return u.Host
}

// keysOf returns the line's keys on this node, each with its adapter.
func (l *Lines) keysOf(entry *routingEntry) (keys []*lineKey) {
	for i, k := range entry.line.Keys() {
		if k.MissingReason == "" {
			keys = append(keys, &lineKey{entry: entry, position: i + 1, mark: k.Fingerprint(), key: k, adapter: l.adapter(entry.line, k.Value())})
		}
	}
	if len(keys) == 0 {
		keys = []*lineKey{{entry: entry, adapter: l.adapter(entry.line, "")}}
	}
	return keys
}

// adapter opens the adapter of a line with one of its keys. If this node does not support the line,
// because another version of the gateway accepted the catalog, every call of the returned adapter
// fails.
func (l *Lines) adapter(ln *catalog.Line, key string) chatcall.Adapter {
	if !ln.Enabled || ln.UnusableReason != "" {
		return openError{}
	}
	a, err := l.open(upstream.Target{
		Line: ln.ID, Provider: ln.Provider, BaseURL: ln.BaseURL, Key: key, Options: ln.Options,
		Header: ln.Header(), Secrets: ln.Secrets(), Set: ln.FixedFields(), Omit: ln.OmittedFields(),
	})
	if err != nil {
		return openError{err}
	}
	return a
}

// stats is the state of a line. It is kept as long as successive catalogs contain the line.
type stats struct {
	*health.Stats
	inFlight       atomic.Int64
	drained        atomic.Bool
	wakeGeneration atomic.Uint64 // generation of Stats at the last call of findings.wake
	unprobeable    atomic.Bool   // see health.Serving
	refusedFields  sync.Map      // keys of type refusedField
	keys           refusals
	margins        margins
	metrics        lineMetrics
	gatewayCounts  atomic.Int64 // answers without a believable usage
	warnedMS       atomic.Int64 // time of the last warning about an implausible cost
}

// forget clears the line's health, refused fields and refused keys. It returns the messages for the
// operator.
func (s *stats) forget(now time.Time) []health.Change {
	s.refusedFields.Clear()
	s.keys.clear()
	return s.Clear(now)
}

// addSettlement adds a settlement to the margins and metrics.
func (s *stats) addSettlement(model string, settlement Settlement) {
	if !settlement.Answered && settlement.LineCost == nil {
		return // a failed attempt with unknown cost
	}
	m := settlement.margin(model)
	s.margins.add(m)
	s.metrics.addMargin(m)
}

// statsOf returns the stats of a line. The caller must hold mu.
func (l *Lines) statsOf(ln *catalog.Line) *stats {
	s := l.stats[ln.ID]
	if s == nil {
		s = &stats{Stats: health.New(), metrics: l.metrics.forLine(ln)}
		s.drained.Store(l.controls[ln.ID].drained)
		l.stats[ln.ID] = s
	}
	return s
}

// sameAccount reports whether two versions of a line use the same account at the same provider, so
// that the line's stats stay valid. Options may select the account too.
func sameAccount(a, b *catalog.Line) bool {
	return a.Provider == b.Provider && a.BaseURL == b.BaseURL && a.APIKey == b.APIKey &&
		slices.Equal(a.Secrets(), b.Secrets()) && maps.Equal(a.Headers, b.Headers) && reflect.DeepEqual(a.Options, b.Options)
}

// forgetRemoved deletes the stats of lines that are not in the newest table. The caller must hold
// mu.
func (l *Lines) forgetRemoved(t *routingTable) {
	exists := make(map[string]bool, len(t.entries))
	for _, entry := range t.entries {
		exists[entry.line.ID] = true
	}
	for id := range l.stats {
		if !exists[id] {
			delete(l.stats, id)
			delete(l.knownLines, id)
			l.metrics.forget(id)
		}
	}
}

// openError is the adapter of a line that cannot be used. Every call fails.
type openError struct{ cause error }

// Chat implements chatcall.Adapter.
func (e openError) Chat(context.Context, chatcall.Call) (*chatcall.Response, error) {
	return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("opening the adapter: %w", e.cause))
}
