package dial

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"
)

// Trace collects the phases of one request. The transport may call its hooks from
// goroutines that outlive the request.
type Trace struct {
	mu                     sync.Mutex
	connectStart, tlsStart time.Time
	wrote                  time.Time
	connect, tls, first    time.Duration
	phase                  Phase
}

// Phase is how far a request came.
type Phase struct {
	Resolving bool // a name is being looked up
	Connected bool
	TLSFailed bool
	Sent      bool // the header is on its way: the other side may have acted
}

// Client is the hooks to put into the request's context.
func (t *Trace) Client() *httptrace.ClientTrace {
	locked := func(f func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		f()
	}
	return &httptrace.ClientTrace{
		GetConn:  func(string) { locked(func() { t.connectStart = time.Now() }) },
		DNSStart: func(httptrace.DNSStartInfo) { locked(func() { t.phase.Resolving = true }) },
		DNSDone:  func(httptrace.DNSDoneInfo) { locked(func() { t.phase.Resolving = false }) },
		ConnectDone: func(_, _ string, err error) {
			locked(func() {
				if err == nil && !t.phase.Connected {
					t.phase.Connected, t.connect = true, time.Since(t.connectStart)
				}
			})
		},
		GotConn:           func(i httptrace.GotConnInfo) { locked(func() { t.phase.Connected = true }) },
		TLSHandshakeStart: func() { locked(func() { t.tlsStart = time.Now() }) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			locked(func() { t.tls, t.phase.TLSFailed = time.Since(t.tlsStart), err != nil })
		},
		WroteHeaders: func() { locked(func() { t.phase.Sent = true }) },
		WroteRequest: func(httptrace.WroteRequestInfo) { locked(func() { t.wrote = time.Now() }) },
		GotFirstResponseByte: func() {
			locked(func() {
				if !t.wrote.IsZero() {
					t.first = time.Since(t.wrote)
				}
			})
		},
	}
}

// Reached is how far the request came.
func (t *Trace) Reached() Phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase
}

// Times are how long connecting, the TLS handshake and the wait for the first byte of
// the answer took; 0 is not measured.
func (t *Trace) Times() (connect, tls, firstByte time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.connect, t.tls, t.first
}
