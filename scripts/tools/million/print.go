package main

import (
	"fmt"

	"acuse/scripts/tools/load"
)

const longest = 0.2 // seconds a transaction of the retention may take

// print tells what was found; false when a promise was broken.
func (r *result) print(o options) bool {
	fmt.Printf("retention set to %d %% (%d MB) with %d events/s coming in\n", o.keep, r.limit/1e6, o.rate)
	fmt.Printf("files:        %d MB → %d MB, %.2f × what is allowed, in %.0f s\n", r.before/1e6, r.after/1e6, float64(r.after)/float64(r.limit), r.shrinking.Seconds())
	fmt.Printf("removed:      %.0f deliveries in %.0f steps, none over %s s with its turn\n", r.purged, r.steps, r.longestStep)
	fmt.Printf("transactions: the longest %.0f ms (while filling %.0f ms)\n", r.longest*1000, r.longestFill*1000)
	fmt.Printf("journal:      at most %d MB\n", r.journal/1e6)
	fmt.Printf("senders:      p50 %v, p99 %v, before %v, %v; %d refused\n", load.At(r.busy, 50), load.At(r.busy, 99), load.At(r.quiet, 50), load.At(r.quiet, 99), r.refused)
	for _, line := range r.complaints {
		fmt.Println("log:         ", line)
	}
	good := r.after < 2*r.limit && r.longest <= longest && r.journal < 64<<20 && r.refused == 0 && len(r.complaints) == 0
	if !good {
		fmt.Println("FAILED")
	}
	return good
}
