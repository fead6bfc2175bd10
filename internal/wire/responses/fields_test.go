package responses

import (
	"strings"
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldsInOtherCaseAreRefused: every field that is read or owned.
func TestFieldsInOtherCaseAreRefused(t *testing.T) {
	t.Parallel()
	wiretest.RefusesOtherCase(t, fields.Names(), func(member string) error {
		r, err := Open([]byte(strings.Replace(`{"input":"x"}`, "{", "{"+member+",", 1)))
		if err == nil {
			err = r.Check()
		}
		return err
	})
}

// TestFieldListIsWhole: what is read at the top level, here and by the
// translators of the form, stands in the list.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 20, fields.Names(), "*.go", "../translate/internal/responseschat/*.go")
}
