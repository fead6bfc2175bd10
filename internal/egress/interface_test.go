package egress_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/egress"
)

// fakeInterfaces returns an Interfaces function that reports these addresses, each with its prefix
// length.
func fakeInterfaces(prefixes ...string) func() ([]net.Addr, error) {
	return func() ([]net.Addr, error) {
		var addrs []net.Addr
		for _, prefix := range prefixes {
			ip, network, err := net.ParseCIDR(prefix)
			if err != nil {
				return nil, err
			}
			addrs = append(addrs, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		return addrs, nil
	}
}

// TestOwnAddressesAreRefused checks that the public addresses of the guard's own machine are
// refused in every notation, and that other addresses in the same networks are allowed.
func TestOwnAddressesAreRefused(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	g.Interfaces = func() ([]net.Addr, error) {
		addrs, err := fakeInterfaces("127.0.0.1/8", "93.184.215.14/24", "10.1.2.3/8", "2606:4700::1111/64", "::ffff:8.8.4.4/120", "fe80::1/64")()
		return append(addrs, &net.IPAddr{IP: net.ParseIP("45.33.32.156")}, &net.UnixAddr{Name: "x"}), err
	}
	for raw, allowed := range map[string]bool{
		"http://93.184.215.14/":                 false,
		"http://93.184.215.14.:8080/hook":       false,
		"http://93.184.215.14:5432/":            false,
		"http://[::ffff:93.184.215.14]/":        false,
		"http://[::ffff:5db8:d70e]/":            false,
		"http://[2606:4700::1111]/":             false,
		"http://[2606:4700:0:0:0:0:0:1111]:81/": false,
		"http://8.8.4.4/":                       false,
		"http://[::ffff:8.8.4.4]/":              false,
		"http://45.33.32.156/":                  false,
		"http://10.1.2.3/":                      false,
		"http://93.184.215.15/":                 true, // another machine in the network
		"http://[2606:4700::1112]/":             true,
		"http://[::ffff:93.184.215.15]/":        true,
		"http://8.8.8.8/":                       true,
	} {
		if _, err := g.Check(raw); (err == nil) != allowed {
			t.Errorf("Check(%s): error %v, want allowed %v", raw, err, allowed)
		}
	}
}

// TestNamesOfOwnAddressesAreRefused checks that names are refused if they resolve to the machine's
// own addresses.
func TestNamesOfOwnAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{
		"self.example": "93.184.215.14", "mapped.example": "::ffff:93.184.215.14", "six.example": "2606:4700::1111",
		"second.example": "45.33.32.156",
	} {
		g := egress.New(nil)
		g.Interfaces = fakeInterfaces("93.184.215.14/24", "2606:4700::1111/64", "45.33.32.156/32")
		g.Resolver = newNameServer(map[string][]string{name: {addr}}).resolver()
		_, err := g.Client(5 * time.Second).Get("http://" + name + ":81/")
		if !errors.Is(err, egress.ErrNotPublic) || egress.Explain(err) != "the host has no public address" {
			t.Errorf("request to %s at %s: error %v, want %v", name, addr, err, egress.ErrNotPublic)
		}
	}
}

// TestPrivateNetworksAllowOwnAddresses checks that the machine's own addresses are allowed if they
// are in the operator's private networks.
func TestPrivateNetworksAllowOwnAddresses(t *testing.T) {
	t.Parallel()
	g := egress.New([]netip.Prefix{netip.MustParsePrefix("93.184.215.14/32"), netip.MustParsePrefix("2606:4700::/64")})
	g.Interfaces = fakeInterfaces("93.184.215.14/24", "2606:4700::1111/64", "45.33.32.156/32")
	for addr, want := range map[string]bool{
		"93.184.215.14": true, "::ffff:93.184.215.14": true, "2606:4700::1111": true, "45.33.32.156": false, "::ffff:45.33.32.156": false,
	} {
		if got := g.Allows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Allows(%s) = %v, want %v", addr, got, want)
		}
	}
}

// TestInterfacesAreReadAgain checks that a new address of an interface is refused within a second.
func TestInterfacesAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ownAddr, reads := "93.184.215.14/24", 0
		g := egress.New(nil)
		g.Interfaces = func() ([]net.Addr, error) {
			reads++
			return fakeInterfaces(ownAddr)()
		}
		newAddr := netip.MustParseAddr("45.33.32.156")
		for range 100 {
			if !g.Allows(newAddr) {
				t.Fatalf("Allows(%s) = false before the machine has the address, want true", newAddr)
			}
		}
		if reads != 1 {
			t.Errorf("100 calls of Allows read the interfaces %d times, want 1", reads)
		}
		ownAddr = "45.33.32.156/32"
		time.Sleep(time.Second)
		if g.Allows(newAddr) {
			t.Errorf("Allows(%s) = true a second after the machine got the address, want false", newAddr)
		}
		if !g.Allows(netip.MustParseAddr("93.184.215.14")) {
			t.Error("Allows(93.184.215.14) = false a second after the machine lost the address, want true")
		}
	})
}

// TestUnreadableInterfacesAllowOnlyPrivateNetworks checks that only the operator's private networks
// are allowed if the machine's interfaces cannot be read, because any public address may be the
// machine's.
func TestUnreadableInterfacesAllowOnlyPrivateNetworks(t *testing.T) {
	t.Parallel()
	g := egress.New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	g.Interfaces = func() ([]net.Addr, error) { return nil, errors.New("not permitted") }
	for addr, want := range map[string]bool{"93.184.215.14": false, "2606:4700::1111": false, "10.0.0.1": true} {
		if got := g.Allows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Allows(%s) = %v, want %v", addr, got, want)
		}
	}
}
