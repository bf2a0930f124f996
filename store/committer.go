package store

import (
	"context"
	"sync"
)

// Committer gathers writes into transactions. A batch is what queued while the
// last one synced: there is no timer, so a lone write never waits. One goroutine
// of its own calls write; T is whatever the engine commits, and each write keeps
// its own outcome inside itself.
type Committer[T any] struct {
	write    func([]T)
	maxCount int
	maxBytes int

	mu     sync.Mutex
	wake   *sync.Cond
	next   *batch[T]
	closed bool
	done   chan struct{}
}

// batch is one transaction in the making.
type batch[T any] struct {
	writes []T
	bytes  int
	synced chan struct{} // closed once write returned
}

// NewCommitter starts the writer. At most count writes of bytes payload together
// wait for a commit; what comes on top gets ErrBusy. write must not panic and must
// leave an outcome in every write of the batch.
func NewCommitter[T any](count, bytes int, write func([]T)) *Committer[T] {
	c := &Committer[T]{write: write, maxCount: count, maxBytes: bytes, done: make(chan struct{})}
	c.wake = sync.NewCond(&c.mu)
	c.next = newBatch[T]()
	go c.run()
	return c
}

func newBatch[T any]() *batch[T] { return &batch[T]{synced: make(chan struct{})} }

// Do queues w and returns when its transaction ended: nil says that write was
// called with w, not that it went well. ErrBusy and ErrClosed say that it was not
// and will not be. When ctx ends first, w may still be committed.
func (c *Committer[T]) Do(ctx context.Context, w T, bytes int) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	b := c.next
	if len(b.writes) >= c.maxCount || (b.bytes+bytes > c.maxBytes && len(b.writes) > 0) {
		c.mu.Unlock()
		return ErrBusy
	}
	b.writes = append(b.writes, w)
	b.bytes += bytes
	if len(b.writes) == 1 {
		c.wake.Signal()
	}
	c.mu.Unlock()
	select {
	case <-b.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Waiting is how many writes wait for the next transaction.
func (c *Committer[T]) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.next.writes)
}

// Close commits what waits and stops the writer.
func (c *Committer[T]) Close() {
	c.mu.Lock()
	c.closed = true
	c.wake.Signal()
	c.mu.Unlock()
	<-c.done
}

func (c *Committer[T]) run() {
	defer close(c.done)
	for {
		c.mu.Lock()
		for len(c.next.writes) == 0 && !c.closed {
			c.wake.Wait()
		}
		b := c.next
		if len(b.writes) == 0 {
			c.mu.Unlock()
			return
		}
		c.next = newBatch[T]()
		c.mu.Unlock()
		c.write(b.writes)
		close(b.synced)
	}
}
