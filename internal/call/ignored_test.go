package call

import (
	"slices"
	"strings"
	"testing"
)

// TestIgnoredHeaderIsBounded however many fields a client makes up.
func TestIgnoredHeaderIsBounded(t *testing.T) {
	t.Parallel()
	names := slices.Repeat([]string{strings.Repeat("é", 500)}, 4000)
	if got := NamesOfFields(names); !strings.HasSuffix(got, ", ...") || len(got) > maxIgnoredNames*(maxIgnoredName+2)+3 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
