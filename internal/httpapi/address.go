package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// ClientAddress returns the address checked by an allowlist: the connection's, or, if that is a
// trusted proxy, the rightmost untrusted address in X-Forwarded-For (operator.md, Client address).
// An invalid entry ends the walk with the last valid address, because untrusted parties wrote the
// entries to its left. Addresses have no zone, and mapped IPv4 is returned as IPv4. The zero
// address means that the address is unknown.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	client, _ := parseAddress(r.RemoteAddr)
	if len(trusted) == 0 {
		return client
	}
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; rest != ""; {
			var entry string
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, entry = rest[:comma], rest[comma+1:]
			} else {
				rest, entry = "", rest
			}
			if !inNetworks(client, trusted) {
				return client
			}
			if entry = strings.TrimSpace(entry); entry == "" {
				continue
			}
			next, ok := parseAddress(entry)
			if !ok {
				return client
			}
			client = next
		}
	}
	return client
}

// parseAddress parses an address with or without a port, and IPv6 with or without brackets.
func parseAddress(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return normalize(withPort.Addr()), true
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok || !strings.Contains(inner, ":") {
			return netip.Addr{}, false
		}
		text = inner
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, false
	}
	return normalize(address), true
}

// normalize removes the zone of an address and converts mapped IPv4 to IPv4.
func normalize(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// inNetworks reports whether a lies in one of the networks.
func inNetworks(a netip.Addr, networks []netip.Prefix) bool {
	for _, network := range networks {
		if network.Contains(a) {
			return true
		}
	}
	return false
}
