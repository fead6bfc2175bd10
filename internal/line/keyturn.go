package line

import (
	"slices"

	"tollgate/internal/alert"
	"tollgate/internal/upstream"
)

// keyTurn is with which of a line's keys a call is made, and with which it was made
// before. A key that its provider refuses moves the call on to the next one: those of
// the catalog that the call goes by, and then those that the line has in the newest.
type keyTurn struct {
	lines   *Lines
	entry   *routingEntry
	key     *lineKey // to be used
	refused []refusedKey
	all     bool // the turn began when all keys were refused: any may be asked
	request bool // an account's request may have brought refusals about
}

// refusedKey is a key that was refused in a turn.
type refusedKey struct {
	key      *lineKey
	cause    string
	unproven bool
}

// turn begins with the first key of a line that is not known to be refused, or with
// the first one where all are; own is the mark of a key that comes before others.
func (l *Lines) turn(entry *routingEntry, own string) keyTurn {
	t := keyTurn{lines: l, entry: entry, key: entry.keys[0]}
	if len(entry.keys) > 1 || own != "" || entry.stats.keys.has(t.key) {
		t.key = t.next(own)
	}
	return t
}

// next returns the key to use next; nil: there is none.
func (t *keyTurn) next(own string) (first *lineKey) {
	keys := t.keys()
	refused := t.entry.stats.keys.has
	if len(t.refused) == 0 {
		t.all = !slices.ContainsFunc(keys, func(k *lineKey) bool { return !refused(k) })
	}
	for _, k := range keys {
		if !t.all && refused(k) || t.asked(k) {
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

// keys returns the keys that the call may use.
func (t *keyTurn) keys() []*lineKey {
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

// asked tells whether the call was made with a key.
func (t *keyTurn) asked(k *lineKey) bool {
	return slices.ContainsFunc(t.refused, func(r refusedKey) bool { return r.key.mark == k.mark })
}

// failed takes in a failure of the call. moved tells that the key alone is to blame
// and the call is to be made with the next one: f says nothing about the line then.
// Where there is no next one, f is proven of the line only if all of its keys are
// known to be refused. The line's credentials are gone from f afterwards.
func (t *keyTurn) failed(f *upstream.Failure) (moved bool) {
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

// answered takes in that the call was answered: what keys before were refused for was
// not the call's doing.
func (t *keyTurn) answered() {
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

// refuse holds a refusal against a key. A request may have brought the refusal about:
// then a probe decides, where one is possible.
func (t *keyTurn) refuse(k *lineKey, cause string, others bool) {
	if !t.request || k.entry.stats.unprobed.Load() {
		t.lines.refuse(k, cause, others)
		return
	}
	if k.entry.stats.keys.doubt(k, t.lines.now(), cause) {
		t.lines.wake()
	}
}

// refuse holds against a key that its provider refuses it, and tells so the first
// time, unless no other is left: then the line is out, which is told.
func (l *Lines) refuse(k *lineKey, cause string, others bool) {
	if k.entry.stats.keys.add(k, l.now(), cause) && others {
		l.log.Warn("line: a key is refused, and the next one is used", "line", k.entry.line.ID, "key", k.name(), "cause", cause)
		l.alertKey(k, alertKeyRefused, cause)
	}
}

// accept forgets what is held against a key, and tells so.
func (l *Lines) accept(k *lineKey) {
	if k.entry.stats.keys.drop(k) {
		l.log.Info("line: a key is accepted again", "line", k.entry.line.ID, "key", k.name())
		l.alertKey(k, alertKeyAccepted, "")
	}
}

// alertKey alerts that a key is refused, or accepted again.
func (l *Lines) alertKey(k *lineKey, state, cause string) {
	l.foundKey(k, alert.Alert{Line: k.entry.line.ID, Key: k.name(), State: state, Cause: cause, At: l.now().Unix()})
}

// newestOf returns a line as the newest catalog has it; nil: it does not have it, or
// not at the same provider, or it cannot be used.
func (l *Lines) newestOf(entry *routingEntry) *routingEntry {
	table := l.newest.Load()
	i := slices.IndexFunc(table.entries, func(e *routingEntry) bool { return e.line.ID == entry.line.ID })
	if i < 0 {
		return nil
	}
	newest := table.entries[i]
	if ln := newest.line; ln.Provider != entry.line.Provider || ln.BaseURL != entry.line.BaseURL || !ln.Enabled || ln.Out != "" {
		return nil
	}
	return newest
}
