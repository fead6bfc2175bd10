// Package vault owns the secrets of lines in the database. A line refers to a secret as `${secret:NAME}`.
//
// Invariants: a secret is stored only as ciphertext, under a key of the installation outside the
// database; a ciphertext belongs to the name of its secret, so a copied row does not decrypt; no
// error, list or message contains a secret.
package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KeyBytes is the size of a key of the installation.
const KeyBytes = 32

// maxKeys bounds the keys of a node. A rotation needs two.
const maxKeys = 8

// markBytes is the size of a key's digest in its mark.
const markBytes = 4

// KeyRing holds the keys of the installation on a node. The first key encrypts, and all decrypt. The zero
// value has no key and can neither store nor read secrets.
type KeyRing struct{ all []key }

// key is one key. mark identifies the key without revealing it.
type key struct {
	mark string
	aead cipher.AEAD
	mac  []byte // the key of digests
}

// ParseKeys reads keys in base64, separated by white space. No error contains a key.
func ParseKeys(text string) (KeyRing, error) {
	var k KeyRing
	for _, word := range strings.Fields(text) {
		raw, err := base64.StdEncoding.DecodeString(word)
		if err != nil || len(raw) != KeyBytes {
			return KeyRing{}, fmt.Errorf("must be a key of %d bytes in base64, as `openssl rand -base64 %d` prints it, or several, one a line",
				KeyBytes, KeyBytes)
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return KeyRing{}, fmt.Errorf("use a key: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return KeyRing{}, fmt.Errorf("use a key: %w", err)
		}
		digest := sha256.Sum256(append([]byte("tollgate secret key\n"), raw...))
		mac := sha256.Sum256(append([]byte("tollgate digest key\n"), raw...))
		k.all = append(k.all, key{hex.EncodeToString(digest[:markBytes]), aead, mac[:]})
	}
	switch {
	case len(k.all) == 0:
		return KeyRing{}, errors.New("is empty")
	case len(k.all) > maxKeys:
		return KeyRing{}, fmt.Errorf("has more than %d keys: remove the oldest, after `tollgate secret rotate`", maxKeys)
	}
	return k, nil
}

// Empty reports whether the node has no key, so that it can neither store nor read secrets.
func (k KeyRing) Empty() bool { return len(k.all) == 0 }

// seal encrypts a secret with the first key. The result consists of the key's mark, a colon and the ciphertext
// in base64.
func (k KeyRing) seal(name, value string) string {
	first := k.all[0]
	return first.mark + ":" + base64.StdEncoding.EncodeToString(first.aead.Seal(nil, nil, []byte(value), associated(name)))
}

// open decrypts a stored secret. If decryption is impossible, reason says why.
func (k KeyRing) open(name, sealed string) (value, reason string) {
	mark, text, _ := strings.Cut(sealed, ":")
	i := slices.IndexFunc(k.all, func(key key) bool { return key.mark == mark })
	switch {
	case k.Empty():
		return "", fmt.Sprintf("the secret %s cannot be decrypted on this node: set secret_key_file to the file with the key of the installation",
			name)
	case i < 0:
		return "", fmt.Sprintf("the secret %s cannot be decrypted on this node: it is encrypted with key %s, and secret_key has %s. "+
			"Add that key, or store the secret again", name, mark, k.Marks())
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		raw, err = k.all[i].aead.Open(nil, nil, raw, associated(name))
	}
	if err != nil {
		return "", fmt.Sprintf("the secret %s cannot be decrypted on this node: its row in the database was changed. "+
			"Store the secret again", name)
	}
	return string(raw), ""
}

// associated returns the data binding a ciphertext to the name of its secret.
func associated(name string) []byte { return []byte("tollgate secret\n" + name) }

// Digest returns a digest of a text under the first key, and the mark of the key. Without the key, the
// text cannot be guessed from its digest. There must be a key.
func (k KeyRing) Digest(text string) (mark string, digest []byte) {
	h := hmac.New(sha256.New, k.all[0].mac)
	_, _ = h.Write([]byte(text)) // never fails
	return k.all[0].mark, h.Sum(nil)
}

// Marks lists the marks of the keys.
func (k KeyRing) Marks() string {
	var all []string
	for _, key := range k.all {
		all = append(all, key.mark)
	}
	return strings.Join(all, ", ")
}
