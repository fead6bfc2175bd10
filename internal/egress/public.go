package egress

import (
	"net/netip"
	"slices"
)

// globalUnicast contains all IPv6 addresses assigned on the internet.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// reservedNetworks are the networks in the registries of special purpose addresses of IPv4 and
// IPv6. Of IPv6, only networks within globalUnicast are listed. Networks with an embedded IPv4
// address (6to4, Teredo) are reserved whatever the IPv4 address is. NAT64 (64:ff9b::/96,
// 64:ff9b:1::/48), unique local, link-local, multicast and loopback addresses lie outside
// globalUnicast.
var reservedNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),         // this network
	netip.MustParsePrefix("10.0.0.0/8"),        // private
	netip.MustParsePrefix("100.64.0.0/10"),     // carrier-grade NAT; one cloud's metadata
	netip.MustParsePrefix("127.0.0.0/8"),       // loopback
	netip.MustParsePrefix("168.63.129.16/32"),  // one cloud's host, only for its guests
	netip.MustParsePrefix("169.254.0.0/16"),    // link-local; most clouds' metadata
	netip.MustParsePrefix("172.16.0.0/12"),     // private
	netip.MustParsePrefix("192.0.0.0/24"),      // protocol assignments; one cloud's metadata
	netip.MustParsePrefix("192.0.2.0/24"),      // documentation
	netip.MustParsePrefix("192.31.196.0/24"),   // AS112
	netip.MustParsePrefix("192.52.193.0/24"),   // multicast tunnels
	netip.MustParsePrefix("192.88.99.0/24"),    // former 6to4 relays
	netip.MustParsePrefix("192.168.0.0/16"),    // private
	netip.MustParsePrefix("192.175.48.0/24"),   // AS112
	netip.MustParsePrefix("198.18.0.0/15"),     // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),   // documentation
	netip.MustParsePrefix("203.0.113.0/24"),    // documentation
	netip.MustParsePrefix("224.0.0.0/4"),       // multicast
	netip.MustParsePrefix("240.0.0.0/4"),       // reserved, broadcast
	netip.MustParsePrefix("2001::/23"),         // protocol assignments: Teredo, ORCHID, benchmarks
	netip.MustParsePrefix("2001:db8::/32"),     // documentation
	netip.MustParsePrefix("2002::/16"),         // 6to4
	netip.MustParsePrefix("2620:4f:8000::/48"), // AS112
	netip.MustParsePrefix("3ffe::/16"),         // former test network
	netip.MustParsePrefix("3fff::/20"),         // documentation
}

// isPublic reports whether an address is reachable on the internet. The address must not be an
// IPv4-mapped IPv6 address or have a zone.
func isPublic(addr netip.Addr) bool {
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return false
	}
	return !slices.ContainsFunc(reservedNetworks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
