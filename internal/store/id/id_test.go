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

// TestIdentifiersOfOneMillisecondSort checks that identifiers of one millisecond sort by creation.
func TestIdentifiersOfOneMillisecondSort(t *testing.T) {
	now, last := time.UnixMilli(1_700_000_000_000), ""
	for i := range 2000 {
		got := At("act_", now.Add(time.Duration(i)*500))
		if got <= last || got < First("act_", now) || got >= First("act_", now.Add(time.Millisecond)) {
			t.Fatalf("%q does not sort after %q, or is not of its millisecond", got, last)
		}
		last = got
	}
}

func TestFirstIsBeforeAllOfItsTime(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	first := First("req_", at)
	if len(first) != 30 || At("req_", at) < first || At("req_", at.Add(-time.Millisecond)) >= first {
		t.Errorf("got %q, want the first identifier of its millisecond", first)
	}
}

func TestIdentifiersDoNotRepeat(t *testing.T) {
	now, seen := time.Now(), map[string]bool{}
	for range 10_000 {
		got := At("k_", now)
		if seen[got] {
			t.Fatalf("got %q twice, want distinct identifiers", got)
		}
		seen[got] = true
	}
}

func TestPackingKeepsEveryText(t *testing.T) {
	seen := map[string]string{}
	texts := []string{"", "req_", "req_1", "job_01k9", "req_zzzzzzzzzzzzzzzzzzzzzzzzzz", "req_80000000000000000000000000", "other_01k9",
		"req_01K9000000000000000000000O", "\xffabcdefghijklmno", strings.Repeat("a", 15), strings.Repeat("a", 16)}
	for range 1000 {
		texts = append(texts, New("req_"))
	}
	for i, text := range texts {
		packed := Pack("req_", text)
		if got := Unpack("req_", packed); got != text {
			t.Errorf("got %q after packing, want %q", got, text)
		}
		if other, taken := seen[string(packed)]; taken {
			t.Errorf("%q and %q are packed alike, want distinct bytes", text, other)
		}
		seen[string(packed)] = text
		if i >= len(texts)-1000 && len(packed) != 16 {
			t.Errorf("%q is packed in %d bytes, want 16", text, len(packed))
		}
	}
}
