package account

import (
	"net/netip"
	"time"

	"tollgate/internal/limit"
)

// Limits on the unknown keys of an address. An address above the limits waits after the others.
const (
	missBurst    = 20   // at once
	missRate     = 1.0  // forgiven per second
	maxAddresses = 4096 // remembered
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
func (s *missCounter) below(from netip.Addr) bool {
	return s.buckets.Level(limit.Network(from)) < missBurst
}

// add records an unknown key from an address.
func (s *missCounter) add(from netip.Addr) { s.buckets.Add(limit.Network(from), 1) }
