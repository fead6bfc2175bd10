package jobrequest

import (
	"strings"
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldsInOtherCaseAreRefused: every field that is read or owned, of images
// and of videos.
func TestFieldsInOtherCaseAreRefused(t *testing.T) {
	t.Parallel()
	with := func(member string) []byte {
		return []byte(strings.Replace(`{"prompt":"x"}`, "{", "{"+member+",", 1))
	}
	wiretest.RefusesOtherCase(t, owned, func(member string) error {
		r, err := OpenImage(with(member))
		if err == nil {
			err = r.Check(false)
		}
		return err
	})
	wiretest.RefusesOtherCase(t, owned, func(member string) error {
		r, err := OpenVideo(with(member))
		if err == nil {
			err = r.Check()
		}
		return err
	})
}

// TestFieldListIsWhole: what is read at the top level stands in the list, or is
// refused of videos (Misnamed).
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 10, append([]string{"size", "seconds"}, owned...), "*.go")
}
