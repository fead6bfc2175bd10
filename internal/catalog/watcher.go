package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog/secret"
	"tollgate/internal/catalog/vault"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// WatcherOptions configures a Watcher. Interval and Keys are optional.
type WatcherOptions struct {
	DB        *store.DB
	Providers map[string]Provider
	Lookup    func(name string) (string, bool) // the environment of this node
	Keys      vault.KeyRing                    // decrypt the secrets of lines in the database
	Log       *slog.Logger
	Interval  time.Duration // between two polls of the database; one second if 0
}

// pollTimeout bounds one poll of the database, so that a hanging poll does not prevent the next
// poll.
const pollTimeout = 5 * time.Second

// Watcher holds the newest snapshot of a node.
type Watcher struct {
	opts    WatcherOptions
	current atomic.Pointer[Snapshot]

	mu             sync.Mutex // held during a poll; an older revision never replaces a newer one
	failedRevision int64      // the newest revision if it could not be loaded; guarded by mu
	secretsVersion int64      // of stored; -1 before the first poll; guarded by mu
	changesVersion int64      // of coming; -1 before the first poll; guarded by mu

	stored atomic.Pointer[vault.Values]   // the stored secrets
	coming atomic.Pointer[[]ComingPrices] // nil before the first poll

	snapshotsMu sync.Mutex          // guards snapshots
	snapshots   map[int64]*Snapshot // older snapshots, by revision
}

// NewWatcher returns a Watcher with an empty snapshot of revision 0. Call Refresh before serving,
// and then Run.
func NewWatcher(o WatcherOptions) *Watcher {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	w := &Watcher{opts: o, secretsVersion: -1, changesVersion: -1}
	w.stored.Store(&vault.Values{})
	w.opts.Lookup = secret.Lookup(o.Lookup, func(name string) (string, bool) { return w.stored.Load().Lookup(name) })
	w.current.Store(NewSnapshot(0, &Document{}, o.Providers, w.opts.Lookup))
	return w
}

// NewStaticWatcher returns a Watcher whose current snapshot is always s. It must not be run or
// refreshed.
func NewStaticWatcher(s *Snapshot) *Watcher {
	w := &Watcher{}
	w.current.Store(s)
	return w
}

// Current returns the newest snapshot, never nil. It does not block.
func (w *Watcher) Current() *Snapshot { return w.current.Load() }

// maxSnapshots bounds the older snapshots kept by a watcher for jobs.
const maxSnapshots = 8

// SnapshotAt returns the snapshot of a revision, for jobs submitted under that revision. It returns
// ErrNoRevision if there never was such a revision.
func (w *Watcher) SnapshotAt(ctx context.Context, revision int64) (*Snapshot, error) {
	if s := w.Current(); s.Revision == revision {
		return s, nil
	}
	w.snapshotsMu.Lock()
	defer w.snapshotsMu.Unlock()
	if s := w.snapshots[revision]; s != nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	raw, err := store.Read(ctx, w.opts.DB, func(tx *store.Tx) (string, error) { return documentTx(tx, revision) })
	if err != nil {
		return nil, fmt.Errorf("read catalog revision %d: %w", revision, err)
	}
	doc, _, err := load([]byte(raw))
	if err != nil {
		return nil, fmt.Errorf("load catalog revision %d: %w", revision, err)
	}
	s := NewSnapshot(revision, doc, w.opts.Providers, w.opts.Lookup)
	for oldRevision := range w.snapshots {
		if len(w.snapshots) < maxSnapshots {
			break
		}
		delete(w.snapshots, oldRevision)
	}
	if w.snapshots == nil {
		w.snapshots = map[int64]*Snapshot{}
	}
	w.snapshots[revision] = s
	return s, nil
}

// Resolve returns the value of a reference on this node. If there is no value, reason says why.
func (w *Watcher) Resolve(reference string) (value, reason string) {
	keys, reason := secret.Keys([]string{reference}, w.opts.Lookup)
	if reason != "" {
		return "", reason
	}
	return keys[0].Value(), ""
}

// NodeWarnings calls the function NodeWarnings with the providers and environment of this node.
func (w *Watcher) NodeWarnings(doc *Document) []Warning {
	return NodeWarnings(doc, w.opts.Providers, w.opts.Lookup)
}

// Run polls for new revisions once per interval until ctx ends. It logs when the database stops
// responding and when the database responds again. Meanwhile the node keeps its snapshot.
func (w *Watcher) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "catalog", Does: "look for a new revision", Log: w.opts.Log,
		Period: w.opts.Interval, Later: true, Step: w.Refresh})
}

// ReloadSecrets reads the values of the lines' references again, without a new revision, and logs
// the lines with changed secrets. Running requests keep their secrets. If a value is no longer
// readable, the line keeps its former secret. A deleted stored secret is not kept.
func (w *Watcher) ReloadSecrets() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reloadSecrets()
}

// reloadSecrets is ReloadSecrets with w.mu held.
func (w *Watcher) reloadSecrets() {
	w.snapshotsMu.Lock()
	defer w.snapshotsMu.Unlock()
	for revision, s := range w.snapshots {
		w.snapshots[revision], _, _ = s.reloadSecrets(w.opts.Providers, w.opts.Lookup)
	}
	s, changed, unreadable := w.Current().reloadSecrets(w.opts.Providers, w.opts.Lookup)
	for _, l := range unreadable {
		w.opts.Log.Warn("catalog: a line's secret cannot be read again, so the line keeps its previous secret", "line", l.Path, "reason",
			l.Message)
	}
	if len(changed) > 0 {
		w.current.Store(s)
	}
	for _, l := range changed {
		w.opts.Log.Info("catalog: reloaded a line's secret", "line", l.Path, "out", l.Message)
	}
	w.opts.Log.Info("catalog: the secrets of lines were read again", "lines", len(s.lines), "changed", len(changed), "kept", len(unreadable))
}

// Refresh loads the database's current revision and the stored secrets unless the node has them
// already. If the node cannot load the revision, Refresh logs the error once and keeps the former
// snapshot. It only returns errors of the database.
func (w *Watcher) Refresh(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var (
		newest  head
		raw     string
		stored  *vault.Values  // nil if the node has the newest secrets
		coming  []ComingPrices // nil if the node has the newest ones
		current = w.Current().Revision
	)
	hasRevision := func() bool { return newest.revision == current || newest.revision == w.failedRevision }
	err := w.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		stored, coming = nil, nil
		if newest, err = headTx(tx); err != nil {
			return err
		}
		if newest.secrets != w.secretsVersion {
			if stored, err = w.opts.Keys.LoadTx(tx); err != nil {
				return err
			}
		}
		if newest.changes != w.changesVersion {
			if coming, err = comingTx(tx); err != nil {
				return err
			}
		}
		if !hasRevision() {
			raw, err = documentTx(tx, newest.revision)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrNoRevision) {
		return err
	}
	if stored != nil {
		w.useSecrets(stored, newest.secrets)
	}
	if coming != nil {
		w.coming.Store(&coming)
		w.changesVersion = newest.changes
	}
	if hasRevision() {
		if stored != nil && current > 0 {
			w.reloadSecrets()
		}
		return nil
	}
	w.load(newest.revision, raw, err)
	return nil
}

// useSecrets sets the stored secrets for the next snapshots. It logs secrets that this node cannot
// decrypt.
func (w *Watcher) useSecrets(stored *vault.Values, version int64) {
	if err := stored.KeepFrom(w.stored.Load()); err != nil {
		w.opts.Log.Error("catalog: secrets of lines cannot be decrypted on this node", "error", err)
	}
	w.stored.Store(stored)
	w.secretsVersion = version
}

// load makes a revision the current snapshot. err is the error of reading the document raw.
func (w *Watcher) load(revision int64, raw string, err error) {
	current := w.Current().Revision
	var doc *Document
	var warnings []Warning
	if err == nil {
		doc, warnings, err = load([]byte(raw))
	}
	if err != nil {
		w.failedRevision = revision
		w.opts.Log.Error("catalog: the newest revision cannot be loaded, so this node keeps the previous one", "revision", revision, "serving",
			current, "error", err)
		return
	}
	s := NewSnapshot(revision, doc, w.opts.Providers, w.opts.Lookup)
	w.current.Store(s)
	w.failedRevision = 0
	w.opts.Log.Info("catalog: serving a new revision", "revision", revision, "before", current, "models", len(s.models), "lines", len(s.lines))
	for _, warning := range warnings {
		w.opts.Log.Warn("catalog: "+warning.String(), "revision", revision)
	}
	for _, l := range s.lines {
		if l.Enabled && l.UnusableReason != "" {
			w.opts.Log.Warn("catalog: a line is out of service on this node", "line", l.ID, "reason", l.UnusableReason)
		}
		for _, k := range l.Keys() {
			if l.Enabled && k.MissingReason != "" {
				w.opts.Log.Warn("catalog: a line does not use one of its keys on this node", "line", l.ID, "reason", k.MissingReason)
			}
		}
	}
}
