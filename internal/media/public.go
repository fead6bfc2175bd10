package media

import (
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/egress"
)

// reservedDomains are top-level domains that the public DNS never serves,
// beside those that package egress keeps from users' addresses.
var reservedDomains = []string{"test", "example", "invalid", "onion", "alt", "arpa"}

// publicAddress tells whether a provider on the internet can read what is below
// an address: its host is a public literal or a name that the public DNS may
// have. The name is not resolved.
func publicAddress(base string) bool {
	if _, err := egress.New(nil).Check(base); err != nil {
		return false
	}
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	return !slices.Contains(reservedDomains, host[strings.LastIndexByte(host, '.')+1:])
}
