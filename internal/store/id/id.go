// Package id owns the identifiers of all stored rows: a prefix for the kind and 26 characters that
// sort by creation time (`req_01k9…`). Invariant: no two identifiers are equal, even across nodes,
// because 64 bits of each identifier are random.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
)

// alphabet is Crockford's base 32 in lower case: it sorts by value and omits letters often misread.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// New returns prefix followed by 26 characters: 48 bits of the time in milliseconds, 16 bits of its
// fraction of a millisecond, and 64 random bits. Identifiers with one prefix from one process sort
// by creation if the process's clock distinguishes their times.
func New(prefix string) string { return At(prefix, time.Now()) }

// At is New for a given time, for callers with their own clock.
func At(prefix string, now time.Time) string {
	fraction := uint64(now.Nanosecond()%1e6) << 16 / 1e6
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(now.UnixMilli())<<16|fraction)
	rand.Read(raw[8:]) // never fails (crypto/rand)
	return prefix + encode(raw)
}

// First returns the lowest identifier of a millisecond: all identifiers created earlier sort before it,
// and no later identifier does.
func First(prefix string, at time.Time) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(max(0, at.UnixMilli()))<<16)
	return prefix + encode(raw)
}

// encode writes 128 bits as 26 characters.
func encode(raw [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	var out [26]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// packedText begins the packed form of a text that Pack cannot shorten. No identifier before the
// year 10889 packs to bytes with this prefix.
const packedText = 0xff

// Pack returns the 16 bytes of an identifier with this prefix. For any other text it returns the text
// after one extra byte, and for the empty text no bytes.
func Pack(prefix, text string) []byte {
	if text == "" {
		return []byte{}
	}
	raw := make([]byte, 16)
	name, ok := strings.CutPrefix(text, prefix)
	if ok && len(name) == 26 {
		var hi, lo uint64
		for i := range len(name) {
			digit := strings.IndexByte(alphabet, name[i])
			if digit < 0 {
				return append([]byte{packedText}, text...)
			}
			hi, lo = hi<<5|lo>>59, lo<<5|uint64(digit)
		}
		binary.BigEndian.PutUint64(raw[:8], hi)
		binary.BigEndian.PutUint64(raw[8:], lo)
		if raw[0] != packedText && name[0] <= '7' {
			return raw
		}
	}
	return append([]byte{packedText}, text...)
}

// Unpack returns the text packed by Pack.
func Unpack(prefix string, packed []byte) string {
	switch {
	case len(packed) == 0:
		return ""
	case packed[0] == packedText || len(packed) != 16:
		return string(packed[1:])
	}
	return prefix + encode([16]byte(packed))
}
