package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tollgate/internal/fault"
)

// TestFirstOf checks that the fault of a reference is reported before its consequences for the
// others.
func TestFirstOf(t *testing.T) {
	t.Parallel()
	internal, theirs := fault.Unavailable(errors.New("connection lost")), fault.At(fault.InvalidRequest, "mask", "No.")
	consequence := fmt.Errorf("fetch: %w", context.Canceled)
	for name, tt := range map[string]struct {
		errs []error
		want error
	}{
		"none":            {[]error{nil, nil}, nil},
		"echo first":      {[]error{consequence, nil, theirs}, theirs},
		"ours first":      {[]error{internal, theirs}, theirs},
		"ours alone":      {[]error{consequence, internal}, internal},
		"nothing but one": {[]error{nil, consequence}, consequence},
	} {
		if got := mainError(tt.errs); !errors.Is(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
