package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"acuse/scripts/tools/load"
)

type options struct {
	loops, clients int
	store          string
	wrong, keep    bool
	seed           uint64
}

func run(o options) (*load.Result, error) {
	tags := ""
	if o.wrong {
		tags = "ackearly"
	}
	dir, bin, done, err := load.Prepare("crash", tags, o.keep)
	if err != nil {
		return nil, err
	}
	defer done()
	a, err := load.NewCounted(bin, dir, o.store, "crash")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	rnd := rand.New(rand.NewPCG(o.seed, 1))
	for n := range o.loops {
		wait := time.Duration(200+rnd.IntN(700)) * time.Millisecond
		if err := life(a, o.clients, wait); err != nil {
			return nil, fmt.Errorf("loop %d (seed %d): %w", n+1, o.seed, err)
		}
	}
	if err := a.Start(); err != nil {
		return nil, err
	}
	return a.Count()
}

// life starts acuse, sends until wait has passed, and kills it in the middle.
func life(a *load.Counted, clients int, wait time.Duration) error {
	if err := a.Start(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	sent := make(chan error, 1)
	go func() { sent <- a.Ledger.Load(ctx, a.Public, clients) }()
	time.Sleep(wait)
	a.Kill()
	stop()
	return <-sent
}
