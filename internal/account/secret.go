package account

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"
)

// A key's secret is `sk-` and 256 random bits in base 62, which a double click
// selects whole.
const (
	secretPrefix = "sk-"
	secretDigits = 43 // 62^43 > 2^256
	secretLength = len(secretPrefix) + secretDigits
)

// Lengths of secrets in bytes, of other programs' too (see ImportKeyTx): what they
// make has 128 random bits or more, and what is shorter somebody made up.
const (
	minSecret = 20
	maxSecret = 200
)

// digest is the SHA-256 of a secret: what is stored and looked up. A secret of
// random bits needs no salt and no slow hash.
type digest [sha256.Size]byte

// digestOf returns the digest of a well-formed secret. The copy lies on the
// stack: this runs for every request.
func digestOf(secret string) digest {
	var raw [maxSecret]byte
	return sha256.Sum256(raw[:copy(raw[:], secret)])
}

// String returns the digest as the column holds it.
func (d digest) String() string { return hex.EncodeToString(d[:]) }

// newSecret makes a secret.
func newSecret() string {
	var raw [32]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	digits := new(big.Int).SetBytes(raw[:]).Text(62)
	return secretPrefix + strings.Repeat("0", secretDigits-len(digits)) + digits
}

// wellFormed tells whether a text may be a secret: of ours, or of a program whose
// keys were imported. What may not is unknown without asking anybody.
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

// HintOf is what lists show of a secret, which must be as long as one: enough for its
// owner to recognise it and far too little to guess it.
func HintOf(secret string) string {
	return secret[:len(secretPrefix)+4] + "..." + secret[len(secret)-4:]
}
