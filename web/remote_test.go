package web

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func prefixes(list ...string) (out []netip.Prefix) {
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// docs/http.md H16: the steps of a forwarded header that is not to be believed blindly: 203.0.113.7 is
// allowed, the proxy is 127.0.0.2.
func TestForwardedForIsReadFromTheRightOfATrustedPeer(t *testing.T) {
	t.Parallel()
	proxy := prefixes("127.0.0.2/32", "10.0.0.0/8", "fd00::/8")
	for _, c := range []struct {
		name    string
		trusted []netip.Prefix
		peer    string
		lists   []string
		want    string
	}{
		{"a peer that is not trusted: the header is ignored", proxy, "127.0.0.1:9", []string{"203.0.113.7"}, "127.0.0.1"},
		{"the right end counts, not the left", proxy, "127.0.0.2:9", []string{"203.0.113.7, 198.51.100.9"}, "198.51.100.9"},
		{"what the proxy wrote is believed", proxy, "127.0.0.2:9", []string{"198.51.100.9, 203.0.113.7"}, "203.0.113.7"},
		{"repeated headers are one list", proxy, "127.0.0.2:9", []string{"203.0.113.7", "198.51.100.9"}, "198.51.100.9"},
		{"without the header it is the proxy itself", proxy, "127.0.0.2:9", nil, "127.0.0.2"},
		{"a port is no part of the address", proxy, "127.0.0.2:9", []string{"203.0.113.7:5555"}, "203.0.113.7"},
		{"no trusted proxies: no header has any effect", nil, "127.0.0.2:9", []string{"203.0.113.7"}, "127.0.0.2"},
		{"trusted proxies in the list are passed over", proxy, "127.0.0.2:9", []string{"198.51.100.9, 203.0.113.7, 10.1.2.3"}, "203.0.113.7"},
		{"only trusted ones: the leftmost", proxy, "127.0.0.2:9", []string{"10.1.1.1, 10.2.2.2"}, "10.1.1.1"},
		{"an entry that is no address ends the reading", proxy, "127.0.0.2:9", []string{"203.0.113.7, unknown"}, "127.0.0.2"},
		{"an empty entry too", proxy, "127.0.0.2:9", []string{"203.0.113.7,"}, "127.0.0.2"},
		{"garbage behind a trusted entry leaves that entry", proxy, "127.0.0.2:9", []string{"evil, 10.1.2.3"}, "10.1.2.3"},
		{"a mapped peer is the plain address", proxy, "[::ffff:127.0.0.2]:9", []string{"203.0.113.7"}, "203.0.113.7"},
		{"a mapped entry too", proxy, "127.0.0.2:9", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"IPv6 with brackets and port", proxy, "127.0.0.2:9", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"IPv6 with brackets", proxy, "127.0.0.2:9", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"a zone is dropped", proxy, "[fd00::1%eth0]:9", []string{"2001:db8::1"}, "2001:db8::1"},
		{"a socket without an address", proxy, "@", []string{"203.0.113.7"}, "invalid IP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.lists}}
			if got := sender(r, c.trusted, "X-Forwarded-For").String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAllowIPsSeesTheBelievedAddress(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	s := signedSource("g")
	s.AllowIPs = prefixes("203.0.113.7/32")
	e := newEdge(t, EdgeOptions{Inbox: in, TrustedProxies: prefixes("192.0.2.0/24")}, s)
	// httptest's peer is 192.0.2.1.
	sig := sign("s3cret", []byte("{}"))
	if w := post(e, "/in/g", "{}", "X-Sig", sig, "X-Id", "1", "X-Forwarded-For", "198.51.100.9, 203.0.113.7"); w.Code != 200 {
		t.Errorf("allowed: %d", w.Code)
	}
	if w := post(e, "/in/g", "{}", "X-Sig", sig, "X-Id", "2", "X-Forwarded-For", "203.0.113.7, 198.51.100.9"); w.Code != 401 {
		t.Errorf("not allowed: %d", w.Code)
	}
	if w := post(e, "/in/g", "{}", "X-Sig", sig, "X-Id", "3", "X-Real-IP", "203.0.113.7"); w.Code != 401 {
		t.Errorf("another header than the chosen one: %d", w.Code)
	}
	if all := in.all(); len(all) != 1 || all[0].Remote != "203.0.113.7" {
		t.Errorf("stored: %+v", all)
	}
}

// FuzzSender: a header of a peer that is not trusted changes nothing, and what a
// trusted one says is an address that stands in the list, or the peer.
func FuzzSender(f *testing.F) {
	f.Add("127.0.0.2:1", "203.0.113.7, 198.51.100.9")
	f.Add("127.0.0.2:1", "[::1]:1,,x")
	f.Add("8.8.8.8:1", "203.0.113.7")
	trusted := prefixes("127.0.0.2/32")
	f.Fuzz(func(t *testing.T, peerAddr, list string) {
		r := &http.Request{RemoteAddr: peerAddr, Header: http.Header{"X-Forwarded-For": {list}}}
		at := peer(peerAddr)
		got := sender(r, trusted, "X-Forwarded-For")
		if !within(at, trusted) {
			if got != at {
				t.Fatalf("an untrusted peer %v was believed: %v", at, got)
			}
			return
		}
		if got == at {
			return
		}
		for entry := range strings.SplitSeq(list, ",") {
			if a, ok := forwarded(entry); ok && a == got {
				return
			}
		}
		t.Fatalf("%v is not in %q", got, list)
	})
}
