package account

import (
	"net/netip"
	"slices"
)

// Principal is who a request comes from and what its key may do. Its lists are
// shared with the cache: read only.
type Principal struct {
	Account string // acct_…
	Key     string // key_…
	// Version is that of the key's row when it was read; admission refuses
	// another one with ledger.ErrKeyChanged.
	Version int64
	// Test reports whether the account is marked as one for tests: it may use the sandbox
	// models beside the lines of real providers.
	Test bool
	// Prices are the account's, as they are billed at that version.
	Prices        Prices
	AllowedModels []string       // nil: all
	AllowedIPs    []netip.Prefix // nil: all
}

// AllowsModel tells whether the key may use a model.
func (p Principal) AllowsModel(model string) bool {
	return p.AllowedModels == nil || slices.Contains(p.AllowedModels, model)
}

// AllowsSandbox reports whether the key may use a sandbox model that is closed to
// customers: the account is marked as test, or the key's list names the model.
func (p Principal) AllowsSandbox(model string) bool {
	return p.Test || slices.Contains(p.AllowedModels, model)
}

// AllowsAddress tells whether the key may be used from an address. IPv4
// addresses written as IPv6 are IPv4 here.
func (p Principal) AllowsAddress(addr netip.Addr) bool { return allowsAddress(p.AllowedIPs, addr) }
