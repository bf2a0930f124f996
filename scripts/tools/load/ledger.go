package load

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ledger is what the sending process knows: which events it made and which of them were
// answered 2xx. Acknowledged ids also go to a file.
type Ledger struct {
	mu      sync.Mutex
	acked   map[string]bool
	sent    map[string][][32]byte // SHA-256 of every body sent under an id
	open    []int64               // numbers that got no answer or a refusal: sent again in the next life
	file    *bufio.Writer
	prefix  string
	next    atomic.Int64
	refused []time.Duration // how long each 503 took
	bare    int             // answers of 503 without Retry-After
	late    atomic.Int64    // answers other than 2xx while acuse was up
}

// NewLedger makes one that writes acknowledged ids to w, which lies outside what can be
// lost. prefix begins every event id.
func NewLedger(w io.Writer, prefix string) *Ledger {
	return &Ledger{acked: map[string]bool{}, sent: map[string][][32]byte{}, file: bufio.NewWriter(w), prefix: prefix}
}

// Load sends from clients connections until ctx ends, then writes down what was
// acknowledged.
func (l *Ledger) Load(ctx context.Context, addr string, clients int) error {
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() { l.send(ctx, addr) })
	}
	wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Flush()
}

// send posts events on one connection until ctx ends; first those left open.
func (l *Ledger) send(ctx context.Context, addr string) {
	c := &Client{Addr: addr, Timeout: 5 * time.Second}
	defer c.Close()
	for ctx.Err() == nil {
		n, ok := l.takeOpen()
		if !ok {
			n = l.next.Add(1)
		}
		if !l.post(c, n) {
			// acuse is gone, or is about to be: do not spin until the loop notices
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// post sends event n and writes down whether it was acknowledged.
func (l *Ledger) post(c *Client, n int64) bool {
	id := EventID(l.prefix, n)
	now := time.Now()
	body := Body(id, now)
	sum := sha256.Sum256(body)
	l.mu.Lock()
	if !slices.Contains(l.sent[id], sum) {
		l.sent[id] = append(l.sent[id], sum)
	}
	l.mu.Unlock()
	status, _, err := c.Post("/in/load", body, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && status/100 == 2 {
		l.acked[id] = true
		fmt.Fprintln(l.file, id)
		return true
	}
	switch {
	case err != nil:
	case status != http.StatusServiceUnavailable:
		l.late.Add(1)
	default:
		l.refused = append(l.refused, time.Since(now))
		if c.RetryAfter == "" {
			l.bare++
		}
	}
	l.open = append(l.open, n)
	return false
}

func (l *Ledger) takeOpen() (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return 0, false
	}
	n := l.open[len(l.open)-1]
	l.open = l.open[:len(l.open)-1]
	return n, true
}

// Resend sends what never got its 2xx, as a provider would.
func (l *Ledger) Resend(a *Acuse) {
	c := &Client{Addr: a.Public}
	defer c.Close()
	for tries := 0; tries < 100; tries++ {
		n, ok := l.takeOpen()
		if !ok {
			return
		}
		l.post(c, n)
	}
}

// Answers counts what was answered so far: 2xx, 503, those of them without Retry-After, and
// how long 99 of 100 answers of 503 took at most.
func (l *Ledger) Answers() (acked, refused, bare int, p99 time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := slices.Sorted(slices.Values(l.refused))
	if n := len(took); n > 0 {
		p99 = took[min(n-1, n*99/100)]
	}
	return len(l.acked), len(took), l.bare, p99
}

// One sends the next event, or one left open, and tells whether it was acknowledged.
func (l *Ledger) One(addr string) bool {
	c := &Client{Addr: addr, Timeout: 5 * time.Second}
	defer c.Close()
	n, ok := l.takeOpen()
	if !ok {
		n = l.next.Add(1)
	}
	return l.post(c, n)
}
