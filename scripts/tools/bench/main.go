// Command bench measures acuse against a handler that only reads and verifies, in
// one run, alternating, each in a process of its own: on any machine the ratio says
// what durability costs there. It also measures the way from receipt to a local app.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

type options struct {
	store  string
	rounds int
	round  time.Duration
	conns  []int
	e2e    time.Duration
}

func main() {
	// The bench starts itself again as the peers it measures against.
	if len(os.Args) == 3 && os.Args[1] == "verify-only" {
		serveVerifyOnly(os.Args[2])
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "app" {
		serveApp(os.Args[2])
		return
	}
	o := options{conns: []int{1, 64, 256}}
	short := flag.Bool("short", false, "a few seconds in all: shows that it works, the figures mean little")
	flag.StringVar(&o.store, "store", "sqlite", "storage engine: sqlite or bbolt")
	flag.IntVar(&o.rounds, "rounds", 5, "pairs of measurements for each number of connections")
	flag.DurationVar(&o.round, "round", 4*time.Second, "how long one measurement lasts")
	flag.DurationVar(&o.e2e, "e2e", 10*time.Second, "how long the end-to-end load lasts")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/bench [--short] [--store sqlite|bbolt] [--rounds N] [--round 4s]\n\nPrints acuse's speed as a ratio to a handler that reads and verifies only.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *short {
		o.rounds, o.round, o.e2e, o.conns = 1, time.Second, 2*time.Second, []int{1, 64}
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
