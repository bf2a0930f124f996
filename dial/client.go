package dial

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// ClientOptions of a Client.
type ClientOptions struct {
	// Dialer makes the connections; nil is New(Options{}).
	Dialer *Dialer
	// Proxy as in http.Transport; nil is none, whatever the environment says. With
	// a proxy the connection checked is the one to the proxy, which resolves names
	// by itself; addresses written as numbers are checked all the same.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is cloned; nil is Go's default.
	TLS *tls.Config
	// TLSTimeout bounds the handshake; default 10 s.
	TLSTimeout time.Duration
	// HeaderTimeout bounds the wait for the answer's header once the request is
	// written; default none: the request's context bounds the whole.
	HeaderTimeout time.Duration
	// IdlePerHost connections are kept open between requests; default 32. Give it at least the concurrency of the destinations.
	IdlePerHost int
	// Fresh makes every request over a connection of its own, so that one which the
	// other side closed meanwhile is never written to.
	Fresh bool
}

// idleTimeout closes kept connections before the app does. The shortest limit in
// common use is 5 s (Node.js, uvicorn); a connection that the app closes at the
// moment we write costs an attempt.
const idleTimeout = 4 * time.Second

// Client makes an HTTP/1.1 client for which one call of Do is at most one request
// on the wire. It follows no redirect (a 3xx is the answer), takes no proxy from
// the environment, keeps no cookies and leaves the answer's encoding alone.
func Client(o ClientOptions) *http.Client {
	if o.Dialer == nil {
		o.Dialer = New(Options{})
	}
	if o.TLSTimeout <= 0 {
		o.TLSTimeout = 10 * time.Second
	}
	if o.IdlePerHost <= 0 {
		o.IdlePerHost = 32
	}
	kept := &http.Transport{
		DialContext:            o.Dialer.DialContext,
		Proxy:                  o.Proxy,
		TLSClientConfig:        o.TLS.Clone(),
		TLSHandshakeTimeout:    o.TLSTimeout,
		ResponseHeaderTimeout:  o.HeaderTimeout,
		MaxIdleConns:           8 * o.IdlePerHost,
		MaxIdleConnsPerHost:    o.IdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
	}
	// HTTP/2 repeats streams of a connection that goes away: not one request.
	kept.Protocols.SetHTTP1(true)
	fresh := kept.Clone()
	fresh.DisableKeepAlives = true
	return &http.Client{
		Transport:     &once{dialer: o.Dialer, kept: kept, fresh: fresh, always: o.Fresh},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// once sends every request at most once. When a kept connection breaks,
// http.Transport repeats a request if it can get the body again, and in any case
// one without a body that is a GET or names an Idempotency-Key. So: bodies hide
// behind a type that cannot be read twice, and requests without one go over a
// connection of their own, which the transport never repeats on.
type once struct {
	dialer      *Dialer
	kept, fresh *http.Transport
	always      bool // fresh ones
}

// RoundTrip implements http.RoundTripper.
func (o *once) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := o.checkLiteral(r.URL); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	c := *r // a RoundTripper may not change its argument
	c.GetBody = nil
	if r.Body == nil || r.Body == http.NoBody {
		return o.fresh.RoundTrip(&c)
	}
	c.Body = opaque{r.Body}
	if o.always {
		return o.fresh.RoundTrip(&c)
	}
	return o.kept.RoundTrip(&c)
}

// CloseIdleConnections closes the kept connections.
func (o *once) CloseIdleConnections() {
	o.kept.CloseIdleConnections()
}

// checkLiteral looks at a host that is an address already: behind a proxy the
// dialer never sees it.
func (o *once) checkLiteral(u *url.URL) error {
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil // a name: checked when dialled
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%w: port %q", ErrForbidden, port)
	}
	return o.dialer.allow(u.Hostname(), netip.AddrPortFrom(a, uint16(n)))
}

// opaque hides the kind of a body from http.Transport.
type opaque struct{ io.ReadCloser }
