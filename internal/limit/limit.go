// Package limit owns rate and concurrency limits in memory: leaking buckets by key, delays for addresses
// above an allowance, and semaphores by key.
//
// Invariants: memory is bounded for any number of keys. An address above its allowance is delayed and not
// rejected, because an innocent client may share the address with an attacker.
package limit

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds configure Buckets. Only Now is optional.
type Bounds struct {
	Rate float64 // leaks from a bucket per second
	Top  float64 // the highest level
	Keys int     // maximum number of buckets
	Now  func() time.Time
}

// Buckets are leaking buckets by key. They are safe for concurrent use.
type Buckets[K comparable] struct {
	bounds Bounds

	mu      sync.Mutex
	buckets map[K]bucket
}

// bucket is the level of a bucket at a point in time.
type bucket struct {
	level float64
	at    time.Time
}

// NewBuckets returns empty buckets. If Now is nil, they use time.Now.
func NewBuckets[K comparable](b Bounds) *Buckets[K] {
	if b.Now == nil {
		b.Now = time.Now
	}
	return &Buckets[K]{bounds: b, buckets: make(map[K]bucket)}
}

// Level returns the current level of a key's bucket.
func (b *Buckets[K]) Level(key K) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.levelAt(b.buckets[key], b.bounds.Now())
}

// Add adds amount to a key's bucket and returns the new level, at most Top. If there are too many keys, Add
// drops a key with a low level.
func (b *Buckets[K]) Add(key K, amount float64) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.bounds.Now()
	old, ok := b.buckets[key]
	if !ok && len(b.buckets) >= b.bounds.Keys {
		b.drop(now)
	}
	level := min(b.levelAt(old, now)+amount, b.bounds.Top)
	b.buckets[key] = bucket{level, now}
	return level
}

// Take adds amount to a key's bucket and returns true if the level stays within Top.
// Rejected amounts do not count, so a key above the limit still gets its rate.
func (b *Buckets[K]) Take(key K, amount float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.bounds.Now()
	old, ok := b.buckets[key]
	level := b.levelAt(old, now) + amount
	if level > b.bounds.Top {
		return false
	}
	if !ok && len(b.buckets) >= b.bounds.Keys {
		b.drop(now)
	}
	b.buckets[key] = bucket{level, now}
	return true
}

// Len returns the number of keys.
func (b *Buckets[K]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.buckets)
}

// levelAt returns the level of a bucket at a time, after the leak since its last change.
func (b *Buckets[K]) levelAt(old bucket, now time.Time) float64 {
	return max(0, old.level-b.bounds.Rate*max(0, now.Sub(old.at).Seconds()))
}

// samples is the number of buckets from which drop chooses.
const samples = 8

// drop deletes the lowest of a few random buckets. Many keys with low levels therefore
// displace each other and not a key with a high level.
func (b *Buckets[K]) drop(now time.Time) {
	var lowest K
	level, seen := 0.0, 0
	for key, bucket := range b.buckets {
		if l := b.levelAt(bucket, now); seen == 0 || l < level {
			lowest, level = key, l
		}
		if seen++; seen == samples {
			break
		}
	}
	delete(b.buckets, lowest)
}

// Network returns the network of an address for limits: the whole IPv4 address, or the
// first 64 bits of an IPv6 address, the least that a provider assigns to a customer. The
// zero address is a network of its own.
func Network(a netip.Addr) netip.Prefix {
	return networkOf(a, 64)
}

// Site returns the /48 of an IPv6 address, with its 65,536 networks. It reports false for
// IPv4.
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
	p, _ := a.Prefix(bits) // removes the zone; fails only for the zero address, with the zero prefix
	return p
}
