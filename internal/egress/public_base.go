package egress

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// reservedDomains are top-level domains outside the public DNS, in addition to those that Check
// rejects.
var reservedDomains = []string{"test", "example", "invalid", "onion", "alt", "arpa"}

// PublicBase reports whether the paths below an address may be readable from the internet, because
// the host is a public IP address or may be a name in the public DNS. The name is not resolved.
func PublicBase(base string) bool {
	g := New(nil)
	g.Interfaces = func() ([]net.Addr, error) { return nil, nil } // this machine itself may serve the base
	if _, err := g.Check(base); err != nil {
		return false
	}
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	return !slices.Contains(reservedDomains, host[strings.LastIndexByte(host, '.')+1:])
}
