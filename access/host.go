package access

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// HostGuard refuses requests whose Host header names none of ours, with a 421
// problem document: a page on a stranger's domain that resolves to this machine
// (DNS rebinding) would otherwise reach the dashboard with the browser's help.
// Allowed are loopback names and addresses, the very address that the connection
// came in on, and hosts ("hooks.example.org", with or without a port).
func HostGuard(hosts []string, next http.Handler) http.Handler {
	allowed := map[string]bool{"localhost": true}
	for _, h := range hosts {
		if h = hostName(h); h != "" {
			allowed[h] = true
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostName(r.Host); allowed[host] || ours(host, r) {
			next.ServeHTTP(w, r)
			return
		}
		misdirected(w)
	})
}

// ours tells whether host is an address that a name cannot stand for: loopback, or
// this end of the connection. Whoever reads the address in the browser's address
// bar was not led here by a name.
func ours(host string, r *http.Request) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip = ip.Unmap(); ip.IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ap, err := netip.ParseAddrPort(local.String())
	return err == nil && ap.Addr().Unmap().WithZone("") == ip.WithZone("")
}

// hostName cuts the port and the brackets off and lowers the case. What is no port
// stays and matches nothing.
func hostName(h string) string {
	if name, port, err := net.SplitHostPort(h); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			h = name
		}
	}
	h = strings.TrimSuffix(strings.TrimPrefix(h, "["), "]")
	return strings.ToLower(strings.TrimSuffix(h, "."))
}

func misdirected(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusMisdirectedRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "urn:acuse:problem:misdirected", "title": http.StatusText(http.StatusMisdirectedRequest),
		"status": http.StatusMisdirectedRequest,
		"detail": "this host name is not one of acuse's; add it to admin.hosts in acuse.yaml",
	})
}
