// Package id owns the identifiers of everything tollgate stores: a prefix
// that names the kind and 26 characters that sort by the time they were made
// (`req_01k9…`). Invariant: two identifiers never repeat, also across nodes,
// since 80 of their bits are random.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// alphabet is Crockford's base 32 in lower case: it sorts as it counts and
// leaves out letters that people misread.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// New returns prefix followed by 26 characters: 48 bits of the time in
// milliseconds, then 80 random bits. Identifiers of one prefix sort by the
// millisecond in which they were made; within one they have no order.
func New(prefix string) string { return At(prefix, time.Now()) }

// At is New for a given time, for callers that own their clock.
func At(prefix string, now time.Time) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(now.UnixMilli())<<16)
	rand.Read(raw[6:]) // never fails (crypto/rand)
	hi, lo := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	out := make([]byte, len(prefix)+26)
	copy(out, prefix)
	for i := len(out) - 1; i >= len(prefix); i-- {
		out[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out)
}
