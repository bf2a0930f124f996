package web

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections in memory, so that hours pass in no time.
type pipes struct {
	in   chan net.Conn
	once sync.Once
	done chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.in:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects; the far end is what a sender holds.
func (p *pipes) dial() net.Conn {
	a, b := net.Pipe()
	p.in <- b
	return a
}

// servePipes starts the public listener inside a bubble of synctest.
func servePipes(t *testing.T, e *Edge) *pipes {
	p := &pipes{in: make(chan net.Conn), done: make(chan struct{})}
	s := NewServer(ServerOptions{Handler: e, MaxConns: 100, Log: e.log})
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(p) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
		time.Sleep(time.Minute) // fake: net/http's goroutines see the end
	})
	return p
}

// closedAfter is how long the server keeps a connection on which nothing more comes,
// and what it said before.
func closedAfter(c net.Conn, send string) (time.Duration, string) {
	start := time.Now()
	go func() { _, _ = io.WriteString(c, send) }()
	said, _ := io.ReadAll(c)
	return time.Since(start), string(said)
}

// docs/http.md H11: the time limits.
func TestTimeLimits(t *testing.T) {
	t.Parallel()
	unfinished := "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Sig: x\r\nContent-Length: 1000\r\n\r\n{"
	for _, c := range []struct {
		name, send string
		maxBody    int64
		want       time.Duration
		says       string
	}{
		{"nothing is sent: the headers' 5 s", "", 0, 5 * time.Second, ""},
		{"headers that do not end: 5 s", "POST /in/g HTTP/1.1\r\nHost: h\r\n", 0, 5 * time.Second, ""},
		{"a body that does not end: 15 s, then 408", unfinished, 0, 15 * time.Second, "408"},
		{"a source of 4 MiB has 60 s", unfinished, 4 << 20, 60 * time.Second, "408"},
		{"no source has more than two minutes", unfinished, 1 << 30, 120 * time.Second, "408"},
		{"an idle connection: 60 s", signedRequest("g", "1", "{}"), 0, 60 * time.Second, "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := signedSource("g")
				s.MaxBody = c.maxBody
				p := servePipes(t, newEdge(t, EdgeOptions{Inbox: &inbox{}}, s))
				took, said := closedAfter(p.dial(), c.send)
				if took.Round(time.Second) != c.want || !strings.Contains(said, c.says) {
					t.Errorf("closed after %v, said %.40q", took, said)
				}
			})
		})
	}
}

// A body that took most of its time leaves the answer its own fifteen seconds.
func TestASlowGoodBodyIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{before: func() error { time.Sleep(5 * time.Second); return nil }} // a slow disk, in fake time
		p := servePipes(t, newEdge(t, EdgeOptions{Inbox: in}, signedSource("g")))
		c := p.dial()
		request := signedRequest("g", "1", "{}")
		go func() {
			_, _ = io.WriteString(c, request[:len(request)-1])
			time.Sleep(14 * time.Second)
			_, _ = io.WriteString(c, request[len(request)-1:])
		}()
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "HTTP/1.1 200" {
			t.Errorf("got %q %v", b, err)
		}
		_ = c.Close()
	})
}

// docs/http.md H13: 503 within a second when the bodies under way take the whole budget,
// with Retry-After, while those under way go on.
func TestByteBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, EdgeOptions{Inbox: &inbox{}, InFlight: 40_000}, signedSource("g"))
		p := servePipes(t, e)
		body := strings.Repeat("x", 16_000)
		request := signedRequest("g", "1", body)
		var held []net.Conn
		for range 2 { // two bodies that never end hold 32 000 bytes
			c := p.dial()
			_, _ = io.WriteString(c, request[:len(request)-1])
			held = append(held, c)
		}
		synctest.Wait()
		if got := e.budget.inUse(); got != 32_000 {
			t.Fatalf("in use: %d", got)
		}
		start := time.Now()
		_, said := closedAfter(p.dial(), request)
		if !strings.HasPrefix(said, "HTTP/1.1 503") || !strings.Contains(said, "Retry-After: 1\r\n") || time.Since(start) > 2*time.Second {
			t.Errorf("after %v: %q", time.Since(start), said)
		}
		c := p.dial()
		go func() { _, _ = io.WriteString(c, signedRequest("g", "2", "{}")) }()
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "HTTP/1.1 200" {
			t.Errorf("a small one: %q %v", b, err)
		}
		for _, h := range append(held, c) {
			_ = h.Close()
		}
		synctest.Wait()
		if got := e.budget.inUse(); got != 0 {
			t.Errorf("in use at the end: %d", got)
		}
	})
}

// docs/http.md H8: a body over the limit is read for 64 KiB more at most, whoever goes on
// sending. In memory what the sender got rid of is what the server read.
func TestABodyOverTheLimitIsReadNoFurther(t *testing.T) {
	t.Parallel()
	for name, framing := range map[string]string{
		"in chunks":     "X-Sig: x\r\nTransfer-Encoding: chunked\r\n",
		"with a length": "X-Sig: x\r\nContent-Length: 200000\r\n",
		"unsigned":      "Transfer-Encoding: chunked\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := signedSource("g")
				s.MaxBody = 1000
				c := servePipes(t, newEdge(t, EdgeOptions{Inbox: &inbox{}}, s)).dial()
				sent := make(chan int)
				go func() {
					n, chunk := 0, "3e8\r\n"+strings.Repeat("x", 1000)+"\r\n"
					if _, err := io.WriteString(c, "POST /in/g HTTP/1.1\r\nHost: h\r\n"+framing+"\r\n"); err != nil {
						t.Error(err)
					}
					for {
						wrote, err := io.WriteString(c, chunk)
						if n += wrote; err != nil {
							sent <- n
							return
						}
					}
				}()
				said, _ := io.ReadAll(c)
				if !strings.HasPrefix(string(said), "HTTP/1.1 4") {
					t.Errorf("said %.40q", said)
				}
				if n := <-sent; n > 1000+64<<10+8<<10 { // net/http's own buffers on top
					t.Errorf("%d bytes were read", n)
				}
			})
		})
	}
}

// docs/http.md H13: who only promises a large body holds little.
func TestAPromiseHoldsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, EdgeOptions{Inbox: &inbox{}}, signedSource("g"))
		p := servePipes(t, e)
		for range 50 {
			c := p.dial()
			_, _ = io.WriteString(c, "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Sig: x\r\nContent-Length: 1048576\r\n\r\n{")
		}
		synctest.Wait()
		if got := e.budget.inUse(); got != 50*firstShare {
			t.Errorf("50 promises of a mebibyte hold %d bytes", got)
		}
	})
}

// docs/http.md H14: the slow and the many, scaled down: idle connections, headers and bodies
// in a trickle fill every place; a good request is answered all the same.
func TestSlowAndMany(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: in}, signedSource("g")), 32)
	var attackers []net.Conn
	attack := func(n int, what string) {
		for range n {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			attackers = append(attackers, c)
			_, _ = io.WriteString(c, what)
		}
	}
	defer func() {
		for _, c := range attackers {
			_ = c.Close()
		}
	}()
	good := func(id string) {
		t.Helper()
		start := time.Now()
		dial(t, addr).send(signedRequest("g", id, "{}")).status(200)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("request %s took %v", id, took)
		}
	}
	attack(50, "")
	good("1")
	attack(50, "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Tri")
	good("2")
	attack(20, "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Sig: x\r\nContent-Length: 1000\r\n\r\n{")
	good("3")
	attack(50, "")
	good("4")
	if n := len(in.all()); n != 4 {
		t.Errorf("%d stored", n)
	}
}

// docs/http.md H14.
func TestPlacesAreGivenAwayByMerit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767225600, 0)
	began := func(list *conns, phase int32, age time.Duration, known bool) *conn {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = b.Close() })
		c := list.add(a, now.Add(-age))
		c.phase.Store(phase)
		c.known.Store(known)
		return c
	}
	list := newConns(6)
	working := began(list, working, time.Hour, false)
	fresh := began(list, reading, time.Millisecond, false)
	slow := began(list, reading, 2*time.Second, false)
	friend := began(list, waiting, time.Hour, true)
	young := began(list, waiting, time.Second, false)
	old := began(list, waiting, time.Minute, false)
	for i, want := range []*conn{old, young, friend, slow} {
		if !list.makeRoom(now) {
			t.Fatalf("round %d: no room", i)
		}
		if _, open := list.open[want]; open {
			t.Fatalf("round %d: another one was closed", i)
		}
	}
	if list.makeRoom(now) {
		t.Error("work that is let in, or just began, was cut off")
	}
	for _, c := range []*conn{working, fresh} {
		if _, open := list.open[c]; !open {
			t.Error("a connection that should stay was closed")
		}
	}
}

func TestConnectionsStayUnderTheDescriptorLimit(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 1024, 20: 16, 256: 192, 1024: 768, 1 << 20: 1024} {
		if got := maxConns(n); got != want {
			t.Errorf("of %d: %d, want %d", n, got, want)
		}
	}
	if maxDescriptors() < 0 {
		t.Error("negative")
	}
}

func TestAcceptErrorsDoNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &failing{Listener: &pipes{done: make(chan struct{})}}
		s := NewServer(ServerOptions{Handler: http.NotFoundHandler(), Log: newEdge(t, EdgeOptions{}).log})
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		time.Sleep(10 * time.Second) // fake time
		_ = s.Close()
		time.Sleep(2 * time.Second)
		<-done
		if l.calls > 30 {
			t.Errorf("%d calls in ten seconds", l.calls)
		}
	})
}

// failing is a listener out of descriptors.
type failing struct {
	net.Listener
	calls int
}

type noFiles struct{}

func (noFiles) Error() string   { return "accept: too many open files" }
func (noFiles) Timeout() bool   { return false }
func (noFiles) Temporary() bool { return true }

func (f *failing) Accept() (net.Conn, error) {
	f.calls++
	if f.calls > 10_000 {
		return nil, errors.New("spinning")
	}
	return nil, noFiles{}
}

// docs/http.md H8: the answer reaches a sender that is still talking, whether or not
// it asked to close the connection. A sender like net/http gives up at the first
// write that fails, with the answer unread.
func TestARefusalReachesASenderThatIsStillTalking(t *testing.T) {
	t.Parallel()
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: &inbox{}}, signedSource("g")), 64)
	for name, c := range map[string]struct {
		sig    string
		last   bool
		size   int
		status int
	}{
		"too large":                      {"x", false, 2 << 20, 413},
		"too large, the last request":    {"x", true, 2 << 20, 413},
		"unsigned":                       {"", false, 200 << 10, 401},
		"unsigned, the last request":     {"", true, 200 << 10, 401},
		"unsigned and large":             {"", true, 1 << 20, 401},
		"just more than is read at once": {"", true, 100 << 10, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: c.last}}
			defer client.CloseIdleConnections()
			for range 20 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/in/g", bytes.NewReader(make([]byte, c.size)))
				if err != nil {
					t.Fatal(err)
				}
				if c.sig != "" {
					req.Header.Set("X-Sig", c.sig)
				}
				res, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				said, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != c.status || !strings.HasSuffix(string(said), "}\n") {
					t.Fatalf("answered %s, %q, %v", res.Status, said, err)
				}
			}
		})
	}
}
