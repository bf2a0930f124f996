package store

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// gate is a write function that waits for leave before it returns.
type gate struct {
	entered chan []int
	leave   chan struct{}
}

func newGate() *gate { return &gate{make(chan []int), make(chan struct{})} }

func (g *gate) write(batch []int) {
	g.entered <- slices.Clone(batch)
	<-g.leave
}

// queue calls Do in the background and waits until it is queued behind n-1 others.
func queue(t *testing.T, c *Committer[int], w, bytes, n int) chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Do(t.Context(), w, bytes) }()
	for c.Waiting() < n {
		select {
		case err := <-done:
			t.Fatalf("write %d ended with %v before it was queued", w, err)
		default:
			runtime.Gosched()
		}
	}
	return done
}

func TestBatchIsWhatQueuedMeanwhile(t *testing.T) {
	t.Parallel()
	g := newGate()
	c := NewCommitter(10, 100, g.write)
	first := make(chan error, 1)
	go func() { first <- c.Do(t.Context(), 1, 1) }()
	if b := <-g.entered; !slices.Equal(b, []int{1}) {
		t.Fatalf("a lone write waited for others: %v", b)
	}
	second, third := queue(t, c, 2, 1, 1), queue(t, c, 3, 1, 2)
	select {
	case err := <-first:
		t.Fatalf("announced before its transaction ended: %v", err)
	default:
	}
	g.leave <- struct{}{}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if b := <-g.entered; !slices.Equal(b, []int{2, 3}) {
		t.Fatalf("second batch: %v", b)
	}
	g.leave <- struct{}{}
	for _, done := range []chan error{second, third} {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
}

func TestTooMuchWaitingIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for _, limit := range []struct {
		name         string
		count, bytes int
	}{{"count", 2, 1000}, {"bytes", 100, 20}} {
		t.Run(limit.name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			c := NewCommitter(limit.count, limit.bytes, g.write)
			go c.Do(t.Context(), 1, 10)
			<-g.entered
			a, b := queue(t, c, 2, 10, 1), queue(t, c, 3, 10, 2)
			if err := c.Do(t.Context(), 4, 10); !errors.Is(err, ErrBusy) {
				t.Fatalf("got %v, want ErrBusy", err)
			}
			g.leave <- struct{}{}
			if batch := <-g.entered; !slices.Equal(batch, []int{2, 3}) {
				t.Fatalf("batch: %v", batch)
			}
			g.leave <- struct{}{}
			if err := errors.Join(<-a, <-b); err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	}
}

func TestOneWriteLargerThanTheLimitStillGoesThrough(t *testing.T) {
	t.Parallel()
	c := NewCommitter(10, 5, func([]int) {})
	defer c.Close()
	if err := c.Do(t.Context(), 1, 1000); err != nil {
		t.Fatal(err)
	}
}

func TestLeavingCallerDoesNotTakeItsWriteBack(t *testing.T) {
	t.Parallel()
	g := newGate()
	c := NewCommitter(10, 100, g.write)
	go c.Do(t.Context(), 1, 1)
	<-g.entered
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Do(ctx, 2, 1) }()
	for c.Waiting() < 1 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	g.leave <- struct{}{}
	if batch := <-g.entered; !slices.Equal(batch, []int{2}) {
		t.Fatalf("batch: %v", batch)
	}
	g.leave <- struct{}{}
	c.Close()
}

func TestCloseWritesWhatWaitsAndThenRefuses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var written []int
	c := NewCommitter(1000, 1000, func(b []int) {
		mu.Lock()
		written = append(written, b...)
		mu.Unlock()
	})
	var wg sync.WaitGroup
	taken := make([]bool, 50)
	for i := range taken {
		wg.Go(func() { taken[i] = c.Do(t.Context(), i, 1) == nil })
	}
	c.Close()
	wg.Wait()
	for i, ok := range taken {
		if ok != slices.Contains(written, i) {
			t.Errorf("write %d: Do said %v, written %v", i, ok, !ok)
		}
	}
	if err := c.Do(t.Context(), 1, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	c.Close() // twice is no harm
}
