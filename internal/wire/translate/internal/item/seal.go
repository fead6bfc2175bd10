package item

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// What a model of the responses form has thought comes encrypted, and only the
// account that it was encrypted for can read it. Clients carry it in a place of
// their own form, under a seal that tells for whom it is.

// sealMark begins every seal.
const sealMark = wire.SealMark

// sealOf is the seal of what comes from a line.
func sealOf(id wire.Identity) string {
	sum := wire.Hash(id.Origin)
	return fmt.Sprintf("%s%08x.", sealMark, uint32(sum^sum>>32))
}

// Sealed returns a provider's encrypted reasoning, a JSON string, as the client
// gets it: the inside of a JSON string. Nil when there is none.
func Sealed(id wire.Identity, encrypted []byte) []byte {
	if len(rawjson.Inside(encrypted)) == 0 {
		return nil
	}
	return piece.AppendInside([]byte(sealOf(id)), encrypted)
}

// unseal returns what was encrypted under a seal, as the inside of a JSON string;
// false for what has another seal, or none.
func unseal(seal string, sealed []byte) ([]byte, bool) {
	encrypted, ok := bytes.CutPrefix(sealed, []byte(seal))
	return encrypted, ok && seal != "" && len(encrypted) > 0
}
