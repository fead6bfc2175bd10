package line

import (
	"slices"

	"tollgate/internal/alert"
	"tollgate/internal/upstream"
)

// keySelector selects the key of a call and records the refused keys. After a refusal, the call
// continues with the next key: first the keys in the call's catalog, then those in the newest
// catalog.
type keySelector struct {
	lines     *Lines
	entry     *routingEntry
	key       *lineKey // the next key to use
	refused   []refusedKey
	anyKey    bool // all keys were refused at the beginning, so any key may be used
	ofRequest bool // whether the call is for an account's request, which may have caused the refusals
}

// refusedKey is a key refused during the call.
type refusedKey struct {
	key      *lineKey
	cause    string
	unproven bool
}

// selectKey selects the first key not known to be refused, or the first key if all are refused.
// own is the mark of a preferred key.
func (l *Lines) selectKey(entry *routingEntry, own string) keySelector {
	t := keySelector{lines: l, entry: entry, key: entry.keys[0]}
	if len(entry.keys) > 1 || own != "" || entry.stats.keys.excludes(t.key) {
		t.key = t.next(own)
	}
	return t
}

// next returns the next key to use, or nil.
func (t *keySelector) next(own string) (first *lineKey) {
	keys := t.keys()
	refused := t.entry.stats.keys.excludes
	if len(t.refused) == 0 {
		t.anyKey = !slices.ContainsFunc(keys, func(k *lineKey) bool { return !refused(k) })
	}
	for _, k := range keys {
		if !t.anyKey && refused(k) || t.used(k) {
			continue
		}
		if k.mark == own {
			return k
		}
		if first == nil {
			first = k
		}
	}
	return first
}

// keys returns the keys allowed for the call.
func (t *keySelector) keys() []*lineKey {
	newest := t.lines.newestOf(t.entry)
	if newest == nil || newest == t.entry {
		return t.entry.keys
	}
	keys := slices.Clone(t.entry.keys)
	for _, k := range newest.keys {
		if !slices.ContainsFunc(keys, func(other *lineKey) bool { return other.mark == k.mark }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// used reports whether the call used a key before.
func (t *keySelector) used(k *lineKey) bool {
	return slices.ContainsFunc(t.refused, func(r refusedKey) bool { return r.key.mark == k.mark })
}

// recordFailure records a failure of the call. It returns true if only the key is at fault and the
// call must be repeated with the next key; f then does not count against the line. Without a next
// key, f is proven only if all keys are known to be refused. recordFailure removes the line's
// credentials from f.
func (t *keySelector) recordFailure(f *upstream.Failure) (retry bool) {
	if t.entry == nil || f.Health != upstream.HealthCredential {
		return false
	}
	keys := t.keys()
	if len(keys) < 2 {
		return false
	}
	t.key.entry.redact(f)
	t.refused = append(t.refused, refusedKey{t.key, f.Error(), f.Unproven})
	next := t.next("")
	if !f.Unproven {
		t.refuse(t.key, f.Error(), next != nil)
	}
	if next != nil {
		t.key, f.Health = next, upstream.HealthNone
		return true
	}
	f.Unproven = f.Unproven || slices.ContainsFunc(keys, func(k *lineKey) bool { return !t.entry.stats.keys.confirmed(k) })
	return false
}

// recordAnswer records that the call was answered, so that its content did not cause the earlier
// refusals of keys.
func (t *keySelector) recordAnswer() {
	if t.entry == nil {
		return
	}
	for _, r := range t.refused {
		if r.unproven {
			t.refuse(r.key, r.cause, true)
		}
	}
	t.lines.accept(t.key)
}

// refuse records the refusal of a key. If a request may have caused the refusal, a probe decides
// if possible.
func (t *keySelector) refuse(k *lineKey, cause string, others bool) {
	if !t.ofRequest || k.entry.stats.unprobed.Load() {
		t.lines.refuse(k, cause, others)
		return
	}
	if k.entry.stats.keys.doubt(k, t.lines.now(), cause) {
		t.lines.wake()
	}
}

// refuse records a confirmed refusal of a key. It logs and alerts the first refusal, unless no
// other key is left; then the line is out, with a separate alert.
func (l *Lines) refuse(k *lineKey, cause string, others bool) {
	if k.entry.stats.keys.add(k, l.now(), cause) && others {
		l.log.Warn("line: a key is refused, and the next one is used", "line", k.entry.line.ID, "key", k.name(), "cause", cause)
		l.alertKey(k, alertKeyRefused, cause)
	}
}

// accept deletes the refusal of a key, with a log line and an alert.
func (l *Lines) accept(k *lineKey) {
	if k.entry.stats.keys.drop(k) {
		l.log.Info("line: a key is accepted again", "line", k.entry.line.ID, "key", k.name())
		l.alertKey(k, alertKeyAccepted, "")
	}
}

// alertKey sends the alert of a refused or accepted key.
func (l *Lines) alertKey(k *lineKey, state, cause string) {
	l.publishKey(k, alert.Alert{Line: k.entry.line.ID, Key: k.name(), State: state, Cause: cause, At: l.now().Unix()})
}

// newestOf returns a line in the newest catalog. It returns nil if the line is gone, is at another
// provider, or is unusable.
func (l *Lines) newestOf(entry *routingEntry) *routingEntry {
	table := l.newest.Load()
	i := slices.IndexFunc(table.entries, func(e *routingEntry) bool { return e.line.ID == entry.line.ID })
	if i < 0 {
		return nil
	}
	newest := table.entries[i]
	if ln := newest.line; ln.Provider != entry.line.Provider || ln.BaseURL != entry.line.BaseURL || !ln.Enabled || ln.UnusableReason != "" {
		return nil
	}
	return newest
}
