package account

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// Bounds of the allowlists, checked on every request of a key.
const (
	maxAllowed      = 500 // entries of one list
	maxAllowedModel = 200 // bytes of a model id
	maxAllowedIP    = 64  // bytes of an address or CIDR as written
)

// ParseAllowedModels checks a model allowlist and drops repetitions. A nil list allows all models;
// an empty list is an error, because it would allow no model. The ids need not be in the catalog,
// because a model may be added later.
func ParseAllowedModels(list []string) ([]string, error) {
	const param = "allowed_models"
	if list == nil {
		return nil, nil
	}
	if err := checkListLength(param, len(list)); err != nil {
		return nil, err
	}
	var out []string
	for i, model := range list {
		if !isModelID(model) {
			return nil, fault.At(fault.InvalidRequest, fmt.Sprintf("%s[%d]", param, i),
				"%s must hold model ids as GET /v1/models lists them, 1 to %d bytes each.", param, maxAllowedModel)
		}
		if !slices.Contains(out, model) {
			out = append(out, model)
		}
	}
	return out, nil
}

// isModelID reports whether text is a valid model id.
func isModelID(text string) bool {
	return text != "" && len(text) <= maxAllowedModel && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// ParseAllowedIPs reads an address allowlist of single addresses and CIDRs and drops repetitions.
// A nil list allows all addresses; an empty list is an error. IPv4 addresses written as IPv6
// (`::ffff:192.0.2.1`) become IPv4, and bits after the prefix are cleared.
func ParseAllowedIPs(list []string) ([]netip.Prefix, error) {
	const param = "allowed_ips"
	if list == nil {
		return nil, nil
	}
	if err := checkListLength(param, len(list)); err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for i, text := range list {
		prefix, ok := parsePrefix(text)
		if !ok {
			return nil, fault.At(fault.InvalidRequest, fmt.Sprintf("%s[%d]", param, i),
				"%q is neither an IP address nor a CIDR. Use an address like 192.0.2.7 or 2001:db8::7, or a network like 192.0.2.0/24.", clip(text))
		}
		if !slices.Contains(out, prefix) {
			out = append(out, prefix)
		}
	}
	return out, nil
}

func checkListLength(param string, n int) error {
	if n == 0 {
		return fault.At(fault.InvalidRequest, param,
			"{param} must not be empty: that would allow nothing. To allow all, leave it out or send null (in the terminal: none).")
	}
	if n > maxAllowed {
		return fault.At(fault.InvalidRequest, param, "{param} must have at most %d entries.", maxAllowed)
	}
	return nil
}

// parsePrefix reads an address (as a network of one) or a CIDR in canonical form. Zones are
// rejected, because a zone is valid on one machine only.
func parsePrefix(text string) (netip.Prefix, bool) {
	if len(text) > maxAllowedIP || strings.Contains(text, "%") {
		return netip.Prefix{}, false
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	if prefix.Addr().Is4In6() {
		if prefix.Bits() < 96 { // wider than all of IPv4, and no IPv6 network either
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), true
}

// ShowIPs formats an allowlist for people: a network of a single address becomes the address. If
// list is nil, ShowIPs returns nil.
func ShowIPs(list []netip.Prefix) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, p := range list {
		if out[i] = p.String(); p.IsSingleIP() {
			out[i] = p.Addr().String()
		}
	}
	return out
}

// allowsAddress reports whether list allows addr. A nil list allows every address, and no other
// list allows the zero Addr.
func allowsAddress(list []netip.Prefix, addr netip.Addr) bool {
	if list == nil {
		return true
	}
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// storeList returns the stored text of a list: JSON, or an empty string for nil.
func storeList(list []string) string {
	if list == nil {
		return ""
	}
	out, _ := json.Marshal(list) // strings only: cannot fail
	return string(out)
}

// loadList decodes a text from storeList. Any other text is an error, so that a damaged row never
// allows more than intended.
func loadList(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("stored allowlist %q is damaged", clip(text))
	}
	return list, nil
}
