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

// machine returns the interfaces of a machine in these networks.
func machine(networks ...string) func() ([]net.Addr, error) {
	return func() ([]net.Addr, error) {
		var addrs []net.Addr
		for _, network := range networks {
			ip, n, err := net.ParseCIDR(network)
			if err != nil {
				return nil, err
			}
			addrs = append(addrs, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		return addrs, nil
	}
}

// TestAddressesOfTheMachineAreRefused checks the public addresses of the guard's own machine, in
// every spelling.
func TestAddressesOfTheMachineAreRefused(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	g.Interfaces = func() ([]net.Addr, error) {
		addrs, err := machine("127.0.0.1/8", "93.184.215.14/24", "10.1.2.3/8", "2606:4700::1111/64", "::ffff:8.8.4.4/120", "fe80::1/64")()
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
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestNamesOfTheMachineAreRefused dials names of the machine itself.
func TestNamesOfTheMachineAreRefused(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{
		"self.example": "93.184.215.14", "mapped.example": "::ffff:93.184.215.14", "six.example": "2606:4700::1111",
		"rebound.example": "93.184.215.14", "second.example": "45.33.32.156",
	} {
		g := egress.New(nil)
		g.Interfaces = machine("93.184.215.14/24", "2606:4700::1111/64", "45.33.32.156/32")
		g.Resolver = serveNames(map[string][]string{name: {addr}}).resolver()
		_, err := g.Client(5 * time.Second).Get("http://" + name + ":81/")
		if !errors.Is(err, egress.ErrNotPublic) || egress.Explain(err) != "the host has no public address" {
			t.Errorf("%s at %s: %v", name, addr, err)
		}
	}
}

// TestPrivateNetworksOpenTheMachine checks that the machine's own addresses are allowed if the
// operator lists them.
func TestPrivateNetworksOpenTheMachine(t *testing.T) {
	t.Parallel()
	g := egress.New([]netip.Prefix{netip.MustParsePrefix("93.184.215.14/32"), netip.MustParsePrefix("2606:4700::/64")})
	g.Interfaces = machine("93.184.215.14/24", "2606:4700::1111/64", "45.33.32.156/32")
	for addr, want := range map[string]bool{
		"93.184.215.14": true, "::ffff:93.184.215.14": true, "2606:4700::1111": true, "45.33.32.156": false, "::ffff:45.33.32.156": false,
	} {
		if got := g.Allows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

// TestInterfacesAreReadAgain checks that a new address of an interface is refused within a second.
func TestInterfacesAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own, reads := "93.184.215.14/24", 0
		g := egress.New(nil)
		g.Interfaces = func() ([]net.Addr, error) {
			reads++
			return machine(own)()
		}
		late := netip.MustParseAddr("45.33.32.156")
		for range 100 {
			if !g.Allows(late) {
				t.Fatal("the address of another machine is refused")
			}
		}
		if reads != 1 {
			t.Errorf("the interfaces were read %d times for a burst", reads)
		}
		own = "45.33.32.156/32"
		time.Sleep(time.Second)
		if g.Allows(late) {
			t.Error("the new address is still allowed after a second")
		}
		if !g.Allows(netip.MustParseAddr("93.184.215.14")) {
			t.Error("a removed address is still refused")
		}
	})
}

// TestUnreadableInterfacesAllowNothing checks that no address is allowed if the machine's
// interfaces cannot be read, because any address may be the machine's.
func TestUnreadableInterfacesAllowNothing(t *testing.T) {
	t.Parallel()
	g := egress.New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	g.Interfaces = func() ([]net.Addr, error) { return nil, errors.New("not permitted") }
	for addr, want := range map[string]bool{"93.184.215.14": false, "2606:4700::1111": false, "10.0.0.1": true} {
		if got := g.Allows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
