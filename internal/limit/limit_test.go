package limit

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestBucketsLeak checks that a bucket rises to Top and leaks at Rate.
func TestBucketsLeak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBuckets[string](Bounds{Rate: 2, Top: 10, Keys: 100})
		for range 30 {
			b.Add("a", 1)
		}
		if got := b.Level("a"); got != 10 {
			t.Errorf("level %v, want the top of 10", got)
		}
		if got := b.Level("b"); got != 0 {
			t.Errorf("another key has level %v, want 0", got)
		}
		time.Sleep(3 * time.Second)
		if got := b.Level("a"); got != 4 {
			t.Errorf("level %v after three seconds, want 4", got)
		}
		time.Sleep(time.Hour)
		if got := b.Add("a", 1); got != 1 {
			t.Errorf("level %v after an hour and an addition of 1, want 1", got)
		}
	})
}

// TestClockGoesBack checks that a clock going back does not lower a level.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	b := NewBuckets[string](Bounds{Rate: 1, Top: 10, Keys: 100, Now: func() time.Time { return now }})
	b.Add("a", 5)
	now = now.Add(-time.Hour)
	if got := b.Level("a"); got != 5 {
		t.Errorf("level %v, want 5", got)
	}
}

// TestDrop checks that the memory is bounded and many low keys do not displace a high key.
func TestDrop(t *testing.T) {
	t.Parallel()
	b := NewBuckets[int](Bounds{Rate: 0.001, Top: 100, Keys: 1000})
	for range 50 {
		b.Add(-1, 1)
	}
	for key := range 100_000 {
		b.Add(key, 1)
	}
	if n := b.Len(); n != 1000 {
		t.Errorf("there are %d buckets, want 1000", n)
	}
	if got := b.Level(-1); got < 40 {
		t.Errorf("the high key has level %v, want at least 40", got)
	}
}

// TestNetworks checks which addresses share a network.
func TestNetworks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b string }{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8::1", "2001:db8::ffff:1:1"},
		{"fe80::1%eth0", "fe80::2%eth1"},
	} {
		if Network(netip.MustParseAddr(c.a)) != Network(netip.MustParseAddr(c.b)) {
			t.Errorf("%s and %s are in different networks", c.a, c.b)
		}
	}
	for _, c := range []struct{ a, b string }{{"192.0.2.1", "192.0.2.2"}, {"2001:db8:0:1::1", "2001:db8:0:2::1"}, {"0.0.0.0", "::"}} {
		if Network(netip.MustParseAddr(c.a)) == Network(netip.MustParseAddr(c.b)) {
			t.Errorf("%s and %s are in one network", c.a, c.b)
		}
	}
	if Network(netip.Addr{}).IsValid() {
		t.Error("Network returns a valid network for the zero address")
	}
}
