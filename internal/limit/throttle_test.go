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

// timedWait waits for an attempt and returns the duration and the result.
func timedWait(t *Throttle, from netip.Addr) (time.Duration, bool) {
	began := time.Now()
	ok := t.Wait(context.Background(), from)
	return time.Since(began), ok
}

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
			t.Errorf("another address waits %s", d)
		}
		time.Sleep(10 * time.Minute)
		if d, _ := timedWait(throttle, alice); d != 0 {
			t.Errorf("the address waits %s after ten minutes", d)
		}
	})
}

// TestWaiting checks that callers beyond Waiting are not delayed, and that a caller that gives up
// makes room.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(Allowance{Burst: 1, Rate: 0.001, Waiting: 3})
		for range 50 {
			throttle.delay(alice)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() { throttle.Wait(ctx, alice) })
		}
		synctest.Wait()
		if d, ok := timedWait(throttle, alice); d != 0 || ok {
			t.Errorf("the fourth caller waits %s, %v", d, ok)
		}
		began := time.Now()
		cancel()
		waiting.Wait()
		if d := time.Since(began); d != 0 {
			t.Errorf("cancelled callers waited another %s", d)
		}
		if d, ok := timedWait(throttle, alice); d == 0 || !ok {
			t.Errorf("the next caller waits %s, %v", d, ok)
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
			t.Errorf("%d of %d attempts were delayed", delayed, 1<<16)
		}
		if n := throttle.levels.Len(); n > maxAddresses {
			t.Errorf("%d addresses are remembered", n)
		}
		if throttle.delay(alice) == 0 {
			t.Error("another address was forgotten")
		}
		if d := throttle.delay(netip.MustParseAddr("2001:db8:2::1")); d > 0 {
			t.Errorf("another site waits %s", d)
		}
	})
}
