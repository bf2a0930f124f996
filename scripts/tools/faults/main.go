// Command faults runs acuse on disks that fail: each write, sync and name in turn, a disk that goes
// away and comes back, a volume that fills, too few descriptors, a data folder that is
// removed. Each scene wants the same: what cannot be kept is answered 503 with Retry-After, nothing
// is acknowledged that is not stored, reads go on, and acuse recovers without a restart
// where the disk does.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"acuse/scripts/tools/load"
)

type options struct {
	store, only string
	times       int           // operations that fail in turn, in each scene that does so
	full        time.Duration // how long the volume stays full
	keep        bool
	seed        uint64
}

func main() {
	o := options{}
	flag.StringVar(&o.store, "store", "both", "storage engine: sqlite, bbolt or both")
	flag.StringVar(&o.only, "only", "", "run the scenes whose name holds this")
	flag.IntVar(&o.times, "times", 60, "in scenes that fail one operation after the other: up to which")
	flag.DurationVar(&o.full, "full", time.Minute, "how long the volume stays full")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random moments and losses")
	flag.BoolVar(&o.keep, "keep", false, "keep the folders with the logs")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/faults [--store sqlite|bbolt|both] [--only WORDS] [--times N] [--full D]\n\nRuns acuse on disks that fail. Exit 1 when anything was lost, or did not recover.\nNeeds FUSE and root.")
		flag.PrintDefaults()
	}
	flag.Parse()
	stores := []string{o.store}
	if o.store == "both" {
		stores = []string{"sqlite", "bbolt"}
	}
	folder, bin, done, err := load.Prepare("faults", "", o.keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	bad := 0
	for _, engine := range stores {
		for i, s := range scenes {
			if !strings.Contains(s.name, o.only) {
				continue
			}
			began := time.Now()
			dir := filepath.Join(folder, fmt.Sprint(engine, "-", i))
			told, err := play(s, engine, bin, dir, o)
			if err != nil {
				bad++
				told = "FAILED: " + err.Error() + "\n    folder: " + dir
			}
			fmt.Printf("%-7s %-42s %5.1f s  %s\n", engine, s.name, time.Since(began).Seconds(), told)
		}
	}
	if bad > 0 {
		os.Exit(1) // the folder stays: it has the logs
	}
	done()
}
