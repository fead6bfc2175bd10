package account

import (
	"net/netip"
	"time"

	"tollgate/internal/limit"
)

// How many unknown keys an address may ask for before it waits behind others.
const (
	missBurst    = 20   // at once
	missRate     = 1.0  // forgiven a second
	maxAddresses = 4096 // remembered
)

// standing remembers the addresses with many recent unknown keys. It orders lookups and rejects
// nothing, so sharing an address with an attacker costs a wait, not an answer.
type standing struct {
	misses *limit.Buckets[netip.Prefix]
}

func newStanding(now func() time.Time) *standing {
	// A level of twice the burst is as bad as it gets: after a flood ends the
	// address is back in good standing within as many seconds.
	return &standing{limit.NewBuckets[netip.Prefix](limit.Bounds{Rate: missRate, Top: 2 * missBurst, Keys: maxAddresses, Now: now})}
}

// good reports whether an address is below its burst.
func (s *standing) good(from netip.Addr) bool { return s.misses.Level(limit.Network(from)) < missBurst }

// miss records that an address sent an unknown key.
func (s *standing) miss(from netip.Addr) { s.misses.Add(limit.Network(from), 1) }
