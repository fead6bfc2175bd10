package limit

import (
	"context"
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	alice = netip.MustParseAddr("192.0.2.1")
	bob   = netip.MustParseAddr("192.0.2.2")
)

// timedWait calls Wait and returns its duration and result.
func timedWait(t *Throttle, addr netip.Addr) (time.Duration, bool) {
	start := time.Now()
	ok := t.Wait(context.Background(), addr)
	return time.Since(start), ok
}

// TestDelaysGrow checks that delays above the allowance grow up to maxDelay, for one address only.
func TestDelaysGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		delayed := 0
		throttle := NewThrottle(Allowance{Burst: 20, Rate: 0.1, Waiting: 1, OnDelay: func() { delayed++ }})
		for i := range 20 {
			if d, ok := timedWait(throttle, alice); d != 0 || !ok {
				t.Fatalf("attempt %d within the allowance waits %s, %v", i+1, d, ok)
			}
		}
		last := time.Duration(0)
		for i := range 60 {
			d, ok := timedWait(throttle, alice)
			if !ok || d < minDelay || d > maxDelay || d < last {
				t.Fatalf("attempt %d above the allowance waits %s, %v, after a wait of %s", i+1, d, ok, last)
			}
			last = d
		}
		if last < maxDelay*9/10 {
			t.Errorf("the last attempt waits %s, want about %s", last, maxDelay)
		}
		if delayed != 60 {
			t.Errorf("OnDelay was called %d times, want 60", delayed)
		}
		if d, _ := timedWait(throttle, bob); d != 0 {
			t.Errorf("another address waits %s, want no wait", d)
		}
		time.Sleep(10 * time.Minute)
		if d, _ := timedWait(throttle, alice); d != 0 {
			t.Errorf("the address waits %s after ten minutes, want no wait", d)
		}
	})
}

// TestWaiting checks that callers beyond Waiting are not delayed, and a caller that gives up
// makes room.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(Allowance{Burst: 1, Rate: 0.001, Waiting: 3})
		for range 50 {
			throttle.delay(alice)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { throttle.Wait(ctx, alice) })
		}
		synctest.Wait()
		if d, ok := timedWait(throttle, alice); d != 0 || ok {
			t.Errorf("the fourth caller waits %s and gets %v, want no wait and false", d, ok)
		}
		began := time.Now()
		cancel()
		wg.Wait()
		if d := time.Since(began); d != 0 {
			t.Errorf("canceled callers waited another %s, want no wait", d)
		}
		if d, ok := timedWait(throttle, alice); d == 0 || !ok {
			t.Errorf("the next caller waits %s and gets %v, want a wait and true", d, ok)
		}
	})
}

// TestSite checks that attempts from the 65,536 networks of an IPv6 /48 are throttled together, do
// not fill the memory and do not displace other addresses.
func TestSite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(Allowance{Burst: 300, Rate: 5, Waiting: 1})
		for range 500 {
			throttle.delay(alice)
		}
		delayed := 0
		for network := range 1 << 16 {
			a := netip.MustParseAddr("2001:db8:1::1").As16()
			binary.BigEndian.PutUint16(a[6:], uint16(network))
			if throttle.delay(netip.AddrFrom16(a)) > 0 {
				delayed++
			}
		}
		if delayed < 60_000 {
			t.Errorf("%d of %d attempts were delayed, want at least 60,000", delayed, 1<<16)
		}
		if n := throttle.levels.Len(); n > maxAddresses {
			t.Errorf("there are %d buckets, want at most %d", n, maxAddresses)
		}
		if throttle.delay(alice) == 0 {
			t.Error("the attempts displaced another address")
		}
		if d := throttle.delay(netip.MustParseAddr("2001:db8:2::1")); d > 0 {
			t.Errorf("another site waits %s, want no wait", d)
		}
	})
}
