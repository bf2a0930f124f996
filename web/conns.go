package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conns caps the open connections, so that strangers who hold theirs cannot keep
// others out: when all places are taken a newcomer gets that of the connection which
// has done least to earn it.
type conns struct {
	max int

	mu   sync.Mutex
	open map[*conn]struct{}
}

// What a connection is at, in the order in which its place is given away.
const (
	waiting int32 = iota // idle, or its headers are not complete
	reading              // in the handler, not let in yet
	working              // in the handler, being stored
)

// readingGrace is how long an unverified request may be at it before its place can be
// given away.
const readingGrace = time.Second

// conn is an accepted connection. A nil conn is one that is not capped; its methods
// do nothing.
type conn struct {
	net.Conn
	list  *conns
	phase atomic.Int32
	since atomic.Int64 // start of the phase, unix nanoseconds
	known atomic.Bool  // brought a verified request before

	closed    chan struct{}
	closeOnce sync.Once
}

func newConns(max int) *conns { return &conns{max: max, open: map[*conn]struct{}{}} }

func (c *conns) listen(l net.Listener) net.Listener { return &capped{Listener: l, conns: c} }

// capped is a listener whose connections are counted.
type capped struct {
	net.Listener
	conns *conns
}

// refusePause bounds the work spent on connections that find no place: a hundred a
// second are accepted and closed.
const refusePause = 10 * time.Millisecond

func (l *capped) Accept() (net.Conn, error) {
	for {
		in, err := l.Listener.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				l.conns.makeRoom(time.Now()) // net/http waits 5 ms to 1 s and asks again
			}
			return nil, err
		}
		if c := l.conns.add(in, time.Now()); c != nil {
			return c, nil
		}
		_ = in.Close()
		time.Sleep(refusePause)
	}
}

// add counts a connection; nil when there is no place for it.
func (c *conns) add(in net.Conn, now time.Time) *conn {
	c.mu.Lock()
	full := len(c.open) >= c.max
	c.mu.Unlock()
	if full && !c.makeRoom(now) {
		return nil
	}
	out := &conn{Conn: in, list: c, closed: make(chan struct{})}
	out.since.Store(now.UnixNano())
	c.mu.Lock()
	c.open[out] = struct{}{}
	c.mu.Unlock()
	return out
}

// makeRoom closes the connection that has earned its place least: one that waits,
// rather a stranger's, rather an old one; else a body that is slow in coming and not
// let in. What is let in is stored, so it is not chosen; should it have become that
// between the choice and the close, only its answer is lost and the sender repeats.
func (c *conns) makeRoom(now time.Time) bool {
	c.mu.Lock()
	var worst *conn
	var worstRank int
	var worstSince int64
	for x := range c.open {
		rank, since := x.rank(now), x.since.Load()
		if rank < 0 {
			continue
		}
		if worst == nil || rank < worstRank || rank == worstRank && since < worstSince {
			worst, worstRank, worstSince = x, rank, since
		}
	}
	c.mu.Unlock()
	if worst == nil {
		return false
	}
	_ = worst.Close()
	return true
}

// rank orders connections by what is lost when they close; -1 is never.
func (c *conn) rank(now time.Time) int {
	switch c.phase.Load() {
	case waiting:
		if c.known.Load() {
			return 1
		}
		return 0
	case reading:
		if now.UnixNano()-c.since.Load() > readingGrace.Nanoseconds() {
			return 2
		}
	}
	return -1
}

func (c *conn) enter(phase int32) {
	c.phase.Store(phase)
	c.since.Store(time.Now().UnixNano())
}

// serve notes that the headers are complete and the handler has begun.
func (c *conn) serve() {
	if c != nil {
		c.enter(reading)
	}
}

// work notes that the request in hand is let in, and whether its signature was good.
func (c *conn) work(signed bool) {
	if c != nil {
		if signed {
			c.known.Store(true)
		}
		c.phase.Store(working)
	}
}

// Close ends the connection and frees its place.
func (c *conn) Close() error {
	c.list.mu.Lock()
	delete(c.list.open, c)
	c.list.mu.Unlock()
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// CloseWrite lets net/http end its side first, so that a refused sender can still
// read the answer.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

// sayGoodbye ends our side after the answer and waits for d, or until the connection
// is closed: its place can be given away from now on.
func (c *conn) sayGoodbye(d time.Duration) {
	if c == nil || c.CloseWrite() != nil {
		return
	}
	c.enter(waiting)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.closed:
	}
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

func connState(nc net.Conn, state http.ConnState) {
	if c, ok := nc.(*conn); ok && state == http.StateIdle {
		c.enter(waiting)
	}
}

// maxConns is the default for a process that may have n descriptors, 0 being not
// known: it leaves a quarter of them, and at least 64, to the store, the destinations
// and the private listener. A thousand connections take some 20 MB.
func maxConns(n int) int {
	const most = 1024
	if n == 0 {
		return most
	}
	return max(16, min(most, n-max(64, n/4)))
}
