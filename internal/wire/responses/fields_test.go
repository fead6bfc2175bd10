package responses

import (
	"strings"
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldsInOtherCaseAreRefused tests every field read or set by the gateway.
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

// TestFieldListIsWhole checks that the list contains every top-level field read by this package and
// the translators of the form.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 20, fields.Names(), "*.go", "../translate/internal/responseschat/*.go")
}
