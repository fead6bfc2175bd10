package completions

import (
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldListIsWhole checks that the list contains every top-level field read by this package,
// the common code and the translators of the form.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 40, fields.Names(), "*.go", "../internal/form/*.go", "../translate/internal/chatgemini/*.go",
		"../translate/internal/chatmessages/messages*.go", "../translate/internal/chatresponses/*.go")
}
