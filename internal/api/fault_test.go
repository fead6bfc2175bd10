package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tollgate/internal/fault"
)

// TestFirstOf: the fault of a reference is reported before its consequences for the others.
func TestFirstOf(t *testing.T) {
	t.Parallel()
	ours, theirs := fault.Unavailable(errors.New("connection lost")), fault.At(fault.InvalidRequest, "mask", "No.")
	echo := fmt.Errorf("fetch: %w", context.Canceled)
	for name, tt := range map[string]struct {
		errs []error
		want error
	}{
		"none":            {[]error{nil, nil}, nil},
		"echo first":      {[]error{echo, nil, theirs}, theirs},
		"ours first":      {[]error{ours, theirs}, theirs},
		"ours alone":      {[]error{echo, ours}, ours},
		"nothing but one": {[]error{nil, echo}, echo},
	} {
		if got := firstOf(tt.errs); !errors.Is(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
