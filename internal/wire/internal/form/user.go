package form

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"tollgate/internal/wire/rawjson"
)

// mailAddress finds an e-mail address.
var mailAddress = regexp.MustCompile(`[^\s@]@[^\s@]+\.[^\s@]`)

// EndUser returns a client's name of its end user, a JSON string, for a provider that rejects
// personal data: a name with an e-mail address is replaced by its SHA-256 in hexadecimal digits.
func EndUser(raw []byte) []byte {
	name := rawjson.Unquote(raw)
	if !mailAddress.MatchString(name) {
		return raw
	}
	sum := sha256.Sum256([]byte(name))
	return rawjson.Quote(hex.EncodeToString(sum[:]))
}
