package form

import (
	"slices"
	"strings"
)

// CheckName refuses a key that is one of fields only without regard to case.
func CheckName(name string, fields []string) error {
	if slices.Contains(fields, name) {
		return nil
	}
	for _, field := range fields {
		if strings.EqualFold(field, name) {
			return otherCase(name, field)
		}
	}
	return nil
}

// isLower tells whether a name is all ASCII without capitals, so that it is no
// other such name in another case.
func isLower(name []byte) bool {
	for _, c := range name {
		if c >= 0x80 || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}
