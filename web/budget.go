package web

import (
	"context"
	"sync"
	"time"
)

// budget shares a number of bytes between the bodies in flight. Who waits is served
// in order of arrival: a large body is not overtaken for ever by small ones.
type budget struct {
	size int64

	mu      sync.Mutex
	used    int64
	waiting []*claim
}

// claim is a share that somebody waits for.
type claim struct {
	bytes int64
	given chan struct{} // closed once the share is taken
}

func newBudget(size int64) *budget { return &budget{size: size} }

// take waits at most for the time given until n bytes are free and takes them; it
// tells whether it did. More than the whole budget counts as the whole: such a body
// travels alone.
func (b *budget) take(ctx context.Context, n int64, wait time.Duration) bool {
	n = min(n, b.size)
	b.mu.Lock()
	if len(b.waiting) == 0 && b.used+n <= b.size {
		b.used += n
		b.mu.Unlock()
		return true
	}
	c := &claim{bytes: n, given: make(chan struct{})}
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.given:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return !b.withdraw(c)
}

// withdraw takes a claim out of the queue; false when it was given meanwhile.
func (b *budget) withdraw(c *claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.waiting {
		if w == c {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.serve() // it may have stood before smaller ones
			return true
		}
	}
	return false
}

// give returns n bytes.
func (b *budget) give(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	b.used -= min(n, b.size)
	b.serve()
	b.mu.Unlock()
}

// serve hands free bytes to those that wait, first come first served.
func (b *budget) serve() {
	for len(b.waiting) > 0 && b.used+b.waiting[0].bytes <= b.size {
		c := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.used += c.bytes
		close(c.given)
	}
}

// inUse is how many bytes are taken.
func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
