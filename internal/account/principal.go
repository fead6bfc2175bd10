package account

import (
	"net/netip"
	"slices"
)

// Principal is the account and the rights of a request's key. Do not change its lists, because the
// key cache shares them.
type Principal struct {
	Account string // acct_…
	Key     string // key_…
	// Version is the key's version at the time of the database read. Admission returns
	// ledger.ErrKeyChanged if the key has another version.
	Version int64
	// Test reports whether the account is a test account, which may use sandbox models although the
	// catalog has lines of real providers.
	Test bool
	// Prices are the account's prices at Version.
	Prices        Prices
	AllowedModels []string       // nil for all
	AllowedIPs    []netip.Prefix // nil for all
	// WaitForPictures reports whether submissions of images wait for their result.
	WaitForPictures bool
}

// AllowsModel reports whether the key may use a model.
func (p Principal) AllowsModel(model string) bool {
	return p.AllowedModels == nil || slices.Contains(p.AllowedModels, model)
}

// AllowsAddress reports whether the key may be used from an address. IPv4 addresses written as IPv6
// count as IPv4.
func (p Principal) AllowsAddress(addr netip.Addr) bool { return allowsAddress(p.AllowedIPs, addr) }
