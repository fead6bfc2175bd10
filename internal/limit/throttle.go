package limit

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"
)

// Bounds of a throttle that are the same for all of them.
const (
	shortest  = 100 * time.Millisecond
	longest   = time.Second
	addresses = 10_000 // remembered, about 1 MB
	// siteShare is what one attempt counts for an IPv6 site, its /48: whoever
	// has one has 65,536 networks to spread over, and five times the allowance.
	siteShare = 0.2
)

// Allowance is what an address may do without waiting. The funcs may be nil.
type Allowance struct {
	Burst   int     // at once
	Rate    float64 // and again a second
	Waiting int     // how many may wait at a time, from all addresses
	// Delayed is told of each that is above its allowance.
	Delayed func()
	Now     func() time.Time
	// Sleep returns after a time, or when ctx ends.
	Sleep func(ctx context.Context, d time.Duration)
}

// Throttle slows addresses that do something more often than their allowance.
// It is safe for concurrent use.
type Throttle struct {
	allowance Allowance
	levels    *Buckets[netip.Prefix]
	waiting   atomic.Int64
}

// NewThrottle returns a throttle that has seen nobody.
func NewThrottle(a Allowance) *Throttle {
	if a.Delayed == nil {
		a.Delayed = func() {}
	}
	if a.Sleep == nil {
		a.Sleep = sleep
	}
	return &Throttle{allowance: a, levels: NewBuckets[netip.Prefix](Bounds{
		Rate: a.Rate, Top: 2 * float64(a.Burst), Keys: addresses, Now: a.Now,
	})}
}

// Wait counts one more of an address and keeps the caller waiting if it is above
// its allowance: 100 ms at first, and up to a second where it goes on, until ctx
// ends at the latest. False: it did not wait, since enough others do; then close
// the connection after the answer.
func (t *Throttle) Wait(ctx context.Context, from netip.Addr) bool {
	delay := t.delay(from)
	if delay == 0 {
		return true
	}
	t.allowance.Delayed()
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > int64(t.allowance.Waiting) {
		return false
	}
	t.allowance.Sleep(ctx, delay)
	return true
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// delay counts one more of an address and returns how long it waits for it.
func (t *Throttle) delay(from netip.Addr) time.Duration {
	level := t.levels.Add(Network(from), 1)
	if a := from.Unmap(); a.Is6() {
		level = max(level, t.levels.Add(networkOf(a, 48), siteShare))
	}
	burst := float64(t.allowance.Burst)
	if level <= burst {
		return 0
	}
	return shortest + time.Duration((level-burst)/burst*float64(longest-shortest))
}
