package account

import (
	"net/netip"
	"sync"
	"time"
)

// How many unknown keys an address may ask for before it waits behind others.
const (
	missBurst    = 20   // at once
	missRate     = 1.0  // forgiven a second
	maxAddresses = 4096 // remembered
)

// standing remembers which addresses asked for many unknown keys lately. It
// orders look-ups and refuses nothing, so sharing an address with an attacker
// costs a wait, not an answer.
type standing struct {
	now func() time.Time

	mu     sync.Mutex
	misses map[netip.Addr]misses
}

// misses is a bucket that leaks missRate a second.
type misses struct {
	level float64
	at    time.Time
}

func (m misses) after(now time.Time) float64 {
	return max(0, m.level-missRate*max(0, now.Sub(m.at).Seconds()))
}

func newStanding(now func() time.Time) *standing {
	return &standing{now: now, misses: make(map[netip.Addr]misses)}
}

// good tells whether an address is below its burst.
func (s *standing) good(from netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.misses[network(from)]
	return !ok || m.after(s.now()) < missBurst
}

// miss notes that an address asked for a key that does not exist.
func (s *standing) miss(from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, net := s.now(), network(from)
	m, ok := s.misses[net]
	if !ok && len(s.misses) >= maxAddresses {
		s.drop(now)
	}
	// A level of twice the burst is as bad as it gets: after a flood ends the
	// address is back in good standing within as many seconds.
	s.misses[net] = misses{level: min(m.after(now)+1, 2*missBurst), at: now}
}

// drop forgets the best of a few addresses that the map's random order shows.
func (s *standing) drop(now time.Time) {
	var best netip.Addr
	level, seen := 0.0, 0
	for a, m := range s.misses {
		if l := m.after(now); seen == 0 || l < level {
			best, level = a, l
		}
		if seen++; seen == samples {
			break
		}
	}
	delete(s.misses, best)
}

// network is what counts as one address: all of IPv4, and of IPv6 the 64 bits
// that a provider hands out to one customer.
func network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}
