package account

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what RFC 6238 and authenticator apps compute
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
)

// Parameters of the codes of authenticator apps (RFC 6238 with its defaults).
const (
	totpStepMS  = 30_000
	totpDigits  = 6
	totpModulus = 1_000_000
	totpSecret  = 20 // bytes, as many as SHA-1 has
	totpSkew    = 1  // tolerated steps between an app's clock and ours
)

// totpEncoding is the encoding of a secret for apps and people.
var totpEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newTOTPSecret returns a new secret of 160 bits, in base32.
func newTOTPSecret() string {
	var raw [totpSecret]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	return totpEncoding.EncodeToString(raw[:])
}

// totpCode returns the code of a step, by RFC 4226 with the step as the counter.
func totpCode(secret []byte, step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step)) //nolint:gosec // steps count from 1970
	mac := hmac.New(sha1.New, secret)
	mac.Write(counter[:]) // never fails (hash.Hash)
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xf
	number := binary.BigEndian.Uint32(sum[offset:offset+4]) & 0x7fff_ffff
	return fmt.Sprintf("%0*d", totpDigits, number%totpModulus)
}

// totpMatch returns the step of a typed code. It accepts the current step and its two neighbours, but
// only steps later than lastStep. Every candidate is compared, in constant time.
func totpMatch(secret []byte, code string, nowMS, lastStep int64) (step int64, ok bool) {
	now := nowMS / totpStepMS
	for candidate := now - totpSkew; candidate <= now+totpSkew; candidate++ {
		same := subtle.ConstantTimeCompare([]byte(totpCode(secret, candidate)), []byte(code)) == 1
		if same && candidate > lastStep {
			step, ok = candidate, true
		}
	}
	return step, ok
}
