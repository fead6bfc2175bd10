package gemini

import (
	"encoding/base64"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// A thoughtSignature is bytes in base64, and Google's clients decode and encode it, some in the alphabet
// for URLs. Every client returns the signature of a call. So the reasoning of other lines before a call
// travels there, packed like the state in ids of calls (conversation.SealID). If the model has lines of
// several accounts, Google's own signatures are under the seal of the account (wire.Seal), packed too.

// sealPrefix starts such a signature: wire.SealPrefix in base64, of three bytes.
var sealPrefix = base64.StdEncoding.EncodeToString([]byte(wire.SealPrefix))

// sealState returns reasoning as a thoughtSignature, the contents of a JSON string, or nil if there is no
// reasoning or too much of it.
func sealState(state []conversation.Part) []byte {
	packed := conversation.SealID("", state)
	if packed == "" {
		return nil
	}
	return base64.StdEncoding.AppendEncode(nil, []byte(packed))
}

// unpack returns the data that the gateway packed in a thoughtSignature, a JSON string. It returns nil for
// Google's own signature.
func unpack(signature []byte) []byte {
	if !strings.HasPrefix(string(rawjson.Contents(signature)), sealPrefix) {
		return nil
	}
	text := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(rawjson.Unquote(signature))
	packed, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return packed
}

// openState returns the reasoning of another line in a thoughtSignature, a JSON string, or nil.
func openState(signature []byte) []conversation.Part {
	_, state := conversation.OpenID(string(unpack(signature)))
	return state
}

// SealSignature returns a signature of Google's, a JSON string, under the seal of an account.
func SealSignature(signature []byte, origin string) []byte {
	sealed := wire.Seal([]byte(rawjson.Unquote(signature)), origin)
	return rawjson.Quote(base64.StdEncoding.EncodeToString(sealed))
}
