package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"acuse/scripts/tools/cutfs"
	"acuse/scripts/tools/load"
)

type options struct {
	cuts, clients int
	store, wrong  string
	keep          bool
	seed          uint64
	unsynced      int // what the cuts took away
}

// run cuts the power o.cuts times, then starts acuse once more and counts.
func run(o *options) (*load.Result, error) {
	dir, err := os.MkdirTemp("", "acuse-powercut-")
	if err != nil {
		return nil, err
	}
	if o.keep {
		fmt.Println("folder:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	bin, err := load.Build(dir, wrongs[o.wrong])
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
	f, err := os.Create(filepath.Join(dir, "acknowledged")) // on another disk than the one that is cut
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &runner{a: a, ledger: load.NewLedger(f, "cut"), disk: cutfs.New(), at: filepath.Join(dir, "data"), rnd: rand.New(rand.NewPCG(o.seed, 1))}
	if err := os.Mkdir(r.at, 0o700); err != nil {
		return nil, err
	}
	for n := range o.cuts {
		if err := r.life(o); err != nil {
			return nil, fmt.Errorf("cut %d (seed %d): %w", n+1, o.seed, err)
		}
	}
	unmount, err := r.disk.Mount(r.at)
	if err != nil {
		return nil, err
	}
	defer unmount()
	defer a.Kill() // before the file system goes
	if err := a.Start(); err != nil {
		return nil, fmt.Errorf("after the last cut (seed %d): %w", o.seed, err)
	}
	r.ledger.Resend(a)
	return load.Count(a, r.ledger, sink)
}

// runner is acuse on a disk that loses its power.
type runner struct {
	a      *load.Acuse
	ledger *load.Ledger
	disk   *cutfs.Disk // what survived so far
	at     string      // where acuse sees it
	rnd    *rand.Rand
}

// life mounts what survived, starts acuse, sends, cuts the power in the middle, and kills the
// process that has lost its disk. One life in five ends while acuse starts.
func (r *runner) life(o *options) error {
	unmount, err := r.disk.Mount(r.at)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sent := make(chan error, 1)
	if r.rnd.IntN(5) == 0 {
		err = r.a.Launch()
		sent <- nil
		time.Sleep(time.Duration(r.rnd.IntN(150)) * time.Millisecond)
	} else {
		if err = r.a.Start(); err == nil {
			go func() { sent <- r.ledger.Load(ctx, r.a.Public, o.clients) }()
			time.Sleep(time.Duration(100+r.rnd.IntN(700)) * time.Millisecond)
		} else {
			sent <- nil
		}
	}
	o.unsynced += r.disk.Unsynced()
	loss := cutfs.Losses[r.rnd.IntN(len(cutfs.Losses))]
	after := r.disk.Cut(loss, r.rnd)
	time.Sleep(time.Duration(r.rnd.IntN(20)) * time.Millisecond) // answers still on their way
	r.a.Kill()
	stop()
	if err == nil {
		err = <-sent
	}
	r.disk = after
	if gone := unmount(); err == nil {
		err = gone
	}
	return err
}
