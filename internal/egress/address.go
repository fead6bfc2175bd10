package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AddressError reports an unusable address from a user, or an unusable response from such an
// address.
type AddressError struct {
	Text string // a sentence for the user, with advice
}

// Error implements error.
func (e *AddressError) Error() string { return e.Text }

func addressError(text string) error { return &AddressError{text} }

// maxAddress is the longest address in characters (interface.md, Endpoints).
const maxAddress = 2000

// maxContentAddress is the longest address in a request body, in characters. Signed URLs of object
// stores are long.
const maxContentAddress = 8000

// Bounds of a host's name (RFC 1035).
const (
	maxName  = 253
	maxLabel = 63
)

// Check parses an address from a user. It returns an *AddressError unless the address is an
// absolute http or https URL of at most 2000 characters, with a host and without user and password.
// Private IP addresses in any notation and private names such as localhost are errors too. Check
// does not resolve names. A name that resolves to a private address fails when it is dialled.
func (g *Guard) Check(raw string) (*url.URL, error) { return g.check(raw, maxAddress) }

// CheckContent applies the rules of Check to an address in a request body, which the provider would
// fetch. The address may have 8000 characters.
func (g *Guard) CheckContent(raw string) error {
	_, err := g.check(raw, maxContentAddress)
	return err
}

func (g *Guard) check(raw string, limit int) (*url.URL, error) {
	switch {
	case raw == "":
		return nil, addressError("The address is empty. Give one that begins with https:// or http://.")
	case utf8.RuneCountInString(raw) > limit:
		return nil, addressError(fmt.Sprintf("The address is longer than %d characters. Give a shorter one.", limit))
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, isForbidden):
		return nil, addressError("The address has a space, a backslash or a control character in it. Escape it as %20 and the like.")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, addressError("The address cannot be read as a URL. Check how its host, port and escapes are written.")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, addressError("The address must begin with https:// or http://.")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, addressError("The address has no host. Write it like https://example.com/path.")
	case u.User != nil:
		return nil, addressError("The address has a user name or password in it. Leave that out; " +
			"put a secret into the path or query if you need one.")
	}
	if err := checkPort(u.Port()); err != nil {
		return nil, err
	}
	if err := g.checkHost(u); err != nil {
		return nil, err
	}
	return u, nil
}

// isForbidden reports whether r must not occur in an address, because programs parse r differently
// or because r is invisible.
func isForbidden(r rune) bool {
	return r == '\\' || unicode.IsSpace(r) || unicode.IsControl(r) ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func checkPort(port string) error {
	if port == "" {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return addressError("The port of the address must be a number from 1 to 65535.")
	}
	return nil
}

var errPrivate = &AddressError{"The address is not public. Give one that can be reached from the internet."}

// checkHost rejects private IP addresses and well-known private names.
func (g *Guard) checkHost(u *url.URL) error {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(host)
		switch {
		case err != nil || !addr.Is6():
			return addressError("The text in brackets in the address is not an IPv6 address.")
		case !g.Allows(addr):
			return errPrivate
		}
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	labels := strings.Split(name, ".")
	if endsInNumber(labels) {
		// Some programs read 127.1, 0x7f000001 and 017700000001 as 127.0.0.1.
		addr, err := netip.ParseAddr(host)
		switch {
		case err != nil || !addr.Is4():
			return addressError("Write the IPv4 address in the address as four decimal numbers from 0 to 255, without leading zeros, like 8.8.8.8.")
		case !g.Allows(addr):
			return errPrivate
		}
		return nil
	}
	if err := checkName(name, labels); err != nil {
		return err
	}
	if g.isPrivateName(labels) {
		return errPrivate
	}
	return nil
}

// endsInNumber reports whether the last label is a decimal, octal or hexadecimal number. Such a
// host is an IPv4 address, because no top-level domain is a number.
func endsInNumber(labels []string) bool {
	last := labels[len(labels)-1]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// checkName rejects names that are not valid in the DNS.
func checkName(name string, labels []string) error {
	if len(name) > maxName {
		return addressError("The host of the address is longer than a name can be (253 characters).")
	}
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return addressError("The host of the address is not a valid name: each part between dots must have 1 to 63 characters, " +
				"and no dash at its ends.")
		}
		for _, r := range label {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			case r > unicode.MaxASCII:
				return addressError("The host of the address has letters beyond ASCII. Write an international name in its ASCII form, " +
					"which begins with xn--.")
			default:
				return addressError("The host of the address may hold letters, digits, dashes and dots only.")
			}
		}
	}
	return nil
}

// privateDomains are domains outside the public DNS.
var privateDomains = []string{"local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa"}

// isPrivateName reports whether a name, split into lower-case labels, is known to be private. If
// the operator allows a private network other than loopback, names other than localhost are only
// checked when they are dialled.
func (g *Guard) isPrivateName(labels []string) bool {
	if labels[len(labels)-1] == "localhost" {
		return !g.Allows(netip.AddrFrom4([4]byte{127, 0, 0, 1})) && !g.Allows(netip.IPv6Loopback())
	}
	if slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return !p.Addr().IsLoopback() }) {
		return false
	}
	name := strings.Join(labels, ".")
	return len(labels) == 1 || slices.ContainsFunc(privateDomains, func(domain string) bool {
		return strings.HasSuffix(name, "."+domain)
	})
}
