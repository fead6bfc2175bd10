package jobrequest

import (
	"strings"
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldsInOtherCaseAreRefused tests every field read or set by the gateway, of images and of
// videos.
func TestFieldsInOtherCaseAreRefused(t *testing.T) {
	t.Parallel()
	with := func(member string) []byte {
		return []byte(strings.Replace(`{"prompt":"x"}`, "{", "{"+member+",", 1))
	}
	wiretest.RefusesOtherCase(t, gatewayFields, func(member string) error {
		r, err := OpenImage(with(member))
		if err == nil {
			err = r.Check(false)
		}
		return err
	})
	wiretest.RefusesOtherCase(t, gatewayFields, func(member string) error {
		r, err := OpenVideo(with(member))
		if err == nil {
			err = r.Check()
		}
		return err
	})
}

// TestFieldListIsWhole checks that the list contains every top-level field read by this package,
// except the fields rejected by CheckNames.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 9, append([]string{"size", "seconds"}, gatewayFields...), "*.go")
}
