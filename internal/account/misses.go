package account

import (
	"net/netip"
	"time"

	"tollgate/internal/limit"
)

// Limits on the unknown keys of an address. Lookups of an address above missBurst wait in the slow
// queue.
const (
	missBurst    = 20   // unknown keys at once
	missRate     = 1.0  // unknown keys forgotten per second
	maxAddresses = 4096 // addresses in the counter
)

// missCounter counts the unknown keys of each address. The count only orders lookups, so clients
// that share an address with an attacker wait longer but are not rejected.
type missCounter struct {
	buckets *limit.Buckets[netip.Prefix]
}

func newMissCounter(now func() time.Time) *missCounter {
	// The level is at most twice the burst, so an address is below the burst again at most 20
	// seconds after a flood.
	return &missCounter{limit.NewBuckets[netip.Prefix](limit.Bounds{Rate: missRate, Top: 2 * missBurst, Keys: maxAddresses, Now: now})}
}

// below reports whether an address is below its burst.
func (c *missCounter) below(addr netip.Addr) bool {
	return c.buckets.Level(limit.Network(addr)) < missBurst
}

// add records an unknown key from an address.
func (c *missCounter) add(addr netip.Addr) { c.buckets.Add(limit.Network(addr), 1) }
