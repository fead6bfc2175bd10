package wire

import (
	"bytes"
	"fmt"
)

// A provider's encrypted reasoning or signature is readable only for the account it was made for.
// Clients carry it under a seal with a hash of the account. The state is the contents of a JSON string.

const (
	// SealPrefix starts all state of providers that clients carry for the gateway.
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

// Seal returns state under the seal of an account. It returns nil for no state.
func Seal(data []byte, origin string) []byte {
	if len(data) == 0 {
		return nil
	}
	return append(SealOf(origin), data...)
}

// OpenSeal returns the state under the seal of an account, or nil for other state.
func OpenSeal(sealed []byte, origin string) []byte {
	data, ok := bytes.CutPrefix(sealed, SealOf(origin))
	if !ok || len(data) == 0 {
		return nil
	}
	return data
}

// IsSealed reports whether state is under the seal of any account.
func IsSealed(data []byte) bool { return bytes.HasPrefix(data, []byte(SealMark)) }
