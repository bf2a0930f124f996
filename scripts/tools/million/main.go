// Command million fills an archive, then sets the retention to a part of it while events
// go on coming in, and measures: how fast the files shrink, how long the longest
// transaction is, what the senders notice.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	o := options{}
	flag.IntVar(&o.count, "count", 1_000_000, "deliveries in the archive")
	flag.IntVar(&o.keep, "keep", 10, "percent of the archive that the retention leaves")
	flag.StringVar(&o.store, "store", "sqlite", "storage engine: sqlite or bbolt")
	flag.IntVar(&o.clients, "clients", 64, "connections that fill the archive")
	flag.IntVar(&o.rate, "rate", 500, "events a second that come in while the retention works")
	flag.DurationVar(&o.most, "most", 30*time.Minute, "give up after this long")
	flag.BoolVar(&o.hold, "hold", false, "keep the folder with data and log")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/million [--count N] [--keep PERCENT] [--store sqlite|bbolt]\n\nExit 1 when the files do not shrink below twice the live data, a transaction\nof the retention takes over 200 ms, or a sender gets anything but 2xx.")
		flag.PrintDefaults()
	}
	flag.Parse()
	r, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "million:", err)
		os.Exit(1)
	}
	if !r.print(o) {
		os.Exit(1)
	}
}
