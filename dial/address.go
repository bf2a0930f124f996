package dial

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrForbidden reports an address that acuse never connects to, or that the
// owner's egress rule refused.
var ErrForbidden = errors.New("dial: address not allowed")

// never holds what no destination can be. Loopback and the private ranges are not
// here: the owner listed the destination, so the LAN is allowed.
var never = prefixes(
	"0.0.0.0/8",          // unspecified; Linux connects it to loopback
	"169.254.0.0/16",     // link-local, cloud metadata among it
	"224.0.0.0/4",        // multicast
	"255.255.255.255/32", // broadcast
	"192.0.0.192/32",     // Oracle Cloud metadata
	"100.100.100.200/32", // Alibaba Cloud metadata
	"168.63.129.16/32",   // Azure's agent
	"::/128",             // unspecified
	"fe80::/10",          // link-local
	"ff00::/8",           // multicast
	"fd00:ec2::/32",      // AWS metadata, time and names
	"fd20:ce::254/128",   // Google Cloud metadata
)

// Check says whether acuse may connect to a. It is ErrForbidden or nil.
func Check(a netip.Addr) error {
	a = plain(a)
	if !a.IsValid() {
		return fmt.Errorf("%w: no address", ErrForbidden)
	}
	for _, p := range never {
		if p.Contains(a) {
			return fmt.Errorf("%w: %s", ErrForbidden, a)
		}
	}
	return nil
}

// plain gives the address that packets really reach: IPv4 out of its IPv6 forms
// (mapped, compatible, NAT64's well-known prefix, 6to4), without a zone.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case compatible.Contains(a) && a != netip.IPv6Loopback() && a != netip.IPv6Unspecified():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	ps := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		ps[i] = netip.MustParsePrefix(t)
	}
	return ps
}
