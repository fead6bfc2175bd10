package completions

import (
	"strings"
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldsInOtherCaseAreRefused tests every field read or set by the gateway.
func TestFieldsInOtherCaseAreRefused(t *testing.T) {
	t.Parallel()
	wiretest.RefusesOtherCase(t, fields.Names(), func(member string) error {
		r, err := Open([]byte(strings.Replace(`{"messages":[{"role":"user","content":"x"}]}`, "{", "{"+member+",", 1)))
		if err == nil {
			err = r.Check()
		}
		return err
	})
}

// TestFieldListIsWhole checks that the list contains every top-level field read by this package,
// the common code and the translators of the form.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 40, fields.Names(), "*.go", "../internal/form/*.go", "../translate/internal/chatgemini/*.go",
		"../translate/internal/chatmessages/messages*.go", "../translate/internal/chatresponses/*.go")
}
