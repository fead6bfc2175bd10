package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxKeys bounds the keys of a line: two while one replaces the other, and some more.
const MaxKeys = 8

// LineKey is one of a line's credentials as a node has it.
type LineKey struct {
	// Reference is what stands for it in the document; empty: the line needs none.
	Reference string
	// Why says why this node does not have it; empty when it does.
	Why string

	value func() string // a function, so that printing a key cannot show it
}

// newKey is what a reference stands for on this node.
func newKey(reference string, lookup func(string) (string, bool)) LineKey {
	k := LineKey{Reference: reference}
	value, why := Resolve(strings.TrimSuffix(strings.TrimPrefix(reference, "${"), "}"), lookup)
	k.Why, k.value = why, func() string { return value }
	return k
}

// Keys are what references stand for on this node, which must have one of them: else
// why says why it has none.
func Keys(references []string, lookup func(string) (string, bool)) (all []LineKey, why string) {
	var reasons []string
	for _, reference := range references {
		k := newKey(reference, lookup)
		all = append(all, k)
		if k.Why != "" {
			reasons = append(reasons, k.Why)
		}
	}
	if len(reasons) < len(all) {
		return all, ""
	}
	return nil, strings.Join(reasons, ", and ")
}

// Value is the credential itself, empty where the node does not have it.
func (k LineKey) Value() string {
	if k.value == nil {
		return ""
	}
	return k.value()
}

// Bounds of what is told of a key.
const (
	markBytes = 8
	hintChars = 4
	minHinted = 20 // characters of a key whose last ones are told
)

// Mark tells a key from others and does not lead back to it: the beginning of its
// digest, in hexadecimal digits. It is empty for no key.
func (k LineKey) Mark() string {
	value := k.Value()
	if value == "" {
		return ""
	}
	digest := sha256.Sum256([]byte("tollgate line key\n" + value))
	return hex.EncodeToString(digest[:markBytes])
}

// Hint is by which a person knows a key: its last four characters, as providers show
// them. It is empty for one that is short, or no single word.
func (k LineKey) Hint() string {
	value := k.Value()
	if len(value) < minHinted || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
		return ""
	}
	return "…" + value[len(value)-hintChars:]
}

// Keep gives keys that could not be read again the values that they had, and says
// why they could not.
func Keep(had, now []LineKey) (why []string) {
	for i := range now {
		if i < len(had) && now[i].Why != "" && had[i].Why == "" && had[i].Reference == now[i].Reference {
			why = append(why, now[i].Why)
			now[i] = had[i]
		}
	}
	return why
}
