// Command bench measures acuse against a handler that only reads and verifies, in
// one run, alternating, each in a process of its own: on any machine the ratio says
// what durability costs there. It also measures the way from receipt to a local app.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

type options struct {
	store  string
	rounds int
	round  time.Duration
	conns  []int
	e2e    time.Duration
	client string
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
	o := options{}
	conns := flag.String("conns", "1,64,256", "numbers of connections")
	short := flag.Bool("short", false, "a few seconds in all: shows that it works, the figures mean little")
	flag.StringVar(&o.store, "store", "sqlite", "storage engine: sqlite or bbolt")
	flag.IntVar(&o.rounds, "rounds", 5, "pairs of measurements for each number of connections")
	flag.DurationVar(&o.round, "round", 4*time.Second, "how long one measurement lasts")
	flag.DurationVar(&o.e2e, "e2e", 10*time.Second, "how long the end-to-end load lasts; 0 leaves it out")
	flag.StringVar(&o.client, "client", common, "what sends: common (net/http, as in the budget) or lean")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/bench [--short] [--store sqlite|bbolt] [--rounds N] [--round 4s]\n\nPrints acuse's speed as a ratio to a handler that reads and verifies only.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *short {
		o.rounds, o.round, o.e2e, *conns = 1, time.Second, 2*time.Second, "1,64"
	}
	if o.client != common && o.client != lean {
		fmt.Fprintln(os.Stderr, "bench: --client wants common or lean")
		os.Exit(2)
	}
	for _, text := range strings.Split(*conns, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			fmt.Fprintln(os.Stderr, "bench: --conns wants numbers, such as 1,64")
			os.Exit(2)
		}
		o.conns = append(o.conns, n)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
