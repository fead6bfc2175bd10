package egress

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// interfacesLifetime is how long the machine's addresses are cached. A burst of deliveries reads
// the addresses once, and a new address is noticed within a second.
const interfacesLifetime = time.Second

// interfaces caches the addresses of this machine's interfaces. It is safe for concurrent use.
type interfaces struct {
	mu     sync.Mutex
	readAt time.Time
	addrs  []netip.Addr
	err    error
}

// isLocal reports whether an unmapped address belongs to one of this machine's interfaces. A
// service may listen on a public address of an interface only for this machine, protected by a
// firewall, so such an address does not count as public. If the interfaces cannot be read, isLocal
// returns true for every address.
func (g *Guard) isLocal(addr netip.Addr) bool {
	i := &g.interfaces
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := g.now(); i.readAt.IsZero() || now.Sub(i.readAt) >= interfacesLifetime {
		i.readAt = now
		i.addrs, i.err = g.readInterfaces()
	}
	return i.err != nil || slices.Contains(i.addrs, addr)
}

func (g *Guard) readInterfaces() ([]netip.Addr, error) {
	list := g.Interfaces
	if list == nil {
		list = net.InterfaceAddrs
	}
	addresses, err := list()
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, a := range addresses {
		var ip net.IP
		switch a := a.(type) {
		case *net.IPNet:
			ip = a.IP
		case *net.IPAddr:
			ip = a.IP
		}
		if addr, ok := netip.AddrFromSlice(ip); ok {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs, nil
}
