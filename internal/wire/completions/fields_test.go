package completions

import (
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldListIsWhole checks that the list contains every top-level field read by this package and
// the common code.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 40, fields.Names(), "*.go", "../internal/form/*.go")
}
