package line

import (
	"slices"

	"tollgate/internal/alert"
	"tollgate/internal/upstream"
)

// keySelector selects the key of a call and records the refused keys. After a refusal, the call
// continues with the next key. The keys of the call's catalog come before new keys of the newest
// catalog.
type keySelector struct {
	lines      *Lines
	entry      *routingEntry
	key        *lineKey // the next key to use
	refused    []refusedKey
	anyKey     bool // all keys were refused at the beginning, so any key may be used
	forRequest bool // whether the call is for an account's request, which may have caused the refusals
}

// refusedKey is a key refused during the call.
type refusedKey struct {
	key      *lineKey
	cause    string
	unproven bool
}

// selectKey selects the first key not known to be refused, or the first key if all are refused. If
// the key with the mark preferredMark may be used, selectKey selects it.
func (l *Lines) selectKey(entry *routingEntry, preferredMark string) keySelector {
	s := keySelector{lines: l, entry: entry, key: entry.keys[0]}
	if len(entry.keys) > 1 || preferredMark != "" || entry.stats.keys.excludes(s.key) {
		s.key = s.next(preferredMark)
	}
	return s
}

// next returns the next key to use, or nil.
func (s *keySelector) next(preferredMark string) (first *lineKey) {
	keys := s.keys()
	excluded := s.entry.stats.keys.excludes
	if len(s.refused) == 0 {
		s.anyKey = !slices.ContainsFunc(keys, func(k *lineKey) bool { return !excluded(k) })
	}
	for _, k := range keys {
		if !s.anyKey && excluded(k) || s.hasTried(k) {
			continue
		}
		if k.mark == preferredMark {
			return k
		}
		if first == nil {
			first = k
		}
	}
	return first
}

// keys returns the keys of the call's catalog and the new keys of the newest catalog.
func (s *keySelector) keys() []*lineKey {
	newest := s.lines.newestOf(s.entry)
	if newest == nil || newest == s.entry {
		return s.entry.keys
	}
	keys := slices.Clone(s.entry.keys)
	for _, k := range newest.keys {
		if !slices.ContainsFunc(keys, func(other *lineKey) bool { return other.mark == k.mark }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// hasTried reports whether the call tried a key before.
func (s *keySelector) hasTried(k *lineKey) bool {
	return slices.ContainsFunc(s.refused, func(r refusedKey) bool { return r.key.mark == k.mark })
}

// recordFailure records a failure of the call. It returns true if only the key is at fault and the
// call must be repeated with the next key. It then sets f.Health so that f does not count against
// the line. Without a next key, f is proven only if all keys are known to be refused. recordFailure
// redacts the line's credentials in f.
func (s *keySelector) recordFailure(f *upstream.Failure) (retry bool) {
	if s.entry == nil || f.Health != upstream.HealthCredential {
		return false
	}
	keys := s.keys()
	if len(keys) < 2 {
		return false
	}
	s.key.entry.redact(f)
	s.refused = append(s.refused, refusedKey{s.key, f.Error(), f.Unproven})
	next := s.next("")
	if !f.Unproven {
		s.recordRefusal(s.key, f.Error(), next != nil)
	}
	if next != nil {
		s.key, f.Health = next, upstream.HealthNone
		return true
	}
	f.Unproven = f.Unproven || slices.ContainsFunc(keys, func(k *lineKey) bool { return !s.entry.stats.keys.confirmed(k) })
	return false
}

// recordAnswer records that the call was answered, so that its content did not cause the earlier
// refusals of keys.
func (s *keySelector) recordAnswer() {
	if s.entry == nil {
		return
	}
	for _, r := range s.refused {
		if r.unproven {
			s.recordRefusal(r.key, r.cause, true)
		}
	}
	s.lines.acceptKey(s.key)
}

// recordRefusal records the refusal of a key. If a request may have caused the refusal and a probe
// is possible, the probe decides.
func (s *keySelector) recordRefusal(k *lineKey, cause string, hasOther bool) {
	if !s.forRequest || k.entry.stats.unprobeable.Load() {
		s.lines.confirmRefusal(k, cause, hasOther)
		return
	}
	if k.entry.stats.keys.doubt(k, s.lines.now(), cause) {
		s.lines.wake()
	}
}

// confirmRefusal records a confirmed refusal of a key. It logs and alerts the first refusal if the
// line has another key. Without another key the line is out and has its own alert.
func (l *Lines) confirmRefusal(k *lineKey, cause string, hasOther bool) {
	if k.entry.stats.keys.add(k, l.now(), cause) && hasOther {
		l.log.Warn("line: a key is refused, and the next one is used", "line", k.entry.line.ID, "key", k.name(), "cause", cause)
		l.alertKey(k, alertKeyRefused, cause)
	}
}

// acceptKey deletes the refusal of a key, with a log line and an alert.
func (l *Lines) acceptKey(k *lineKey) {
	if k.entry.stats.keys.drop(k) {
		l.log.Info("line: a key is accepted again", "line", k.entry.line.ID, "key", k.name())
		l.alertKey(k, alertKeyAccepted, "")
	}
}

// alertKey sends the alert of a refused or accepted key.
func (l *Lines) alertKey(k *lineKey, state, cause string) {
	l.publishKey(k, alert.Alert{Line: k.entry.line.ID, Key: k.name(), State: state, Cause: cause, At: l.now().Unix()})
}

// newestOf returns the entry's line in the newest catalog. It returns nil if the line was removed,
// has moved to another provider, or cannot be used.
func (l *Lines) newestOf(entry *routingEntry) *routingEntry {
	table := l.newestTable.Load()
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
