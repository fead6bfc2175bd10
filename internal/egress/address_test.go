package egress_test

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"tollgate/internal/egress"
)

// rejectedURLs lists addresses that a guard without private networks must reject.
var rejectedURLs = []string{
	// loopback, in every notation of IPv4
	"http://127.0.0.1", "http://127.0.0.1:8080/hook", "https://127.255.255.254/", "http://127.1/", "http://127.0.1/",
	"http://2130706433/", "http://0x7f000001/", "http://0X7F000001/", "http://017700000001/", "http://0177.0.0.1/",
	"http://0x7f.0.0.1/", "http://0x7f.1/", "http://127.0.0.01/", "http://127.0.0.1./", "http://127.0.0.0x1/",
	"http://00000177.0.0.1/", "http://127.000.000.001/", "http://4294967295/", "http://0x/", "http://999.999.999.999/",
	"http://1.2.3.4.5/", "http://256.0.0.1/", "http://example.1/", "http://example.0x7f/",
	// other networks of IPv4
	"http://0.0.0.0/", "http://0/", "http://0.1.2.3/", "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/",
	"http://172.31.255.255/", "http://192.168.1.1/", "http://3232235777/", "http://169.254.1.1/", "http://100.64.0.1/",
	"http://100.127.255.255/", "http://192.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/", "http://198.51.100.7/",
	"http://203.0.113.7/", "http://192.88.99.1/", "http://224.0.0.1/", "http://239.255.255.250/", "http://240.0.0.1/",
	"http://255.255.255.255/", "http://192.31.196.1/", "http://192.175.48.1/", "http://192.52.193.1/",
	// metadata of clouds
	"http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/", "http://169.254.170.2/v2",
	"http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/", "http://[fd00:ec2::254]/",
	"http://metadata.google.internal/", "http://metadata/", "http://[fe80::a9fe:a9fe]/",
	// IPv6, and IPv4 within it
	"http://[::]/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
	"http://[::ffff:10.0.0.1]/", "http://[::FFFF:A9FE:A9FE]/", "http://[::127.0.0.1]/", "http://[::8.8.8.8]/",
	"http://[::ffff:0:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b::8.8.8.8]/",
	"http://[64:ff9b:1::a00:1]/", "http://[64:ff9b:1:ffff::1]/", "http://[2002:7f00:1::]/", "http://[2002:808:808::1]/",
	"http://[2001::1]/", "http://[2001:0:5ef5:79fd::1]/", "http://[2001:db8::1]/", "http://[2001:2::1]/", "http://[2001:10::1]/",
	"http://[2001:20::1]/", "http://[3fff::1]/", "http://[3ffe::1]/", "http://[100::1]/", "http://[5f00::1]/",
	"http://[2620:4f:8000::1]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/",
	"http://[2606:4700::1111%25eth0]/", "http://[fec0::1]/", "http://[fc00::1]/", "http://[fdff::1]/", "http://[ff02::1]/",
	"http://[ff0e::1]/", "http://[4000::1]/", "http://[8.8.8.8]/", "http://[example.com]/", "http://[::1", "http://[]/", "http://::1/",
	// names
	"http://localhost/", "http://LOCALHOST:3000/", "http://localhost./", "http://a.b.localhost/", "http://localhost.localdomain/",
	"http://ip6-localhost/", "http://printer.local/", "http://db.internal./", "http://db/", "http://wiki.corp/", "http://router.lan/",
	"http://nas.home.arpa/", "http://..", "http://./", "http://a..example.com/", "http://-a.example.com/", "http://a-.example.com/",
	"http://" + strings.Repeat("a", 64) + ".example.com/", "http://" + strings.Repeat("a.", 130) + "example/",
	// letters beyond ASCII; some programs read them as ASCII
	"http://１２７.０.０.１/", "http://127。0。0。1/", "http://ｌocalhost/", "http://ⓛocalhost/", "http://localhoſt/", "http://①②⑦.0.0.1/",
	"http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "http://bücher.example/",
	// user names, schemes, shapes
	"http://user@example.com/", "http://user:pass@example.com/", "http://:@example.com/", "http://@example.com/",
	"http://example.com@127.0.0.1/", "http://example.com\\@127.0.0.1/", "http://127.0.0.1\\@example.com/",
	"ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "javascript:alert(1)", "data:text/plain,x", "ws://example.com/",
	"httpx://example.com/", "//example.com/", "/path", "example.com/hook", "http:example.com", "http:/example.com", "http:///path",
	"http://", "https://:443/", "http://?x", "", " ", " http://example.com/", "http://example.com/ ", "http://exam ple.com/",
	"http://example.com/a b", "http://example.com/\r\nx: y", "http://example.com/\x00", "http://exa\tmple.com/", "http://example.com/\u200b",
	"http://exa\u034fmple.com/", "http://example.com/\u3164", "http://example.com/a\ufe0f",
	"http://%31%32%37.0.0.1/", "http://example.com%00/", "http://example.com/%zz", "http://exa!mple.com/", "http://exa*mple.com/",
	"\xff\xfe://x",
	"http://example.com/\xff",
	// ports
	"http://example.com:0/", "http://example.com:65536/", "http://example.com:99999999999999999999/", "http://example.com:-1/",
	"http://example.com:http/", "http://example.com:80:80/", "http://example.com:+80/",
	// length
	"https://example.com/" + strings.Repeat("a", 1981), "https://example.com/" + strings.Repeat("é", 1981),
}

// acceptedURLs lists addresses that a guard without private networks must accept, even if the host
// does not resolve.
var acceptedURLs = []string{
	"http://example.com", "https://example.com/", "HTTPS://Example.COM/Hook?a=b&c=d#part", "https://example.com:8443/x",
	"http://example.com:1/",
	"http://example.com:65535/", "http://example.com./", "https://a_b.example.com/", "https://xn--bcher-kva.example/",
	"https://no-such-host.invalid/",
	"http://8.8.8.8/", "http://8.8.8.8:8080/", "http://172.15.255.255/", "http://172.32.0.1/", "http://100.63.255.255/", "http://100.128.0.1/",
	"http://192.167.255.255/", "http://198.17.255.255/", "http://198.20.0.1/", "http://223.255.255.255/", "http://169.253.255.255/",
	"http://11.0.0.1/",
	"https://[2606:4700::1111]/", "https://[2606:4700::1111]:8443/", "https://[2001:4860:4860::8888]/", "http://[::ffff:8.8.8.8]/",
	"http://localhost.example.com/", "http://internal.example.com/", "http://127.0.0.1.example.com/", "http://1e100.net/",
	"http://0x7f.example/", "http://3.example/",
	"https://example.com/caf%C3%A9/é?q=%20", "https://example.com/?next=http://127.0.0.1/", "https://example.com/@user",
	"https://example.com:/",
	"https://example.com/" + strings.Repeat("a", 1980), "https://example.com/" + strings.Repeat("é", 1980),
}

func TestCheckRejectsInvalidAndPrivateAddresses(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	if len(rejectedURLs) < 60 {
		t.Fatalf("rejectedURLs has %d addresses, want at least 60", len(rejectedURLs))
	}
	for _, raw := range rejectedURLs {
		u, err := g.Check(raw)
		var addressErr *egress.AddressError
		switch {
		case err == nil:
			t.Errorf("Check(%q) = %v, want an error", raw, u)
		case !errors.As(err, &addressErr) || !strings.HasSuffix(addressErr.Text, "."):
			t.Errorf("Check(%q): error %v, want a sentence for the user", raw, err)
		case strings.Contains(raw, "pass") && strings.Contains(addressErr.Text, "pass@"):
			t.Errorf("Check(%q): error %v, want an error without the password", raw, err)
		}
	}
}

func TestCheckAcceptsPublicAddresses(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	for _, raw := range acceptedURLs {
		u, err := g.Check(raw)
		if err != nil {
			t.Errorf("Check(%q): error %v, want none", raw, err)
			continue
		}
		if u.Scheme != "http" && u.Scheme != "https" {
			t.Errorf("Check(%q) = %v, want an http or https URL", raw, u)
		}
	}
}

func TestPrivateNetworksAllowOnlyTheirAddresses(t *testing.T) {
	t.Parallel()
	g := egress.New([]netip.Prefix{
		netip.MustParsePrefix("127.0.0.9/8"), netip.MustParsePrefix("fd12::/16"), netip.MustParsePrefix("::ffff:10.1.0.0/112"),
	})
	for raw, allowed := range map[string]bool{
		"http://127.0.0.1:9000/": true, "http://[::ffff:127.0.0.1]/": true, "http://localhost:9000/": true, "http://app.localhost/": true,
		"http://[fd12::1]/": true, "http://10.1.2.3/": true, "http://receiver/": true, "http://receiver.internal/": true, "http://8.8.8.8/": true,
		"http://10.2.0.1/": false, "http://192.168.0.1/": false, "http://[::1]/": false, "http://[fd13::1]/": false,
		"http://[fd12::1%25eth0]/": false,
		"http://2130706433/":       false, "http://169.254.169.254/": false, "http://user@127.0.0.1/": false,
	} {
		if _, err := g.Check(raw); (err == nil) != allowed {
			t.Errorf("Check(%s): error %v, want allowed %t", raw, err, allowed)
		}
	}
	loopbackGuard := egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")})
	for _, raw := range rejectedURLs {
		if _, err := loopbackGuard.Check(raw); err == nil && !strings.Contains(raw, "127") && !strings.Contains(raw, ":1]") &&
			!strings.Contains(strings.ToLower(raw), "localhost") {
			t.Errorf("Check(%q) succeeds if only loopback is allowed, want an error", raw)
		}
	}
	if _, err := egress.New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}).Check("http://localhost/"); err == nil {
		t.Error("Check(http://localhost/) succeeds if only 10.0.0.0/8 is allowed, want an error")
	}
}

// TestAllows checks Allows at the first and last addresses of the reserved networks.
func TestAllows(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	for addr, want := range map[string]bool{
		"9.255.255.255": true, "10.0.0.0": false, "10.255.255.255": false, "11.0.0.0": true,
		"126.255.255.255": true, "127.0.0.0": false, "128.0.0.0": true,
		"168.63.129.15": true, "168.63.129.16": false, "168.63.129.17": true,
		"1fff:ffff::1": false, "2000::1": true, "2001:1ff:ffff::1": false, "2001:200::1": true,
		"2001:db7::1": true, "2001:db8:ffff::1": false, "2001:db9::1": true, "2003::1": true,
		"3ffd::1": true, "3ffe::1": false, "3fff:fff::1": false, "3fff:1000::1": true, "4000::1": false,
		"::ffff:1.1.1.1": true, "::ffff:10.0.0.1": false,
	} {
		if got := g.Allows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Allows(%s) = %t, want %t", addr, got, want)
		}
	}
	if g.Allows(netip.Addr{}) {
		t.Error("Allows of the zero address = true, want false")
	}
}

// FuzzCheck checks that neither the standard library nor the rules of C's inet_aton parse an
// accepted address as a private IP address.
func FuzzCheck(f *testing.F) {
	for _, raw := range rejectedURLs {
		f.Add(raw)
	}
	for _, raw := range acceptedURLs {
		f.Add(raw)
	}
	g := egress.New(nil)
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := g.Check(raw)
		if err != nil {
			if u != nil {
				t.Fatalf("Check(%q) returned the URL %v and the error %v", raw, u, err)
			}
			return
		}
		if (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.Hostname() == "" || utf8.RuneCountInString(raw) > 2000 {
			t.Fatalf("Check(%q) = %v, want an error", raw, u)
		}
		host := u.Hostname()
		if strings.ContainsFunc(host, func(r rune) bool { return r > 0x7e || r <= ' ' }) {
			t.Fatalf("Check(%q): host %q, want printable ASCII", raw, host)
		}
		if ip := net.ParseIP(host); ip != nil &&
			(ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast()) {
			t.Fatalf("Check(%q) accepted the private address %v", raw, ip)
		}
		if ip, ok := aton(strings.TrimSuffix(host, ".")); ok && !g.Allows(ip) {
			t.Fatalf("Check(%q) accepted a host that C programs parse as %v", raw, ip)
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host {
			t.Fatalf("Check(%q): host %q, but the URL parsed again is %v, %v", raw, u.Host, again, err)
		}
	})
}

// aton parses an IPv4 address by the rules of inet_aton: one to four numbers, each decimal, octal
// or hexadecimal; the last number fills the remaining bytes.
func aton(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, ok := atonNumber(strings.ToLower(part))
		if !ok {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			value = value<<(8*(4-i)) | n
		} else {
			value = value<<8 | n&0xff
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// atonNumber parses a decimal, octal or hexadecimal number of aton.
func atonNumber(part string) (n uint64, ok bool) {
	base := uint64(10)
	switch {
	case strings.HasPrefix(part, "0x"):
		base, part = 16, part[2:]
	case strings.HasPrefix(part, "0"):
		base = 8
	}
	if part == "" || len(part) > 15 {
		return 0, false
	}
	for _, r := range part {
		digit := uint64(strings.IndexRune("0123456789abcdef", r))
		if digit >= base {
			return 0, false
		}
		n = n*base + digit
	}
	return n, true
}
