package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// sender is the address that a request is believed to come from. Without trusted
// proxies it is the peer and no header has any effect. Behind one, the forwarded
// list is read from the right, where the nearest proxy wrote: the first address that
// is no trusted proxy is the sender. Repeated headers are one list.
//
// An entry that is no address ends the reading: what stands left of it was written
// by nobody we know, so the proxy that vouched for it is taken.
func sender(r *http.Request, trusted []netip.Prefix, header string) netip.Addr {
	at := peer(r.RemoteAddr)
	if len(trusted) == 0 || !within(at, trusted) {
		return at
	}
	lists := r.Header[header]
	for i := len(lists) - 1; i >= 0; i-- {
		list := lists[i]
		for more := true; more; {
			var entry string
			if c := strings.LastIndexByte(list, ','); c >= 0 {
				list, entry = list[:c], list[c+1:]
			} else {
				entry, more = list, false
			}
			addr, ok := forwarded(entry)
			if !ok {
				return at
			}
			if at = addr; !within(at, trusted) {
				return at
			}
		}
	}
	return at
}

// peer is the address of the other end of the connection; the zero Addr for a
// socket that has none.
func peer(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return plain(ap.Addr())
}

// forwarded reads one entry: an address, perhaps with a port or in brackets.
func forwarded(entry string) (netip.Addr, bool) {
	entry = strings.TrimSpace(entry)
	if a, err := netip.ParseAddr(entry); err == nil {
		return plain(a), true
	}
	if ap, err := netip.ParseAddrPort(entry); err == nil {
		return plain(ap.Addr()), true
	}
	if n := len(entry); n > 2 && entry[0] == '[' && entry[n-1] == ']' {
		if a, err := netip.ParseAddr(entry[1 : n-1]); err == nil && a.Is6() {
			return plain(a), true
		}
	}
	return netip.Addr{}, false
}

// plain makes one address of the several ways to write it.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
