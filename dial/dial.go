// Package dial makes the connections that leave acuse. A Dialer looks at the
// address of every connection at the moment it is made, after the name was
// resolved, so that a name which changes its mind cannot lead somewhere else; a
// Client sends each request once and goes where it was told, nowhere else.
package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Options of a Dialer.
type Options struct {
	// Egress narrows what Check allows: an error refuses the connection. host is
	// the name that was asked for, addr what it resolved to. nil allows all.
	Egress func(host string, addr netip.AddrPort) error
	// Resolver finds addresses; nil is the system's.
	Resolver *net.Resolver
	// ConnectTimeout bounds name resolution and connecting together; default 10 s.
	ConnectTimeout time.Duration
}

// Dialer connects to allowed addresses only. It is safe for use by several
// goroutines.
type Dialer struct {
	egress func(host string, addr netip.AddrPort) error
	net    net.Dialer
}

// New makes a Dialer.
func New(o Options) *Dialer {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 10 * time.Second
	}
	d := &Dialer{egress: o.Egress}
	d.net = net.Dialer{
		Timeout:        o.ConnectTimeout,
		KeepAlive:      30 * time.Second,
		Resolver:       o.Resolver,
		ControlContext: d.control,
	}
	return d
}

// DialContext is net.Dialer's, with every address checked before it is connected.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return d.net.DialContext(context.WithValue(ctx, hostKey{}, host), network, address)
}

// hostKey carries the name asked for to control, which sees addresses only.
type hostKey struct{}

// control runs between socket and connect, once for each address tried.
func (d *Dialer) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
	default:
		return fmt.Errorf("%w: network %s", ErrForbidden, network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an address", ErrForbidden)
	}
	host, _ := ctx.Value(hostKey{}).(string)
	return d.allow(host, ap)
}

func (d *Dialer) allow(host string, ap netip.AddrPort) error {
	if err := Check(ap.Addr()); err != nil {
		return err
	}
	if d.egress == nil {
		return nil
	}
	if err := d.egress(host, netip.AddrPortFrom(plain(ap.Addr()), ap.Port())); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return nil
}
