package messages

import (
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldListIsWhole checks that the list contains every top-level field read by this package.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 20, fields.Names(), "*.go")
}
