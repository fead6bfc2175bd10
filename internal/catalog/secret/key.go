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
	// Reference is the key's reference in the document; empty if the line needs none.
	Reference string
	// MissingReason is the reason if the key is missing on this node, otherwise empty.
	MissingReason string

	value func() string // a function, to keep the value out of a printed key
}

// newKey resolves a reference on this node.
func newKey(reference string, lookup func(string) (string, bool)) LineKey {
	k := LineKey{Reference: reference}
	value, reason := Resolve(strings.TrimSuffix(strings.TrimPrefix(reference, "${"), "}"), lookup)
	k.MissingReason, k.value = reason, func() string { return value }
	return k
}

// Keys resolves references on this node. If the node has none of the keys, why is the reason.
func Keys(references []string, lookup func(string) (string, bool)) (all []LineKey, reason string) {
	var reasons []string
	for _, reference := range references {
		k := newKey(reference, lookup)
		all = append(all, k)
		if k.MissingReason != "" {
			reasons = append(reasons, k.MissingReason)
		}
	}
	if len(reasons) < len(all) {
		return all, ""
	}
	return nil, strings.Join(reasons, ", and ")
}

// Value returns the credential, or the empty string if it is missing on the node.
func (k LineKey) Value() string {
	if k.value == nil {
		return ""
	}
	return k.value()
}

// Bounds of the parts of a key that may be shown.
const (
	fingerprintBytes = 8
	hintChars        = 4
	minHintLength    = 20 // minimum length in characters of a key with a hint
)

// Mark identifies a key without revealing it: the beginning of its digest in hexadecimal digits. It
// is empty without a value.
func (k LineKey) Fingerprint() string {
	value := k.Value()
	if value == "" {
		return ""
	}
	digest := sha256.Sum256([]byte("tollgate line key\n" + value))
	return hex.EncodeToString(digest[:fingerprintBytes])
}

// Hint returns the last four characters of a key, as shown by providers, for people to recognise
// the key. It is empty for a key with fewer than minHinted characters or not a single word.
func (k LineKey) Hint() string {
	value := k.Value()
	if len(value) < minHintLength || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
		return ""
	}
	return "…" + value[len(value)-hintChars:]
}

// KeepUnreadable gives unreadable keys their former values and returns the reasons.
func KeepUnreadable(old, current []LineKey) (reasons []string) {
	for i := range current {
		if i < len(old) && current[i].MissingReason != "" && old[i].MissingReason == "" && old[i].Reference == current[i].Reference {
			reasons = append(reasons, current[i].MissingReason)
			current[i] = old[i]
		}
	}
	return reasons
}
