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
	dir, bin, done, err := load.Prepare("powercut", wrongs[o.wrong], o.keep)
	if err != nil {
		return nil, err
	}
	defer done()
	a, err := load.NewCounted(bin, dir, o.store, "cut")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	r := &runner{a: a, disk: cutfs.New(), at: filepath.Join(dir, "data"), rnd: rand.New(rand.NewPCG(o.seed, 1))}
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
	return a.Count()
}

// runner is acuse on a disk that loses its power.
type runner struct {
	a    *load.Counted
	disk *cutfs.Disk // what survived so far
	at   string      // where acuse sees it
	rnd  *rand.Rand
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
			go func() { sent <- r.a.Ledger.Load(ctx, r.a.Public, o.clients) }()
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
