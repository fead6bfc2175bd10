package rawjson

import (
	"bytes"
	"unicode/utf8"
)

// KeyRules lists the keys and strings a form looks for anywhere in a body. The gate visits them all
// anyway, so a check needs no pass of its own.
type KeyRules struct {
	// RequestBody.HasPrefix reports whether a string other than a key starts with Prefix.
	Prefix string
	// RequestBody.MayHaveFiles reports whether a string other than a key starts with FilePrefix, or a key is
	// one of FileKeys.
	FilePrefix string
	FileKeys   [2]string
	// Spelling reports whether a check reads a key equal to name except for case, and returns the
	// key. Such a name is a KeyConflict.
	Spelling func(name []byte) (spelling string, ok bool)
	// Match reports whether RequestBody.Matches yields a key.
	Match func(name []byte) bool
	// Free reports whether the client chooses the names inside the value of a key (tool schemas,
	// arguments). Keys inside are ignored. A top-level key has depth 0.
	Free func(name []byte, depth int) bool
}

const (
	// maxMatches is the largest number of matches in a body.
	maxMatches = 1 << 14
	// maxCapitals is the largest number of keys with capital letters in an object outside free
	// values. Each of them is compared with all other keys.
	maxCapitals = 256
)

// KeyConflict is a key equal to another key, or to a name read by a check, except for case.
type KeyConflict struct {
	At       int    // offset of the key in the body
	Spelling string // the other key or name
}

// keyWatch is the state of the search for the keys of KeyRules.
type keyWatch struct {
	KeyRules
	matches  []int
	fileKey  bool // one of FileKeys was found
	similar  *KeyConflict
	capitals []int // indexes in openKeys.keys of keys with capitals in open objects
	tooMany  bool
	checked  int // number of open objects, from the outermost, known not to be free
	freeFrom int // number of open objects up to the outermost free value, or 0
}

// check applies the rules to the newest key, which starts at from in the body.
func (o *openKeys) check(name []byte, from int) {
	w := o.watch
	w.fileKey = w.fileKey || string(name) == w.FileKeys[0] || string(name) == w.FileKeys[1]
	first := o.objects[len(o.objects)-1]
	plain := IsPlainName(name)
	siblings := w.siblings(first)
	match := w.Match(name)
	if plain && !match && len(siblings) == 0 || o.isFree() {
		return
	}
	if match {
		if len(w.matches) >= maxMatches {
			w.tooMany = true
			return
		}
		w.matches = append(w.matches, from)
	}
	if w.similar != nil {
		return
	}
	if plain {
		for _, i := range siblings {
			if bytes.EqualFold(o.keys[i].name, name) {
				w.similar = &KeyConflict{from, string(o.keys[i].name)}
			}
		}
		return
	}
	if spelling, ok := w.Spelling(name); ok && len(o.objects) > 1 {
		w.similar = &KeyConflict{from, spelling}
		return
	}
	last := len(o.keys) - 1
	for _, key := range o.keys[first:last] {
		if bytes.EqualFold(key.name, name) {
			w.similar = &KeyConflict{from, string(key.name)}
			return
		}
	}
	if w.capitals = append(w.capitals, last); len(siblings) >= maxCapitals {
		w.tooMany = true
		w.similar = &KeyConflict{} // stops further comparisons
	}
}

// IsPlainName reports whether a name is ASCII without capital letters. No two such names differ in
// case only.
func IsPlainName(name []byte) bool {
	for _, c := range name {
		if c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// siblings returns the keys with capitals of the innermost object, whose keys start at first.
func (w *keyWatch) siblings(first int) []int {
	n := len(w.capitals)
	for n > 0 && w.capitals[n-1] >= first {
		n--
	}
	return w.capitals[n:]
}

// isFree reports whether the innermost object is inside a free value.
func (o *openKeys) isFree() bool {
	w := o.watch
	for ; w.freeFrom == 0 && w.checked < len(o.objects); w.checked++ {
		if depth := w.checked - 1; depth >= 0 && w.Free(o.keys[o.objects[w.checked]-1].name, depth) {
			w.freeFrom = w.checked + 1
		}
	}
	return w.freeFrom > 0
}

// leave closes the innermost object, whose keys start at first. open is the number of objects still
// open.
func (w *keyWatch) leave(open, first int) {
	w.capitals = w.capitals[:len(w.capitals)-len(w.siblings(first))]
	w.checked = min(w.checked, open)
	if w.freeFrom > open {
		w.freeFrom = 0
	}
}

// SimilarKey returns the first conflict, or nil. Top-level keys are compared only with each other.
func (d *RequestBody) SimilarKey() *KeyConflict { return d.similar }

// Matches yields the offsets and values of the matching keys, except null values.
func (d *RequestBody) Matches(yield func(at int, value []byte) bool) {
	for _, at := range d.matches {
		i := SkipSpace(d.Body, SkipText(d.Body, at)) // the colon
		from := SkipSpace(d.Body, i+1)
		if value := NonNull(d.Body[from:skipValue(d.Body, from)]); value != nil && !yield(at, value) {
			return
		}
	}
}

// MayHaveFiles reports whether the body has one of KeyRules.FileKeys, or a string that starts with
// KeyRules.FilePrefix, written without escapes.
func (d *RequestBody) MayHaveFiles() bool { return d.mayHaveFiles }

// HasPrefix reports whether a string starts with KeyRules.Prefix, written without escapes.
func (d *RequestBody) HasPrefix() bool { return d.hasPrefix }

// NameAt returns the key at an offset, without escapes.
func (d *RequestBody) NameAt(at int) []byte { return unquoteKey(d.Body, at) }

// PathTo returns the path of the key at an offset: `messages[2].content[0].type`.
func (d *RequestBody) PathTo(at int) string { return pathTo(d.Body, at) }
