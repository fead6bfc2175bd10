package tree

import (
	"strconv"
	"strings"
	"unicode"
)

// PathKey writes a key as a path shows it: shortened, and quoted where it
// would not read as one word.
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
