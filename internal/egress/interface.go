package egress

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// interfacesFor is how long one reading of the machine's addresses is used:
// a burst of deliveries reads them once, and a new address counts a second later.
const interfacesFor = time.Second

// interfaces remembers the addresses of this machine's interfaces. It is safe
// for concurrent use.
type interfaces struct {
	mu    sync.Mutex
	read  time.Time
	addrs []netip.Addr
	err   error
}

// local reports whether an unmapped address is one of this machine's
// interfaces. A service behind the firewall may listen there for the machine
// alone, so a public address of an interface is not the internet's. If the
// interfaces cannot be read, every address may be one of theirs.
func (g *Guard) local(addr netip.Addr) bool {
	i := &g.interfaces
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := g.now(); i.read.IsZero() || now.Sub(i.read) >= interfacesFor {
		i.read = now
		i.addrs, i.err = g.readInterfaces()
	}
	return i.err != nil || slices.Contains(i.addrs, addr)
}

func (g *Guard) readInterfaces() ([]netip.Addr, error) {
	read := g.Interfaces
	if read == nil {
		read = net.InterfaceAddrs
	}
	found, err := read()
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, a := range found {
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
