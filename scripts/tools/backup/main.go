// Command backup makes a backup while events come in, restores it into a new folder, and
// holds what is there against the archive it was made of.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	o := options{}
	flag.StringVar(&o.store, "store", "sqlite", "storage engine: sqlite or bbolt")
	flag.IntVar(&o.count, "count", 50_000, "deliveries in the archive before")
	flag.IntVar(&o.rate, "rate", 500, "events a second that come in meanwhile")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with data, backup and log")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/backup-under-load [--store sqlite|bbolt] [--count N] [--rate N]\n\nExit 1 when the restored archive is not the one of the moment of the backup, anything in\nit is damaged, the journal passed 64 MiB, or a sender got anything but 200.")
		flag.PrintDefaults()
	}
	flag.Parse()
	r, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "backup:", err)
		os.Exit(1)
	}
	if !r.print(o) {
		os.Exit(1)
	}
}
