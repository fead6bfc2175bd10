package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxKeys bounds the keys of a line. A rotation needs two.
const MaxKeys = 8

// LineKey is a credential of a line on this node.
type LineKey struct {
	// Reference is the key's reference in the document.
	Reference string
	// MissingReason says why the key is missing on this node, or is empty.
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

// Keys resolves references on this node. If the node has none of the keys, Keys returns only the
// reason.
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

// Value returns the credential, or "" if the key is missing on this node.
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
	minHintLength    = 20 // shorter keys have no hint
)

// Fingerprint identifies the key without revealing it. It returns the beginning of the key's digest
// in hexadecimal digits, or "" if the key is missing.
func (k LineKey) Fingerprint() string {
	value := k.Value()
	if value == "" {
		return ""
	}
	digest := sha256.Sum256([]byte("tollgate line key\n" + value))
	return hex.EncodeToString(digest[:fingerprintBytes])
}

// Hint returns the last four characters of a key, for people to recognise the key in the provider's
// console. Keys shorter than minHintLength or not a single word have no hint.
func (k LineKey) Hint() string {
	value := k.Value()
	if len(value) < minHintLength || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
		return ""
	}
	return "…" + value[len(value)-hintChars:]
}

// KeepUnreadable restores the old values of unreadable keys in current, and returns the reasons. It
// skips keys from stored secrets, because such a key is unreadable only after an operator has deleted
// its secret.
func KeepUnreadable(old, current []LineKey) (reasons []string) {
	for i := range current {
		if i < len(old) && current[i].MissingReason != "" && old[i].MissingReason == "" && old[i].Reference == current[i].Reference &&
			StoredName(current[i].Reference) == "" {
			reasons = append(reasons, current[i].MissingReason)
			current[i] = old[i]
		}
	}
	return reasons
}
