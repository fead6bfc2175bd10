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
	if len(rawjson.Contents(encrypted)) == 0 {
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

// SealedSignature returns the signature of a thought that came with a call of chat
// completions, as Gemini's have it, sealed like a provider's encrypted reasoning.
// Nil when there is none.
func SealedSignature(id wire.Identity, call []byte) []byte {
	return Sealed(id, rawjson.Field(rawjson.Field(rawjson.Field(call, "extra_content"), "google"), "thought_signature"))
}

// AppendSignature appends to the members of a call of chat completions the
// signature that a client carried under a seal, the inside of a JSON string:
// nothing where another line has sealed it, or nobody.
func AppendSignature(dst []byte, id wire.Identity, sealed []byte) []byte {
	signature, ok := unseal(sealOf(id), sealed)
	if !ok {
		return dst
	}
	return rawjson.Put(dst, `,"extra_content":{"google":{"thought_signature":"`, signature, `"}}`)
}
