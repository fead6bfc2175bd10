package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"tollgate/internal/node"
)

// digestBytes is the size of a digest of a setting. Digests only find differences.
const digestBytes = 8

// digests returns the digests of the settings that must be equal on all nodes of a database. A secret has
// two entries: "set" or "unset", and a digest under the key of the installation (secret_key). If there is no
// such key, the digest is missing, because the secret could be guessed from the digest in a copy of the database.
func (s *Settings) digests() node.Digests {
	all := node.Digests{}
	for _, setting := range s.plain() {
		if setting.Local {
			continue
		}
		text := s.comparedText(setting.Key)
		switch {
		case setting.Key == "secret_key":
			all[setting.Key] = s.SecretKeys.Marks() // not secret: the database has a mark beside each secret
		case !setting.Secret:
			sum := sha256.Sum256([]byte(text))
			all[setting.Key] = hex.EncodeToString(sum[:digestBytes])
		default:
			all[setting.Key] = "unset"
			if text == "" {
				continue
			}
			all[setting.Key] = "set"
			if !s.SecretKeys.Empty() {
				mark, sum := s.SecretKeys.Digest(setting.Key + "\n" + text)
				all[setting.Key+"@"+mark] = hex.EncodeToString(sum[:digestBytes])
			}
		}
	}
	return all
}

// comparedText returns the text of a setting for its digest: the value, or the content of the named files.
func (s *Settings) comparedText(key string) string {
	text := s.texts[key]
	switch {
	case text == "":
	case key == "media" && strings.HasPrefix(text, "file:"):
		return "file:" // the same folder can have another path on each node
	case key == "brand_logo":
		return string(s.shop.logo)
	case key == "terms_file":
		return fmt.Sprint(s.legal.Terms)
	case key == "privacy_file":
		return fmt.Sprint(s.legal.Privacy)
	case key == "sign_in_with":
		return fmt.Sprint(s.SignInWith)
	}
	return text
}
