package rawjson

import (
	"bytes"
	"unicode/utf8"
)

// KeyRules lists the keys that the checks of a form look for anywhere in a body.
// The gate sees every key anyway, so a check needs no walk of its own.
type KeyRules struct {
	// Reads reports whether a check reads a key of this name. The gate reports
	// a key that equals such a name only without regard to case.
	Reads func(name []byte) (spelling string, ok bool)
	// Notes reports whether the place of a key of this name goes into
	// RequestBody.Noted.
	Notes func(name []byte) bool
	// Free reports whether the client names the members of the value behind a
	// key as it likes (tool schemas, arguments). Nothing inside is reported.
	// A key of the body itself has depth 0.
	Free func(name []byte, depth int) bool
}

const (
	// maxNoted is how many noted keys a body may have.
	maxNoted = 1 << 14
	// maxCapitals is how many keys with capital letters an object outside of
	// free values may have. The search for keys that fold to the same name
	// compares each with all others.
	maxCapitals = 256
)

// Alike is a key that equals another key, or a name that a check reads, only
// without regard to case.
type Alike struct {
	At       int    // the place of the key in the body
	Spelling string // the name that it folds to
}

// watched is what the gate has seen of the keys of KeyRules.
type watched struct {
	KeyRules
	noted    []int
	alike    *Alike
	capitals []int // places in openKeys.keys, of the objects that are open
	tooMany  bool
	checked  int // open objects, from the outermost, that are known not to be free
	freeFrom int // how many objects are open inside the outermost free value; 0 if there is none
}

// look reports the newest key, which stands at from in the body.
func (o *openKeys) look(name []byte, from int) {
	w := o.watched
	first := o.objects[len(o.objects)-1]
	plain := IsPlainName(name)
	siblings := w.siblings(first)
	noted := w.Notes(name)
	if plain && !noted && len(siblings) == 0 || o.isFree() {
		return
	}
	if noted {
		if len(w.noted) >= maxNoted {
			w.tooMany = true
			return
		}
		w.noted = append(w.noted, from)
	}
	if w.alike != nil {
		return
	}
	if plain {
		for _, i := range siblings {
			if bytes.EqualFold(o.keys[i].name, name) {
				w.alike = &Alike{from, string(o.keys[i].name)}
			}
		}
		return
	}
	if spelling, ok := w.Reads(name); ok && len(o.objects) > 1 {
		w.alike = &Alike{from, spelling}
		return
	}
	last := len(o.keys) - 1
	for _, key := range o.keys[first:last] {
		if bytes.EqualFold(key.name, name) {
			w.alike = &Alike{from, string(key.name)}
			return
		}
	}
	if w.capitals = append(w.capitals, last); len(siblings) >= maxCapitals {
		w.tooMany = true
		w.alike = &Alike{} // nothing more is compared
	}
}

// IsPlainName reports whether a name is ASCII without capital letters, so that
// no other such name equals it without regard to case.
func IsPlainName(name []byte) bool {
	for _, c := range name {
		if c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// siblings returns the keys with capitals of the innermost object, whose keys
// begin at first.
func (w *watched) siblings(first int) []int {
	n := len(w.capitals)
	for n > 0 && w.capitals[n-1] >= first {
		n--
	}
	return w.capitals[n:]
}

// isFree reports whether the innermost open object lies in a free value.
func (o *openKeys) isFree() bool {
	w := o.watched
	for ; w.freeFrom == 0 && w.checked < len(o.objects); w.checked++ {
		if depth := w.checked - 1; depth >= 0 && w.Free(o.keys[o.objects[w.checked]-1].name, depth) {
			w.freeFrom = w.checked + 1
		}
	}
	return w.freeFrom > 0
}

// leave forgets an object, of which open others are left and whose keys begin
// at first.
func (w *watched) leave(open, first int) {
	w.capitals = w.capitals[:len(w.capitals)-len(w.siblings(first))]
	w.checked = min(w.checked, open)
	if w.freeFrom > open {
		w.freeFrom = 0
	}
}

// Alike returns the first key that equals another one, or a name that a check
// reads, only without regard to case; nil if there is none. Keys at the top
// level are compared with each other alone.
func (d *RequestBody) Alike() *Alike { return d.alike }

// Noted yields the places of the noted keys, and their values. A member that is
// null is left out.
func (d *RequestBody) Noted(yield func(at int, value []byte) bool) {
	for _, at := range d.noted {
		i := SkipSpace(d.Body, SkipText(d.Body, at)) // the colon
		from := SkipSpace(d.Body, i+1)
		if value := Present(d.Body[from:skipValue(d.Body, from)]); value != nil && !yield(at, value) {
			return
		}
	}
}

// NameAt returns the key at a place, without escapes.
func (d *RequestBody) NameAt(at int) []byte { return unquoteKey(d.Body, at) }

// PathTo returns the path of the key at a place: `messages[2].content[0].type`.
func (d *RequestBody) PathTo(at int) string { return pathTo(d.Body, at) }
