package item

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// A responses model returns its reasoning encrypted, readable only for the account it was encrypted
// for. Clients carry it in a field of their own form, under a seal with a hash of the account.

// sealPrefix returns the seal of a line.
func sealPrefix(id wire.Identity) string {
	sum := wire.Hash(id.Origin)
	return fmt.Sprintf("%s%08x.", wire.SealMark, uint32(sum^sum>>32))
}

// Seal returns a provider's encrypted reasoning, a JSON string, under the seal of its line, as the
// contents of a JSON string. It returns nil without one.
func Seal(id wire.Identity, encrypted []byte) []byte {
	if len(rawjson.Contents(encrypted)) == 0 {
		return nil
	}
	return piece.AppendContents([]byte(sealPrefix(id)), encrypted)
}

// unseal returns the contents behind a seal, or false if sealed has another seal or none.
func unseal(seal string, sealed []byte) ([]byte, bool) {
	encrypted, ok := bytes.CutPrefix(sealed, []byte(seal))
	return encrypted, ok && seal != "" && len(encrypted) > 0
}

// SealSignature returns the sealed signature of a call of chat completions from Gemini, or nil.
func SealSignature(id wire.Identity, call []byte) []byte {
	return Seal(id, rawjson.Field(rawjson.Field(rawjson.Field(call, "extra_content"), "google"), "thought_signature"))
}

// AppendSignature appends a signature carried by a client under a seal, the contents of a JSON
// string, to the members of a call of chat completions. It appends nothing for another line's seal.
func AppendSignature(dst []byte, id wire.Identity, sealed []byte) []byte {
	signature, ok := unseal(sealPrefix(id), sealed)
	if !ok {
		return dst
	}
	return rawjson.Put(dst, `,"extra_content":{"google":{"thought_signature":"`, signature, `"}}`)
}
