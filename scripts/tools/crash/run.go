package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	l := load.NewLedger(f, "crash")
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
	l.Resend(a)
	return load.Count(a, l, sink)
}

// life starts acuse, sends until wait has passed, and kills it in the middle.
func life(a *load.Acuse, l *load.Ledger, clients int, wait time.Duration) error {
	if err := a.Start(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	sent := make(chan error, 1)
	go func() { sent <- l.Load(ctx, a.Public, clients) }()
	time.Sleep(wait)
	a.Kill()
	stop()
	return <-sent
}
