package tree

import (
	"strconv"
	"strings"
	"unicode"
)

// PathKey returns a key as it appears in a path. Long keys are shortened, and keys that are not a
// single word are quoted.
func PathKey(key string) string {
	if len(key) > 40 {
		key = strings.ToValidUTF8(key[:40], "") + "…"
	}
	if key == "" || strings.ContainsFunc(key, func(c rune) bool {
		return c == '.' || c == '"' || c == '[' || c == ':' || unicode.IsSpace(c) || !unicode.IsPrint(c)
	}) {
		return strconv.Quote(key)
	}
	return key
}
