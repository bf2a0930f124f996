package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"acuse/scripts/tools/load"
)

type options struct {
	loops, clients int
	store          string
	wrong, keep    bool
	seed           uint64
}

// ledger is what this process knows: which events it made and which of them were
// answered 2xx. Acknowledged ids also go to a file.
type ledger struct {
	mu    sync.Mutex
	acked map[string]bool
	open  []int64 // numbers that got no answer or a refusal: sent again in the next life
	file  *bufio.Writer
	next  atomic.Int64
	late  atomic.Int64 // answers other than 2xx while acuse was up
}

func run(o options) (*result, error) {
	dir, err := os.MkdirTemp("", "acuse-crash-")
	if err != nil {
		return nil, err
	}
	if o.keep {
		fmt.Println("folder:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	tags := ""
	if o.wrong {
		tags = "ackearly"
	}
	bin, err := load.Build(dir, tags)
	if err != nil {
		return nil, err
	}
	sink, err := load.NewSink()
	if err != nil {
		return nil, err
	}
	defer sink.Close()
	a, err := load.New(bin, dir, o.store, "  app:\n    url: "+sink.URL+"\n    concurrency: 4\n    retry: {schedule: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}", "app")
	if err != nil {
		return nil, err
	}
	defer a.Kill()
	f, err := os.Create(filepath.Join(dir, "acknowledged"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &ledger{acked: map[string]bool{}, file: bufio.NewWriter(f)}
	rnd := rand.New(rand.NewPCG(o.seed, 1))
	for n := range o.loops {
		wait := time.Duration(200+rnd.IntN(700)) * time.Millisecond
		if err := life(a, l, o.clients, wait); err != nil {
			return nil, fmt.Errorf("loop %d (seed %d): %w", n+1, o.seed, err)
		}
	}
	if err := a.Start(); err != nil {
		return nil, err
	}
	l.resend(a)
	return count(a, l, sink)
}

// life starts acuse, sends until wait has passed, and kills it in the middle.
func life(a *load.Acuse, l *ledger, clients int, wait time.Duration) error {
	if err := a.Start(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() { l.send(ctx, a.Public) })
	}
	time.Sleep(wait)
	a.Kill()
	stop()
	wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Flush()
}

// send posts events on one connection until ctx ends; first those left open.
func (l *ledger) send(ctx context.Context, addr string) {
	c := &load.Client{Addr: addr, Timeout: 5 * time.Second}
	defer c.Close()
	for ctx.Err() == nil {
		n, ok := l.takeOpen()
		if !ok {
			n = l.next.Add(1)
		}
		if !l.post(c, n) {
			// acuse was killed, or is about to be: do not spin until the loop notices
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// post sends event n and writes down whether it was acknowledged.
func (l *ledger) post(c *load.Client, n int64) bool {
	id := load.EventID("crash", n)
	now := time.Now()
	status, _, err := c.Post("/in/load", load.Body(id, now), now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && status/100 == 2 {
		l.acked[id] = true
		fmt.Fprintln(l.file, id)
		return true
	}
	if err == nil && status != http.StatusServiceUnavailable {
		l.late.Add(1)
	}
	l.open = append(l.open, n)
	return false
}

func (l *ledger) takeOpen() (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return 0, false
	}
	n := l.open[len(l.open)-1]
	l.open = l.open[:len(l.open)-1]
	return n, true
}

// resend sends what never got its 2xx, as a provider would.
func (l *ledger) resend(a *load.Acuse) {
	c := &load.Client{Addr: a.Public}
	defer c.Close()
	for tries := 0; tries < 100; tries++ {
		n, ok := l.takeOpen()
		if !ok {
			return
		}
		l.post(c, n)
	}
}
