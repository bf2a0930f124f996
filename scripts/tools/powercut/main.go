// Command powercut cuts the power of acuse's disk at random moments under load and then counts:
// every event that was answered 2xx must be stored with its job, be delivered at least once,
// and carry one idempotency key. The disk is a file system of ours that keeps unsynced writes apart and
// loses them at a cut: all, a random part of their sectors, or with pages torn in two.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"acuse/scripts/tools/cutfs"
	"acuse/scripts/tools/load"
)

// wrongs are builds that break the promise, by their build tag.
var wrongs = map[string]string{"ack-early": "ackearly", "sync-off": "syncoff", "sync-normal": "syncnormal"}

func main() {
	o := options{}
	flag.IntVar(&o.cuts, "cuts", 30, "how often the power is cut")
	flag.StringVar(&o.store, "store", "both", "storage engine: sqlite, bbolt or both")
	flag.IntVar(&o.clients, "clients", 16, "connections that send at once")
	flag.StringVar(&o.wrong, "wrong", "", "test a wrong build, which must be caught: ack-early, sync-off or sync-normal (sqlite alone)")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with the log")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random moments and losses")
	possible := flag.Bool("possible", false, "tell whether this machine can run it, and do nothing")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/powercut [--cuts N] [--store sqlite|bbolt|both] [--wrong KIND]\n\nCuts the power of acuse's disk under load and counts what was lost. Exit 1 when\nanything was, or when --wrong was not caught. Needs FUSE, and root or fusermount3.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *possible {
		if err := mountable(); err != nil {
			fail(err)
		}
		return
	}
	if _, known := wrongs[o.wrong]; o.wrong != "" && !known {
		fail(fmt.Errorf("--wrong is ack-early, sync-off or sync-normal"))
	}
	stores := []string{o.store}
	if o.store == "both" {
		stores = []string{"sqlite", "bbolt"}
	}
	for _, o.store = range stores {
		if o.wrong == "sync-normal" && o.store != "sqlite" {
			continue // bbolt has no such setting
		}
		if err := one(o); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "powercut:", err)
	os.Exit(1)
}

// mountable tells whether the file system can be mounted here.
func mountable() error {
	dir, err := os.MkdirTemp("", "acuse-powercut-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unmount, err := cutfs.New().Mount(dir)
	if err != nil {
		return err
	}
	return unmount()
}

// one runs one engine.
func one(o options) error {
	began := time.Now()
	r, err := run(&o)
	if o.wrong != "" {
		switch {
		case errors.Is(err, load.ErrEnded):
			fmt.Printf("store %s: caught: the build %s does not come up again: %v\n", o.store, o.wrong, err)
		case err != nil:
			return fmt.Errorf("store %s: %w", o.store, err)
		case !r.Bad():
			r.Print(os.Stdout)
			return fmt.Errorf("store %s: NOT CAUGHT: the build %s passed %d cuts", o.store, o.wrong, o.cuts)
		default:
			fmt.Printf("store %s: caught: the build %s lost %d of %d acknowledged events in %d cuts\n", o.store, o.wrong, r.Lost(), r.Acknowledged(), o.cuts)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", o.store, err)
	}
	fmt.Printf("store %s, power cuts %d, clients %d, seed %d, %s\n", o.store, o.cuts, o.clients, o.seed, time.Since(began).Round(time.Second))
	fmt.Printf("unsynced when cut       %d\n", o.unsynced)
	r.Print(os.Stdout)
	if r.Bad() {
		return fmt.Errorf("store %s: not all is as it was acknowledged", o.store)
	}
	return nil
}
