package wire

import (
	"strings"
	"testing"
)

func TestNearestEffort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, taken, want string }{
		{"low", "low medium high", "low"},
		{"none", "low medium high", "low"},
		{"minimal", "none low", "low"}, // as near as none, and larger
		{"none", "none high", "none"},
		{"max", "low medium high", "high"},
		{"medium", "high low", "high"},
		{"xhigh", "high max", "max"},
		{"minimal", "max", "max"},
		{"medium", "", "medium"},
		{"default", "", "default"}, // a vendor's own word
		{"default", "low high", ""},
		{"", "low", ""},
	} {
		got, known := NearestEffort(c.asked, strings.Fields(c.taken))
		if got != c.want || known != (c.want != "") {
			t.Errorf("%q of %q: %q, %t; want %q", c.asked, c.taken, got, known, c.want)
		}
	}
}
