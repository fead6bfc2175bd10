package httpapi

import (
	"net/http"
	"net/netip"
	"testing"
)

// TestClientAddress checks the client's address for forwarded requests with and without trusted proxies.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name    string
		remote  string
		trusted []netip.Prefix
		lines   []string
		want    string
	}{
		{"no proxies", "192.0.2.1:4711", nil, []string{"198.51.100.1"}, "192.0.2.1"},
		{"connection not trusted", "192.0.2.1:4711", trusted, []string{"198.51.100.1"}, "192.0.2.1"},
		{"one proxy", "10.0.0.1:4711", trusted, []string{"198.51.100.1"}, "198.51.100.1"},
		{"an entry of the client's own", "10.0.0.1:4711", trusted, []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"chain of proxies", "10.0.0.1:4711", trusted, []string{"203.0.113.9, 198.51.100.1, 10.0.0.3,10.0.0.2"}, "198.51.100.1"},
		{"several lines are one list", "10.0.0.1:4711", trusted, []string{"203.0.113.9", "198.51.100.1, 10.0.0.3", "10.0.0.2"}, "198.51.100.1"},
		{"all trusted", "10.0.0.1:4711", trusted, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"no header", "10.0.0.1:4711", trusted, nil, "10.0.0.1"},
		{"empty entries are skipped", "10.0.0.1:4711", trusted, []string{"198.51.100.1, , ,", ""}, "198.51.100.1"},
		{"an invalid entry ends the walk", "10.0.0.1:4711", trusted, []string{"198.51.100.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"an invalid entry at the right", "10.0.0.1:4711", trusted, []string{"198.51.100.1, _hidden"}, "10.0.0.1"},
		{"port", "10.0.0.1:4711", trusted, []string{"198.51.100.1:80"}, "198.51.100.1"},
		{"IPv6", "[fd00::1]:4711", trusted, []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv6 in brackets", "[fd00::1]:4711", trusted, []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 with port", "[fd00::1]:4711", trusted, []string{"[2001:db8::1]:80"}, "2001:db8::1"},
		{"IPv4 in brackets", "10.0.0.1:4711", trusted, []string{"[198.51.100.1]"}, "10.0.0.1"},
		{"mapped connection", "[::ffff:10.0.0.1]:4711", trusted, []string{"198.51.100.1"}, "198.51.100.1"},
		{"mapped entry", "10.0.0.1:4711", trusted, []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"mapped proxy", "10.0.0.1:4711", trusted, []string{"198.51.100.1, ::ffff:10.0.0.2"}, "198.51.100.1"},
		{"zone", "[fe80::1%eth0]:4711", nil, nil, "fe80::1"},
		{"socket", "@", trusted, []string{"198.51.100.1"}, "invalid IP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.lines}}
			if got := ClientAddress(r, c.trusted).String(); got != c.want {
				t.Errorf("ClientAddress = %s, want %s", got, c.want)
			}
		})
	}
}

// FuzzForwardedFor checks that clients cannot change their address by entries of their own.
func FuzzForwardedFor(f *testing.F) {
	f.Add("203.0.113.9, 198.51.100.1", "10.0.0.2")
	f.Add("[2001:db8::1]:80,,", "::ffff:10.0.0.2%x")
	f.Add("unknown", ",")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, first, second string) {
		r := &http.Request{RemoteAddr: "10.0.0.1:4711", Header: http.Header{"X-Forwarded-For": {first, second}}}
		got := ClientAddress(r, trusted)
		if !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Fatalf("%q, %q: %v is not a plain address", first, second, got)
		}
		// An entry left of an untrusted address must not change the result.
		if !inNetworks(got, trusted) {
			r.Header["X-Forwarded-For"] = append([]string{"192.0.2.66"}, r.Header["X-Forwarded-For"]...)
			if again := ClientAddress(r, trusted); again != got {
				t.Fatalf("%q, %q: an added entry moved the client from %v to %v", first, second, got, again)
			}
		}
		// Joined lines, as HTTP allows, must not change the result.
		r.Header["X-Forwarded-For"] = []string{first + "," + second}
		if joined := ClientAddress(r, trusted); !inNetworks(got, trusted) && joined != got {
			t.Fatalf("%q, %q: %v as lines, %v joined", first, second, got, joined)
		}
	})
}
