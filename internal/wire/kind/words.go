package kind

import (
	"strings"
	"unicode"
)

// Words returns the words of a text in lower case, for the sandbox.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}
