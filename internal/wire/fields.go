package wire

import (
	"slices"
	"strings"

	"tollgate/internal/fault"
)

// checkCase refuses a top-level key that is one of fields but for case, folded
// as many servers fold it (`Model`, `ſtream`): they would obey it, the last of
// several winning, and the gateway would not have read it. Fields are the names
// that the gateway reads, edits or refuses, none of which has a capital.
func (d *document) checkCase(fields []string) error {
	for i := range d.members {
		if name := d.members[i].name; !isLower(name) {
			if err := checkName(string(name), fields); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkName is checkCase for one key, among fields that may have capitals.
func checkName(name string, fields []string) error {
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
