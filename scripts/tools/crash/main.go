// Command crash kills acuse with SIGKILL at random moments under load and then
// counts: every event that was answered 2xx must be stored with its job, be
// delivered at least once, and carry one idempotency key. The acknowledgements are
// written outside acuse's data folder by this process, which is never killed.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	o := options{}
	flag.IntVar(&o.loops, "loops", 30, "how often acuse is killed")
	flag.StringVar(&o.store, "store", "sqlite", "storage engine: sqlite or bbolt")
	flag.IntVar(&o.clients, "clients", 16, "connections that send at once")
	flag.BoolVar(&o.wrong, "wrong", false, "test a build that acknowledges before the commit: it must be caught")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with data and log")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random moments")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/crash [--loops N] [--store sqlite|bbolt] [--wrong]\n\nKills acuse under load and counts what was lost. Exit 1 when anything was, or\nwhen --wrong was not caught.")
		flag.PrintDefaults()
	}
	flag.Parse()
	r, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
	fmt.Printf("store %s, kill -9 loops %d, clients %d, seed %d\n", o.store, o.loops, o.clients, o.seed)
	r.Print(os.Stdout)
	if r.Bad() != o.wrong {
		if o.wrong {
			fmt.Println("NOT CAUGHT: the build that acknowledges early passed")
		}
		os.Exit(1)
	}
	if o.wrong {
		fmt.Println("caught: the build that acknowledges early loses events")
	}
}
