// Package limit owns limits by who asks: how often a key of any kind has done
// something lately, and the wait of addresses that do it too often.
//
// Invariants: what is remembered is bounded, whoever asks and under however many
// names; nothing is refused here, so a limit that is shared with an attacker
// costs a wait and no answer.
package limit

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds are those of some Buckets. All but Now must be set.
type Bounds struct {
	Rate float64 // what leaks from a bucket in a second
	Top  float64 // the highest level
	Keys int     // buckets remembered
	Now  func() time.Time
}

// Buckets are leaking buckets by key. They are safe for concurrent use.
type Buckets[K comparable] struct {
	bounds Bounds

	mu      sync.Mutex
	buckets map[K]bucket
}

// bucket had a level at a time.
type bucket struct {
	level float64
	at    time.Time
}

// NewBuckets returns empty buckets. Now nil: time.Now.
func NewBuckets[K comparable](b Bounds) *Buckets[K] {
	if b.Now == nil {
		b.Now = time.Now
	}
	return &Buckets[K]{bounds: b, buckets: make(map[K]bucket)}
}

// Level returns what is in a key's bucket now.
func (b *Buckets[K]) Level(key K) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now(b.buckets[key], b.bounds.Now())
}

// Add puts amount into a key's bucket and returns the level that it has then.
// Where too many keys are remembered, one with a low level is forgotten for it.
func (b *Buckets[K]) Add(key K, amount float64) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.bounds.Now()
	was, known := b.buckets[key]
	if !known && len(b.buckets) >= b.bounds.Keys {
		b.drop(now)
	}
	level := min(b.now(was, now)+amount, b.bounds.Top)
	b.buckets[key] = bucket{level, now}
	return level
}

// Take puts amount into a key's bucket if it fits below the top, and reports
// whether it did. A key that asks too often gets its rate, and no less.
func (b *Buckets[K]) Take(key K, amount float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.bounds.Now()
	was, known := b.buckets[key]
	level := b.now(was, now) + amount
	if level > b.bounds.Top {
		return false
	}
	if !known && len(b.buckets) >= b.bounds.Keys {
		b.drop(now)
	}
	b.buckets[key] = bucket{level, now}
	return true
}

// Len returns how many keys are remembered.
func (b *Buckets[K]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.buckets)
}

// now is a bucket's level after it has leaked.
func (b *Buckets[K]) now(was bucket, now time.Time) float64 {
	return max(0, was.level-b.bounds.Rate*max(0, now.Sub(was.at).Seconds()))
}

// samples is how many buckets are looked at to find one to forget.
const samples = 8

// drop forgets the lowest of a few buckets that the map's random order shows. So
// many keys that do little push each other out, and not one that does much.
func (b *Buckets[K]) drop(now time.Time) {
	var lowest K
	level, seen := 0.0, 0
	for key, bucket := range b.buckets {
		if l := b.now(bucket, now); seen == 0 || l < level {
			lowest, level = key, l
		}
		if seen++; seen == samples {
			break
		}
	}
	delete(b.buckets, lowest)
}

// Network is what counts as one address: all of IPv4, and of IPv6 the 64 bits
// that a provider hands out to one customer at the least. The zero address is a
// network of its own.
func Network(a netip.Addr) netip.Prefix {
	return networkOf(a, 64)
}

// Site is the site of an IPv6 address, its /48, and reports false for IPv4.
// Whoever has a site has 65,536 networks to spread over.
func Site(a netip.Addr) (netip.Prefix, bool) {
	if !a.Unmap().Is6() {
		return netip.Prefix{}, false
	}
	return networkOf(a, 48), true
}

func networkOf(a netip.Addr, bits int) netip.Prefix {
	a = a.Unmap()
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // fails for the zero address alone, with the zero prefix; takes the zone off
	return p
}
