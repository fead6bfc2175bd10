package id

import (
	"strings"
	"testing"
	"time"
)

func TestIdentifiersSortByTime(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	last := ""
	for i := range 2000 {
		got := At("req_", now.Add(time.Duration(i)*time.Millisecond))
		if !strings.HasPrefix(got, "req_") || len(got) != 30 {
			t.Fatalf("identifier %q: want req_ and 26 characters", got)
		}
		if got <= last {
			t.Fatalf("%q does not sort after %q", got, last)
		}
		last = got
	}
}

func TestIdentifiersDoNotRepeat(t *testing.T) {
	now, seen := time.Now(), map[string]bool{}
	for range 10_000 {
		got := At("k_", now)
		if seen[got] {
			t.Fatalf("%q was made twice", got)
		}
		seen[got] = true
	}
}
