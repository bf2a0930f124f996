package main

import (
	"fmt"

	"acuse/scripts/tools/load"
)

// print tells what was found; false when a promise was broken.
func (r *result) print(o options) bool {
	v, n := r.verified, r.verified.Deliveries
	fmt.Printf("store %s, %d deliveries before, %d events/s coming in\n", o.store, o.count, o.rate)
	fmt.Printf("backup:       %d MB in %.1f s; the journal was at most %d MB\n", r.bytes/1e6, r.took.Seconds(), r.journal/1e6)
	fmt.Printf("senders:      p50 %v, p99 %v; before %v, %v; %d refused\n", load.At(r.busy, 50), load.At(r.busy, 99), load.At(r.quiet, 50), load.At(r.quiet, 99), r.refused)
	fmt.Printf("acknowledged: %d when it began, %d when it was done\n", r.begun, r.ended)
	fmt.Printf("verify:       %d deliveries, %d payloads, %d jobs, %d keys, %d queued; problems: %d\n", v.Deliveries, v.Payloads, v.Jobs, v.Keys, v.Queued, len(v.Problems))
	fmt.Printf("restored:     missing %d, gaps %d, other than the original %d\n", r.missing, r.gaps, r.strangers)
	good := len(v.Problems) == 0 && len(r.restored.Problems) == 0 && r.restored.Deliveries == n && r.restored.Jobs == n && v.Engine == o.store &&
		v.Payloads == n && v.Jobs == n && v.Keys == n && v.Queued == n && // one of each for every delivery, as of one moment
		n >= r.begun && n <= r.ended+16 && // 16 connections: what was stored and not yet answered
		r.missing+r.gaps+r.strangers == 0 && r.refused == 0 && r.journal < 64<<20
	if !good {
		fmt.Println("FAILED")
	}
	return good
}
