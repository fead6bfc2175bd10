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
