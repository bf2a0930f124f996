package dial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// cutter is a server that answers the first request of a connection and cuts it
// when the second has been read. It counts requests over all connections.
func cutter(t *testing.T) (addr string, requests *atomic.Int32) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	requests = new(atomic.Int32)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				br := bufio.NewReader(conn)
				for n := 1; n <= 2; n++ {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					requests.Add(1)
					if n == 1 {
						io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			}()
		}
	}()
	return ln.Addr().String(), requests
}

func TestOneCallIsOneRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, body string
		// A request without a body goes over a connection of its own, so the server
		// answers it.
		answered bool
		fresh    bool
	}{
		{"a POST with a body and an idempotency key, cut on a kept connection", "POST", "body", false, false},
		{"an empty POST with an idempotency key", "POST", "", true, false},
		{"a GET", "GET", "", true, false},
		{"a PUT with a body", "PUT", "x", false, false},
		{"a PUT of a client that keeps no connection", "PUT", "x", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr, requests := cutter(t)
			client := Client(ClientOptions{Fresh: c.fresh})
			send := func(method, body string) (*http.Response, error) {
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+"/", bytes.NewReader([]byte(body)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Idempotency-Key", "k")
				resp, err := client.Do(r)
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				return resp, err
			}
			if _, err := send("POST", "first"); err != nil { // leaves a kept connection
				t.Fatal(err)
			}
			_, err := send(c.method, c.body)
			if (err == nil) != c.answered {
				t.Fatalf("second request: %v, want answered %v", err, c.answered)
			}
			if n := requests.Load(); n != 2 {
				t.Fatalf("the server saw %d requests, want 2", n)
			}
		})
	}
}

func TestPlainTransportRepeats(t *testing.T) {
	t.Parallel()
	// Shows that cutter provokes what Client prevents.
	addr, requests := cutter(t)
	client := &http.Client{Transport: &http.Transport{}}
	for range 2 {
		r, _ := http.NewRequest("POST", "http://"+addr+"/", strings.NewReader("body"))
		r.Header.Set("Idempotency-Key", "k")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if n := requests.Load(); n != 3 {
		t.Fatalf("the server saw %d requests of a plain transport, want 3", n)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	var other atomic.Int32
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { other.Add(1) })
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusMovedPermanently)
	})
	resp, err := Client(ClientOptions{}).Post(addr, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 301 || other.Load() != 0 {
		t.Fatalf("status %d, %d requests elsewhere", resp.StatusCode, other.Load())
	}
}

func TestTheEnvironmentsProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	addr := serve(t, func(http.ResponseWriter, *http.Request) {})
	resp, err := Client(ClientOptions{}).Get(addr)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if tr := Client(ClientOptions{}).Transport.(*once); tr.kept.Proxy != nil || tr.fresh.Proxy != nil {
		t.Fatal("a proxy is set")
	}
}

func TestTheAnswerIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	accept := make(chan []string, 1)
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		accept <- r.Header["Accept-Encoding"]
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "not really gzip")
	})
	resp, err := Client(ClientOptions{}).Get(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "not really gzip" || err != nil {
		t.Fatalf("got %q, %v", b, err)
	}
	if got := <-accept; got != nil {
		t.Fatalf("asked for %q by itself", got)
	}
}

func serve(t *testing.T, h http.HandlerFunc) (url string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func proxyTo(t *testing.T, addr string) func(*http.Request) (*url.URL, error) {
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	return http.ProxyURL(u)
}

// fakeDNS is a resolver whose answers come from answer, one call a question (A and
// AAAA ask separately).
func fakeDNS(answer func() (rcode byte, a []netip.Addr)) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			ours.SetDeadline(time.Now().Add(10 * time.Second))
			var size [2]byte // a stream, so framed as over TCP
			if _, err := io.ReadFull(ours, size[:]); err != nil {
				return
			}
			q := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(ours, q); err != nil {
				return
			}
			rcode, addrs := answer()
			ours.Write(dnsAnswer(q, rcode, addrs))
		}()
		return theirs, nil
	}}
}

// dnsAnswer is the framed answer to one question.
func dnsAnswer(q []byte, rcode byte, addrs []netip.Addr) []byte {
	end := 12
	for q[end] != 0 {
		end += int(q[end]) + 1
	}
	kind := binary.BigEndian.Uint16(q[end+1:])
	end += 5
	m := append([]byte{}, q[:end]...)
	m[2], m[3] = 0x81, 0x80|rcode
	copy(m[6:12], []byte{0, 0, 0, 0, 0, 0})
	for _, a := range addrs {
		if kind != 1 || !a.Is4() {
			continue
		}
		b := a.As4()
		m[7]++
		m = append(m, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		m = append(m, b[:]...)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)
}
