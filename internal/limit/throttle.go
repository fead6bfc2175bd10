package limit

import (
	"context"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"tollgate/internal/loop"
)

// Limits of every throttle.
const (
	minDelay     = 100 * time.Millisecond
	maxDelay     = time.Second
	maxAddresses = 10_000 // about 1 MB
	// siteShare is the weight of an attempt for its IPv6 site, a /48 with 65,536 networks. A
	// site therefore has five times the allowance of a network.
	siteShare = 0.2
)

// Allowance limits what an address may do without a delay. The functions may be nil.
type Allowance struct {
	Burst   int     // attempts at once
	Rate    float64 // further attempts per second
	Waiting int     // maximum number of delayed callers, from all addresses
	// OnDelay is called for each attempt above the allowance.
	OnDelay func()
	Now     func() time.Time
	// Sleep waits for d or for the end of ctx.
	Sleep func(ctx context.Context, d time.Duration)
}

// Throttle delays addresses above their allowance. It is safe for concurrent use.
type Throttle struct {
	allowance Allowance
	levels    *Buckets[netip.Prefix]
	waiting   atomic.Int64
}

// NewThrottle returns a throttle without a history.
func NewThrottle(a Allowance) *Throttle {
	if a.OnDelay == nil {
		a.OnDelay = func() {}
	}
	if a.Sleep == nil {
		a.Sleep = func(ctx context.Context, d time.Duration) { loop.Sleep(ctx, d) }
	}
	return &Throttle{allowance: a, levels: NewBuckets[netip.Prefix](Bounds{
		Rate: a.Rate, Top: 2 * float64(a.Burst), Keys: maxAddresses, Now: a.Now,
	})}
}

// Wait counts an attempt of an address. Above the allowance it waits between minDelay and
// maxDelay, or until ctx ends. It returns false without a delay if too many callers wait
// already; the caller must then close the connection after the response.
func (t *Throttle) Wait(ctx context.Context, addr netip.Addr) bool {
	delay := t.delay(addr)
	if delay == 0 {
		return true
	}
	t.allowance.OnDelay()
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > int64(t.allowance.Waiting) {
		return false
	}
	t.allowance.Sleep(ctx, delay)
	return true
}

// Slow delays the response to a wrong secret from an address, even if the client disconnects. If
// too many callers wait already, the connection is closed after the response. A nil Throttle does
// nothing.
func (t *Throttle) Slow(w http.ResponseWriter, r *http.Request, addr netip.Addr) {
	if t != nil && !t.Wait(context.WithoutCancel(r.Context()), addr) {
		w.Header().Set("Connection", "close")
	}
}

// delay counts an attempt of an address and returns its delay.
func (t *Throttle) delay(addr netip.Addr) time.Duration {
	level := t.levels.Add(Network(addr), 1)
	if a := addr.Unmap(); a.Is6() {
		level = max(level, t.levels.Add(networkOf(a, 48), siteShare))
	}
	burst := float64(t.allowance.Burst)
	if level <= burst {
		return 0
	}
	return minDelay + time.Duration((level-burst)/burst*float64(maxDelay-minDelay))
}
