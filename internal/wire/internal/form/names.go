package form

import (
	"slices"
	"strings"
)

// CheckName rejects a name that differs from one of fields only in case.
func CheckName(name string, fields []string) error {
	if slices.Contains(fields, name) {
		return nil
	}
	for _, field := range fields {
		if strings.EqualFold(field, name) {
			return OtherCase(name, field)
		}
	}
	return nil
}
