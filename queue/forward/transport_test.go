package forward

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"acuse/dial"
	"acuse/store"
)

// raw is a TCP server that hands every connection to serve once a request was read
// from it (or at once when early is set).
func raw(t *testing.T, early bool, serve func(*net.TCPConn)) (addr string) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if !early {
					r, err := http.ReadRequest(bufio.NewReader(c))
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
				}
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return ln.Addr().String()
}

func write(s string) func(*net.TCPConn) { return func(c *net.TCPConn) { io.WriteString(c, s) } }

// reset ends a connection with RST.
func reset(c *net.TCPConn) { c.SetLinger(0) }

// TestDel04 is the transport half of case del-04: each fault is a retryable failure
// with a name of its own, and tells whether the app may have acted.
func TestDel04EachFaultHasItsName(t *testing.T) {
	t.Parallel()
	closed := raw(t, true, func(*net.TCPConn) {})
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := free.Addr().String()
	free.Close()
	selfSigned := httptest.NewUnstartedServer(http.NotFoundHandler())
	selfSigned.Config.ErrorLog = log.New(io.Discard, "", 0)
	selfSigned.StartTLS()
	t.Cleanup(selfSigned.Close)
	name := func(rcode byte) *http.Client {
		return resolving(func() (byte, []netip.Addr, bool) { return rcode, nil, true })
	}
	for _, c := range []struct {
		name, url string
		client    *http.Client
		class     string
		maybe     bool
	}{
		{"the name server fails (SERVFAIL)", "http://app.case.test:9000/", name(2), "dns_failed", false},
		{"no such name (NXDOMAIN)", "http://app.case.test:9000/", name(3), "dns_not_found", false},
		{"the name server is silent", "http://app.case.test:9000/", resolving(func() (byte, []netip.Addr, bool) { return 0, nil, false }), "dns_timeout", false},
		{"connection refused", "http://" + refused, nil, "refused", false},
		{"reset after the request", "http://" + raw(t, false, reset), nil, "reset", true},
		{"empty reply", "http://" + raw(t, false, func(*net.TCPConn) {}), nil, "empty_reply", true},
		{"half a header", "http://" + raw(t, false, write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n")), nil, "empty_reply", true},
		{"a 200 whose body breaks off", "http://" + raw(t, false, write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal")), nil, "empty_reply", true},
		{"a 200 reset in its body", "http://" + raw(t, false, func(c *net.TCPConn) {
			write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal")(c)
			reset(c)
		}), nil, "reset", true},
		{"not HTTP", "http://" + raw(t, false, write("SSH-2.0-SECRET\r\n\r\n")), nil, "not_http", true},
		{"TLS to a server without", "https://" + raw(t, true, write("HTTP/1.0 400 Bad\r\n\r\n")), nil, "tls", false},
		{"TLS handshake closed", "https://" + closed, nil, "tls", false},
		{"certificate of an unknown authority", selfSigned.URL, nil, "tls", false},
		{"silence after the request", "http://" + raw(t, false, func(c *net.TCPConn) { io.CopyN(io.Discard, c, 1) }), nil, "timeout", true},
		{"metadata address", "http://169.254.169.254/latest", nil, "forbidden_address", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := destination(t, Options{URL: c.url, Client: c.client, Timeout: 300 * time.Millisecond})
			if c.class != "timeout" && c.class != "dns_timeout" {
				h.opt.Timeout = 20 * time.Second
			}
			res := h.Send(t.Context(), lease("x", nil))
			if res.Outcome != store.Failed || res.Class != c.class || res.Maybe != c.maybe || res.Error == "" {
				t.Fatalf("got %+v", res)
			}
			if strings.Contains(res.Error, "maybe delivered") != c.maybe || strings.Contains(res.Error, "SECRET") {
				t.Fatalf("text %q", res.Error)
			}
		})
	}
}

func TestA2xxWhoseBodyIsNotReadToItsEndCounts(t *testing.T) {
	t.Parallel()
	addr := raw(t, false, func(c *net.TCPConn) {
		write("HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\nhal")(c)
		io.CopyN(io.Discard, c, 1) // until the client leaves
	})
	res := destination(t, Options{URL: "http://" + addr, Timeout: 200 * time.Millisecond}).Send(t.Context(), lease("x", nil))
	if res.Outcome != store.Succeeded || res.Status != 202 || string(res.Body) != "hal" {
		t.Fatalf("got %+v", res)
	}
}

func TestDel04DeliveredOnceTheNameResolves(t *testing.T) {
	t.Parallel()
	url, got := app(t, nil)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	var up atomic.Bool
	client := resolving(func() (byte, []netip.Addr, bool) {
		if up.Load() {
			return 0, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, true
		}
		return 2, nil, true
	})
	h := destination(t, Options{URL: "http://app.case.test:" + port + "/", Client: client})
	if res := h.Send(t.Context(), lease("x", nil)); res.Class != "dns_failed" {
		t.Fatalf("got %+v", res)
	}
	up.Store(true)
	if res := h.Send(t.Context(), lease("x", nil)); res.Outcome != store.Succeeded {
		t.Fatalf("got %+v", res)
	}
	if s := <-got; s.host != "app.case.test:"+port {
		t.Fatalf("host %q", s.host)
	}
}

// TestOneAttemptIsOneRequest cuts the second request of a kept connection.
func TestOneAttemptIsOneRequest(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	addr := raw(t, true, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		for n := 1; n <= 2; n++ {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			requests.Add(1)
			if n == 1 {
				write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(c)
			}
		}
	})
	h := destination(t, Options{URL: "http://" + addr})
	if res := h.Send(t.Context(), lease("first", nil)); res.Outcome != store.Succeeded {
		t.Fatalf("first: %+v", res)
	}
	res := h.Send(t.Context(), lease("second", nil))
	if res.Outcome != store.Failed || !res.Maybe || !strings.Contains(res.Error, "maybe delivered") {
		t.Fatalf("second: %+v", res)
	}
	if n := requests.Load(); n != 2 {
		t.Fatalf("the app saw %d requests, want 2", n)
	}
}

// TestP9NoSecretInAResult is case adm-04 for destinations: neither the URL's
// password nor its query reaches the text of an attempt.
func TestP9NoSecretInAResult(t *testing.T) {
	t.Parallel()
	urls := []string{
		"http://user:case-SECRET-C@127.0.0.1:1/hook?key=case-SECRET-D",
		"http://user:case-SECRET-C@169.254.169.254/hook?key=case-SECRET-D",
		"https://user:case-SECRET-C@" + raw(t, true, write("case-SECRET-E\r\n")) + "/hook?key=case-SECRET-D",
		"http://user:case-SECRET-C@" + raw(t, false, write("case-SECRET-E\r\n\r\n")) + "/hook?key=case-SECRET-D",
		"http://user:case-SECRET-C@" + raw(t, false, write("HTTP/1.1 500 case-SECRET-E\r\nContent-Length: 13\r\n\r\ncase-SECRET-F")) + "/hook?key=case-SECRET-D",
	}
	for _, u := range urls {
		res := destination(t, Options{URL: u}).Send(t.Context(), lease("case-SECRET-A", http.Header{"X": {"case-SECRET-B"}}))
		if res.Outcome != store.Failed || strings.Contains(res.Error+res.Class, "SECRET") || strings.Contains(res.Error, "hook") {
			t.Errorf("got %+v", res)
		}
	}
}

// resolving is a client whose names are answered by answer; ok false is silence.
func resolving(answer func() (rcode byte, addrs []netip.Addr, ok bool)) *http.Client {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			var size [2]byte // a stream, so framed as over TCP
			if _, err := io.ReadFull(ours, size[:]); err != nil {
				return
			}
			q := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(ours, q); err != nil {
				return
			}
			rcode, addrs, ok := answer()
			if !ok {
				io.ReadFull(ours, size[:1]) // until the resolver gives up
				return
			}
			ours.Write(dnsAnswer(q, rcode, addrs))
		}()
		return theirs, nil
	}}
	return dial.Client(dial.ClientOptions{Dialer: dial.New(dial.Options{Resolver: r})})
}

// dnsAnswer is the framed answer to the one question of q.
func dnsAnswer(q []byte, rcode byte, addrs []netip.Addr) []byte {
	end := 12 + bytes.IndexByte(q[12:], 0) + 5
	address := binary.BigEndian.Uint16(q[end-4:]) == 1 // type A
	m := append([]byte{}, q[:end]...)
	m[2], m[3] = 0x81, 0x80|rcode
	copy(m[6:12], make([]byte, 6))
	for _, a := range addrs {
		if b := a.As4(); address {
			m[7]++
			m = append(m, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
			m = append(m, b[:]...)
		}
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)
}
