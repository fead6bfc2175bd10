package form

import (
	"slices"
	"strings"

	"tollgate/internal/fault"
)

// CheckName is Request.CheckCase for one key, among fields that may have capitals.
func CheckName(name string, fields []string) error {
	if slices.Contains(fields, name) {
		return nil
	}
	for _, field := range fields {
		if strings.EqualFold(field, name) {
			return fault.At(fault.InvalidRequest, name, "`%s` is the field `%s` in another case. Write it like this, or leave it out.", name, field)
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
