package account

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"
)

// A key's secret is `sk-` and 256 random bits in base 62, so that a double click selects the whole
// secret.
const (
	secretPrefix = "sk-"
	secretDigits = 43 // 62^43 > 2^256
	secretLength = len(secretPrefix) + secretDigits
)

// Lengths of secrets in bytes, including secrets of other programs (see ImportKeyTx). Programs
// generate at least 128 random bits, so a shorter secret was typed by a person.
const (
	minSecret = 20
	maxSecret = 200
)

// digest is the SHA-256 of a secret, for storage and lookup. A secret of random bits needs no salt
// and no slow hash.
type digest [sha256.Size]byte

// digestOf returns the digest of a well-formed secret. The copy is on the stack, because digestOf
// runs for every request.
func digestOf(secret string) digest {
	var raw [maxSecret]byte
	return sha256.Sum256(raw[:copy(raw[:], secret)])
}

// String returns the stored form of the digest.
func (d digest) String() string { return hex.EncodeToString(d[:]) }

// newSecret returns a new secret.
func newSecret() string {
	var raw [32]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	digits := new(big.Int).SetBytes(raw[:]).Text(62)
	return secretPrefix + strings.Repeat("0", secretDigits-len(digits)) + digits
}

// wellFormed reports whether secret has the length and characters of a secret, including secrets of
// other programs. Other texts are rejected without a query.
func wellFormed(secret string) bool {
	if len(secret) < minSecret || len(secret) > maxSecret {
		return false
	}
	for _, c := range []byte(secret) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// HintOf returns the first and last characters of a secret, so that the owner can recognise the key
// in lists. The secret must not be shorter than minSecret.
func HintOf(secret string) string {
	return secret[:len(secretPrefix)+4] + "..." + secret[len(secret)-4:]
}
