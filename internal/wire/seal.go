package wire

import (
	"bytes"
	"fmt"
)

// State is encrypted reasoning or a signature in a provider's answer, the contents of a JSON string. Clients
// send state back in later requests, but only the provider account of the answer can read it. So the gateway
// puts a seal with a hash of the account before the state.

const (
	// SealPrefix starts every seal and every sealed id.
	SealPrefix = "tg1"
	// SealMark starts a seal. Lines get only the content after the seal.
	SealMark = SealPrefix + "."
	// SealedIDMark starts the id of a tool call that carries the reasoning before the call. Lines get
	// the id inside it.
	SealedIDMark = SealPrefix + "-"
)

// SealOf returns the seal of an account (Identity.Origin).
func SealOf(origin string) []byte {
	sum := Hash(origin)
	return fmt.Appendf(nil, "%s%08x.", SealMark, uint32(sum^sum>>32))
}

// Seal returns the seal of an account followed by data, or nil if data is empty.
func Seal(data []byte, origin string) []byte {
	if len(data) == 0 {
		return nil
	}
	return append(SealOf(origin), data...)
}

// OpenSeal returns the state after the seal of an account, or nil if sealed has no seal or another account's.
func OpenSeal(sealed []byte, origin string) []byte {
	data, ok := bytes.CutPrefix(sealed, SealOf(origin))
	if !ok || len(data) == 0 {
		return nil
	}
	return data
}

// IsSealed reports whether data starts with the seal of any account.
func IsSealed(data []byte) bool { return bytes.HasPrefix(data, []byte(SealMark)) }
