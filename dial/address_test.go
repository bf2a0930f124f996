package dial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, addr string
		ok         bool
	}{
		{"loopback is the owner's own machine", "127.0.0.1", true},
		{"IPv6 loopback", "::1", true},
		{"private LAN", "192.168.1.20", true},
		{"private LAN of containers", "172.17.0.2", true},
		{"carrier-grade range, used by overlay networks", "100.64.0.7", true},
		{"unique local IPv6", "fd12:3456::1", true},
		{"the internet", "93.184.216.34", true},
		{"IPv6 internet", "2606:2800:220:1::1", true},
		{"mapped loopback", "::ffff:127.0.0.1", true},
		{"metadata", "169.254.169.254", false},
		{"metadata of ECS tasks", "169.254.170.2", false},
		{"mapped metadata", "::ffff:169.254.169.254", false},
		{"compatible metadata", "::169.254.169.254", false},
		{"metadata through NAT64", "64:ff9b::a9fe:a9fe", false},
		{"metadata through 6to4", "2002:a9fe:a9fe::1", false},
		{"AWS metadata over IPv6", "fd00:ec2::254", false},
		{"Google metadata over IPv6", "fd20:ce::254", false},
		{"Alibaba metadata", "100.100.100.200", false},
		{"Oracle metadata", "192.0.0.192", false},
		{"Azure agent", "168.63.129.16", false},
		{"link-local IPv6", "fe80::1", false},
		{"link-local IPv6 with a zone", "fe80::1%eth0", false},
		{"multicast", "239.1.2.3", false},
		{"IPv6 multicast", "ff02::1", false},
		{"unspecified", "0.0.0.0", false},
		{"this network", "0.1.2.3", false},
		{"IPv6 unspecified", "::", false},
		{"mapped unspecified", "::ffff:0.0.0.0", false},
		{"broadcast", "255.255.255.255", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(netip.MustParseAddr(c.addr))
			if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrForbidden)) {
				t.Fatalf("%s: got %v, want allowed %v", c.addr, err, c.ok)
			}
		})
	}
	if err := Check(netip.Addr{}); !errors.Is(err, ErrForbidden) {
		t.Fatalf("no address: got %v", err)
	}
}

func TestDialerChecksWhatANameResolvedTo(t *testing.T) {
	t.Parallel()
	var moved atomic.Bool
	names := fakeDNS(func() (rcode byte, a []netip.Addr) {
		if moved.Load() {
			return 0, []netip.Addr{netip.MustParseAddr("169.254.169.254")}
		}
		return 0, []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	})
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	d := New(Options{Resolver: names})
	target := net.JoinHostPort("app.case.test", port)
	conn, err := d.DialContext(t.Context(), "tcp", target)
	if err != nil {
		t.Fatalf("first attempt: %v", err)
	}
	conn.Close()
	moved.Store(true)
	if _, err := d.DialContext(t.Context(), "tcp", target); !errors.Is(err, ErrForbidden) {
		t.Fatalf("after the name moved: got %v, want ErrForbidden", err)
	}
}

func TestEgressNarrows(t *testing.T) {
	t.Parallel()
	refused := errors.New("not in egress")
	var host string
	var addr netip.AddrPort
	d := New(Options{Egress: func(h string, a netip.AddrPort) error { host, addr = h, a; return refused }})
	_, err := d.DialContext(t.Context(), "tcp", "[::ffff:127.0.0.1]:9")
	if !errors.Is(err, ErrForbidden) || !errors.Is(err, refused) {
		t.Fatalf("got %v, want the rule's refusal", err)
	}
	if host != "::ffff:127.0.0.1" || addr != netip.MustParseAddrPort("127.0.0.1:9") {
		t.Fatalf("the rule saw %q %v", host, addr)
	}
}

func TestOtherNetworksAreRefused(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	if err := d.control(context.Background(), "unix", "/run/x", nil); !errors.Is(err, ErrForbidden) {
		t.Fatalf("got %v", err)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "no-port"); err == nil {
		t.Fatal("an address without a port was dialled")
	}
}

func TestClientChecksNumbersBehindAProxy(t *testing.T) {
	t.Parallel()
	proxied := make(chan string, 1)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { proxied <- r.URL.String() })
	c := Client(ClientOptions{Proxy: proxyTo(t, proxy)})
	resp, err := c.Get("http://169.254.169.254/latest/meta-data")
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, ErrForbidden) {
		t.Fatalf("got %v, want ErrForbidden", err)
	}
	resp, err = c.Get("http://app.case.test/hook")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := <-proxied; got != "http://app.case.test/hook" {
		t.Fatalf("the proxy was asked for %q", got)
	}
}
